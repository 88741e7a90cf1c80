package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"strandline/face/web/engine"
	"strandline/input"
	"strandline/internal/test/live"
)

// TestDoors holds that files have one verdict and the same findings, whether `diagnose`, the
// page or the static site asks.
func TestDoors(t *testing.T) {
	live.Sequential(t)
	for _, pattern := range []string{"../examples/*", "../examples/*/*", "../logs/testdata/*", "../torch/snapshot/testdata/*", "../judge/*/testdata/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			sameThroughAllDoors(t, path, filepath.Dir(path) != "../examples" && filepath.Ext(path) == ".pickle")
		}
	}
}

// TestDoorsOfCorpus is the same for the files of a folder, if one is given.
func TestDoorsOfCorpus(t *testing.T) {
	root := live.Given(t, "STRANDLINE_CORPUS")
	files := 0
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if info, statErr := os.Stat(path); err == nil && statErr == nil && info.Mode().IsRegular() && info.Size() < 8<<20 {
			sameThroughAllDoors(t, path, false)
			files++
		}
		return nil
	})
	t.Logf("%d files", files)
}

// statedFindings are the common part of the answers.
type statedFindings struct {
	Verdict  string           `json:"verdict"`
	Findings []map[string]any `json:"findings"`
	Job      map[string]any   `json:"job"`
}

// sameThroughAllDoors compares the doors. A part of a folder that is also judged as a whole is not
// saved as a page: that takes a second.
func sameThroughAllDoors(t *testing.T, path string, part bool) {
	t.Helper()
	stdout, stderr, code := run("diagnose", path, "--json")
	var want *statedFindings
	if code == exitOK || code == exitProblem || code == exitPartial {
		want = &statedFindings{}
		if err := json.Unmarshal([]byte(stdout), want); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, stderr)
		}
	}
	files, err := input.OpenPaths([]string{path}, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if got := onPage(t, files); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: diagnose %s\npage %s", path, asText(want), asText(got))
	}
	if !part {
		if got := onSavedPage(t, path); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: diagnose %s\nsaved page %s", path, asText(want), asText(got))
		}
	}
	if got := onPage(t, dropped(t, path, files)); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: diagnose %s\nsite %s", path, asText(want), asText(got))
	}
}

// onSavedPage is what the page states that is saved of files, nil if the command refuses them
// in a sentence.
func onSavedPage(t *testing.T, path string) *statedFindings {
	t.Helper()
	html, stderr, code := run("view", path, "--html", "-")
	if code != exitOK && code != exitPartial {
		if html != "" || !strings.HasPrefix(stderr, "strandline: ") {
			t.Errorf("%s: status %d, %s", path, code, stderr)
		}
		return nil
	}
	index, parts := unpackedParts(t, []byte(html))
	for _, question := range []string{"findings?", "recording?", "watch?"} {
		at, ok := index[question]
		if !ok {
			continue
		}
		out := answered(t, engine.Answer{Status: 200, Body: parts[at[0]][at[1] : at[1]+at[2]]})
		if at, ok := index["job?"]; ok {
			if err := json.Unmarshal(parts[at[0]][at[1]:at[1]+at[2]], &out.Job); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	t.Fatalf("%s: the saved page has no findings", path)
	return nil
}

func asText(j *statedFindings) string {
	out, _ := json.Marshal(j)
	return string(out)
}

// dropped are the same files as the static site has them: bytes, with the recorder's manifest
// as another file.
func dropped(t *testing.T, path string, files *input.Files) *input.Files {
	t.Helper()
	var out []input.Source
	add := func(path string, named bool, changed input.Source) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, input.Source{Path: path, Size: int64(len(data)), Named: named, Changed: changed.Changed, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}})
	}
	for _, f := range files.List {
		add(f.Path, f.Named, f.Source)
	}
	if manifest := filepath.Join(path, "strandline.json"); len(files.List) > 0 {
		if _, err := os.Stat(manifest); err == nil {
			add(manifest, false, input.Source{})
		}
	}
	return input.Of(out, input.Options{})
}

// onPage is what the page states of files, nil if it cannot read them.
func onPage(t *testing.T, files *input.Files) *statedFindings {
	t.Helper()
	ctx := context.Background()
	p, err := engine.Open(ctx, files, engine.Options{})
	if err == nil {
		err = p.Load(ctx)
	}
	if err != nil {
		return nil
	}
	question := map[string]string{"index.html": "findings", "recording.html": "recording", "watch.html": "watch"}[p.Index]
	out := answered(t, p.Ask(ctx, question, nil))
	if a := p.Ask(ctx, "job", nil); a.Status == 200 {
		if err := json.Unmarshal(a.Body, &out.Job); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// answered is an answer without what only the page has.
func answered(t *testing.T, a engine.Answer) *statedFindings {
	t.Helper()
	out := &statedFindings{}
	if err := json.Unmarshal(a.Body, out); err != nil || a.Status != 200 {
		t.Fatalf("status %d: %v", a.Status, err)
	}
	for _, f := range out.Findings {
		for _, own := range strings.Fields("origins where stacks subject parts fit card") {
			delete(f, own)
		}
	}
	return out
}

// TestDoorsOfJob is the same for a folder with the logs of ranks, a snapshot of one, and a dump of
// the flight recorder.
func TestDoorsOfJob(t *testing.T) {
	dir := t.TempDir()
	for rank := range 3 {
		text := fmt.Sprintf("2026-03-01 09:59:00 INFO rank %d of world_size=3 starts\n", rank)
		for step := range 6 {
			text += fmt.Sprintf("2026-03-01 10:0%d:00 INFO [rank %d] step %d memory allocated: %d.00 GiB\n", step, rank, 10*step, 40+6*step*(rank%2))
		}
		end := "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, remote process exited or there was a network error"
		if rank == 1 {
			end = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 80.00 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 79.00 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and 500.00 MiB is reserved by PyTorch but unallocated."
		}
		write(t, dir, fmt.Sprintf("rank_%d.log", rank), fmt.Sprintf("%s[rank%d]: Traceback (most recent call last):\n[rank%d]: %s\n", text, rank, rank, end))
	}
	write(t, dir, "nccl_trace_rank_1.json", `{"version": "2.10", "pg_config": {"0": {"name": "0", "ranks": "[0, 1, 2]"}}, "entries": [{"process_group": ["0", "default_pg"], "collective_seq_id": 77, "state": "completed", "is_p2p": false, "retired": false}]}`)
	sameThroughAllDoors(t, dir, false)
	stdout, _, code := run("diagnose", dir, "--json")
	if code != exitProblem || !strings.Contains(stdout, `"since_step"`) || !strings.Contains(stdout, `"role": "first"`) {
		t.Errorf("exit status %d: %s", code, stdout)
	}
}

// TestDoorsOfRecording is the same for a folder that the recorder wrote: its manifest tells
// the processes, which the names of the files do not.
func TestDoorsOfRecording(t *testing.T) {
	dir := t.TempDir()
	dumps := map[string][]string{}
	for _, name := range []string{"image-leak/step-2", "image-leak/step-3", "image-leak/step-4", "peak/*", "logits/*"} {
		paths, err := filepath.Glob("../examples/" + name + ".pickle*")
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		example := strings.Split(name, "/")[0]
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file := example + "-" + filepath.Base(path)
			write(t, dir, file, string(data))
			dumps[example] = append(dumps[example], file)
		}
	}
	var all []string
	for i, example := range []string{"image-leak", "peak", "logits"} {
		var files []string
		for _, f := range dumps[example] {
			files = append(files, fmt.Sprintf(`{"file": %q, "time": "2026-01-02T03:04:05Z", "reason": "schedule", "devices": []}`, f))
		}
		all = append(all, fmt.Sprintf(`{"pid": %d, "rank": %d, "role": "trainer", "command": "python train.py", "recorded_since": "2026-01-02T03:00:00Z", "dumps": [%s]}`, 40+i, i, strings.Join(files, ", ")))
	}
	write(t, dir, "strandline.json", fmt.Sprintf(`{"schema": "strandline.record/1", "strandline": "1", "command": ["python", "train.py"], "started": "2026-01-02T03:00:00Z", "processes": [%s], "notes": []}`, strings.Join(all, ", ")))
	sameThroughAllDoors(t, dir, false)
	stdout, _, code := run("diagnose", dir, "--json")
	if code != exitProblem || !strings.Contains(stdout, `"process": "rank0 pid40 (trainer)"`) || !strings.Contains(stdout, `"kind": "leak"`) {
		t.Errorf("exit status %d: %s", code, stdout)
	}
}
