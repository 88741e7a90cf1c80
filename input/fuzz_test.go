package input

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"strandline/host/sampling/sample"
)

// FuzzRead reads any bytes as a file of some name, which says what it can be: it ends, the
// same bytes are the same kind of input again, and what cannot be read says why.
func FuzzRead(f *testing.F) {
	names := []string{"file", "a.pickle", "job.log", "nccl_trace_rank_3.json", "x.sqlite", "trace.html"}
	for _, pattern := range []string{"../cli/testdata/hostile/*", "../examples/ranks/rank0-step-2.pickle", "../examples/*/*.log", "../examples/jax/*.prof", "../examples/munmap-leak/server.trace", "../profiles/*/testdata/*"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil || len(data) > 20_000 {
				continue
			}
			f.Add(data, byte(0))
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			w.Write(data)
			w.Close()
			f.Add(packed.Bytes(), byte(1))
			f.Add(fmt.Appendf(nil, `<script>local_files = [{"base64": "%s"}]`, base64.StdEncoding.EncodeToString(data)), byte(5))
		}
	}
	f.Add([]byte("SQLite format 3\x00"), byte(4))
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		name := names[int(which)%len(names)]
		read := func(named bool) string {
			open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
			fs := Of([]Source{{Path: name, Size: int64(len(data)), Named: named, Open: open}}, Options{})
			file := fs.List[0]
			recording := file.IsRecording()
			kind := file.Kind()
			if recording != (kind == WatchRecording || kind == TraceRecording) {
				t.Errorf("a recording: %t, and then of kind %d", recording, kind)
			}
			in, err := file.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch in := in.(type) {
			case *Unknown:
				if in.Err == nil || in.Err.Error() == "" {
					t.Error("it cannot be read, for no reason")
				}
			case *Watch:
				_, _ = in.Samples(t.Context(), func(*sample.Sample) error { return nil })
			case *Table:
				if in.File == nil || in.Name != name {
					t.Errorf("a table without a file: %+v", in)
				}
			case *Log:
				if in.Text.Empty() {
					t.Error("a log that states nothing")
				}
			}
			return fmt.Sprintf("%T, %d texts, %d dumps", in, len(fs.Ranks(t.Context())), len(fs.Dumps(t.Context())))
		}
		if a, b := read(true), read(true); a != b {
			t.Errorf("%s, and then %s", a, b)
		}
		read(false)
	})
}
