package export_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/face/export"
	"strandline/torch/snapshot"
)

// marker is a name that no redacted file may have.
const marker = "Qz7marker"

// planted are keys that records may have beside those of PyTorch 2.6: what later
// versions and tools write, and one that no tool writes.
var planted = []string{
	"forward_frames", "internal_metadata", "fx_node_op", "fx_node_name", "fx_node_target", "fx_node_info", "fx_original_trace",
	marker, "rank", "step", "history", "name", "filename", "frames", "state", "host_segments",
}

// values returns what is under a planted key.
func values() []any {
	return []any{marker, []any{marker}, map[string]any{marker: marker, "filename": marker, "name": marker, "line": 1.0}}
}

// eachRecord calls f with every dict of a document.
func eachRecord(doc any, f func(map[string]any)) {
	switch v := doc.(type) {
	case []any:
		for _, x := range v {
			eachRecord(x, f)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachRecord(v[key], f)
		}
		f(v)
	}
}

// plain is a small snapshot as JSON has it.
func plain(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../torch/snapshot/testdata/w21_writers.json.train.snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	doc["segments"] = doc["segments"].([]any)[:3]
	for i, trace := range doc["device_traces"].([]any) {
		doc["device_traces"].([]any)[i] = trace.([]any)[:min(40, len(trace.([]any)))]
	}
	for i, e := range doc["device_traces"].([]any)[0].([]any) { // as later versions have them
		e := e.(map[string]any)
		e["compile_context"], e["user_metadata"] = "0/1", "loss"
		if i%2 == 0 {
			e["category"] = "parameter"
		}
	}
	doc["external_annotations"] = []any{map[string]any{"device": 0.0, "time_us": 5.0, "stage": "START", "name": "step 3"}}
	return doc
}

// redacted reads a document as JSON and as pickle, and returns all that is written
// of it once it is redacted. What is not a snapshot is nil.
func redacted(t *testing.T, doc any) map[string][]byte {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Read(bytes.NewReader(text), snapshot.Options{})
	if err != nil {
		return nil
	}
	out := map[string][]byte{}
	var whole bytes.Buffer
	if err := s.Write(&whole); err != nil {
		t.Fatal(err)
	}
	pickled, err := snapshot.Read(&whole, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for of, s := range map[string]*snapshot.Snapshot{"JSON to ": s, "pickle to ": pickled} {
		r := export.Redact(s, both)
		for name, write := range map[string]func(io.Writer, *snapshot.Snapshot) error{
			"pickle": func(w io.Writer, s *snapshot.Snapshot) error { return s.Write(w) },
			"pprof":  export.Pprof, "folded": export.Folded, "csv": export.CSV, "perfetto": export.Perfetto,
		} {
			var b bytes.Buffer
			if err := write(&b, r); err != nil {
				t.Fatal(err)
			}
			out[of+name] = b.Bytes()
		}
		file := filepath.Join(t.TempDir(), "out.db")
		if err := writeDatabase(t.Context(), file, r); err != nil {
			t.Fatal(err)
		}
		if out[of+"sqlite"], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(out[of+"pprof"]))
		if err == nil {
			out[of+"pprof"], err = io.ReadAll(z)
		}
		if err != nil {
			t.Fatal(err)
		}
		out[of+"faults"] = []byte(strings.Join(append(r.Faults, r.BadSizes...), "\n") + r.Name)
	}
	return out
}

// search looks for the marker in what was written.
func search(t *testing.T, what string, written map[string][]byte) {
	t.Helper()
	for name, text := range written {
		if at := bytes.Index(text, []byte(marker)); at >= 0 {
			t.Errorf("%s, %s: %q is left", what, name, text[max(0, at-40):at+len(marker)])
		}
	}
}

// No key that is planted in any record, at any level, comes through.
func TestRedactPlantedKeys(t *testing.T) {
	for _, key := range planted {
		for _, value := range values() {
			doc := plain(t)
			eachRecord(doc, func(record map[string]any) {
				if _, has := record[key]; !has {
					record[key] = value
				}
			})
			written := redacted(t, doc)
			if written == nil && key != "history" && key != "state" {
				t.Errorf("with %s it is not a snapshot", key)
			}
			search(t, key, written)
		}
	}
}

// No value of any field comes through, whatever type it should have.
func TestRedactPlantedValues(t *testing.T) {
	keys := map[string]bool{}
	eachRecord(plain(t), func(record map[string]any) {
		for key := range record {
			keys[key] = true
		}
	})
	read := 0
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		for _, value := range append(values(), "/"+marker+"/torch/nn/"+marker+".py", "/site-packages/torch/"+marker+"/x.py",
			"at::native::"+marker+"(at::Tensor)", "FSDP::"+marker, "Optimizer."+marker+"#AdamW."+marker, "libtorch_"+marker+".so",
			"<"+marker+">", "__"+marker+"__", "THP"+marker, "expandable_segments:True,"+marker+":True", "torchinductor_x/"+marker+".py") {
			for every := range 2 { // all records, or only half of them
				if text, ok := value.(string); ok && text != marker && every > 0 {
					break
				}
				doc, n := plain(t), 0
				eachRecord(doc, func(record map[string]any) {
					if _, has := record[key]; has {
						if n++; n%(every+1) == 0 {
							record[key] = value
						}
					}
				})
				written := redacted(t, doc)
				if written != nil {
					read++
				}
				search(t, key, written)
			}
		}
	}
	if read < 8*len(keys) {
		t.Errorf("only %d documents could be read", read)
	}
}
