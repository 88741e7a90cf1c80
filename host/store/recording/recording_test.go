package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"strandline/finding"
	"strandline/host/gpu/nvsmi"
	"strandline/host/store/journal"
)

func text(s string) *string { return &s }

// held is what a GPU has.
var held = &GPUState{PIDs: []int{7}, Count: &nvsmi.Reading{Devices: []nvsmi.Device{{Index: "0"}}, Processes: []nvsmi.Use{}}, Pieces: []GPUPiece{{PID: 7, Addr: 1 << 62, Bytes: 1, Owner: "NCCL"}}}

// write makes a recording of two samples and a judgment between them.
func write(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.trace")
	w, err := Create(path, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	grows := Stack{ID: 1, Call: "mmap", Complete: true, LiveBytes: 4096, LiveCount: 1, Frames: []Frame{{Function: text("grow")}}}
	rests := Stack{ID: 2, Call: "brk", LiveBytes: 8192, LiveCount: 1}
	doc := &Document{Schema: "strandline.trace/1", PID: 7, Stacks: []Stack{grows}, Findings: []finding.Finding{{Kind: finding.MmapLeak, Severity: finding.Problem}}}
	steps := []func() error{
		func() error { return w.Begin(Header{PID: 7, Name: "server", Backend: "bpf", BeganUS: 5}) },
		func() error {
			return w.Sample(Sample{Seconds: 1, RSS: 100, GPU: []GPUOwner{{"NCCL", "device", 64, 1}, {"cuBLAS", "device", 32, 1}}}, []Stack{grows, rests})
		},
		func() error { return w.Document(doc) },
		func() error { return w.GPU(held) },
		func() error {
			grows.LiveBytes, grows.LiveCount = 12288, 3
			return w.Sample(Sample{Seconds: 2, RSS: 9000, GPU: []GPUOwner{{"cuBLAS", "device", 32, 1}}}, []Stack{grows, rests})
		},
		w.Close,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestRecording(t *testing.T) {
	path := write(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !Is(bytes.NewReader(raw)) {
		t.Error("it is not known as a recording")
	}
	run, err := Read(bytes.NewReader(raw))
	if err != nil || run.Partial != nil {
		t.Fatal(err, run.Partial)
	}
	want := []Sample{
		{Seconds: 1, RSS: 100, Stacks: []StackBytes{{1, 4096, 1}, {2, 8192, 1}}, GPU: []GPUOwner{{"NCCL", "device", 64, 1}, {"cuBLAS", "device", 32, 1}}},
		// The others hold what they held, except for one that returned it.
		{Seconds: 2, RSS: 9000, Stacks: []StackBytes{{1, 12288, 3}}, GPU: []GPUOwner{{"NCCL", "device", 0, 0}}},
	}
	if !reflect.DeepEqual(run.Samples, want) {
		t.Errorf("got %+v, want %+v", run.Samples, want)
	}
	if !reflect.DeepEqual(run.GPU, held) {
		t.Errorf("got %+v, want %+v", run.GPU, held)
	}
	if len(run.Document.Findings) != 1 || run.Stacks[1].Frames[0].Function == nil || run.PID != 7 {
		t.Errorf("got %+v", run)
	}
	if _, err := Create(path, 1<<30); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a recording is written over: %v", err)
	}
}

// Earlier versions named no process where one was watched: what is known of it is in the
// first line.
func TestProcessOfFormerFindings(t *testing.T) {
	one, two := []Process{{PID: 7}}, []Process{{PID: 7}, {PID: 8}}
	for _, c := range []struct {
		processes []Process
		had, want string
	}{{nil, "", "pid 7 (server)"}, {one, "", "pid 7 (server)"}, {one, "pid 7 (server, rank 0)", "pid 7 (server, rank 0)"}, {two, "", ""}} {
		run := Run{Header: Header{PID: 7, Name: "server"}, Document: &Document{Processes: c.processes, Findings: []finding.Finding{{Process: c.had}}}}
		run.nameProcess()
		if got := run.Document.Findings[0].Process; got != c.want {
			t.Errorf("of %d processes, %q: %q", len(c.processes), c.had, got)
		}
	}
}

// A recording that never began leaves no file.
func TestNotBegun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.trace")
	w, err := Create(path, 1<<30)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
}

// former is the same recording without frames.
func former(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile(write(t))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	lines, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Replace(lines, []byte(`"strandline.recording/3","of":"trace"`), []byte(`"`+formerSchema+`"`), 1)
}

// TestCutAnywhere reads what is left when the machine stops at any byte: the moments that
// were written whole.
func TestCutAnywhere(t *testing.T) {
	raw, err := os.ReadFile(write(t))
	if err != nil {
		t.Fatal(err)
	}
	samples := 0
	for n := range raw {
		run, err := Read(bytes.NewReader(raw[:n]))
		if err != nil {
			if samples > 0 || !errors.Is(err, errNone) {
				t.Fatalf("cut at %d of %d: %v", n, len(raw), err)
			}
			continue
		}
		if run.Partial != nil || run.Document == nil || len(run.Samples) < samples {
			t.Fatalf("cut at %d of %d: %+v", n, len(raw), run)
		}
		samples = len(run.Samples)
	}
	if samples != 2 {
		t.Errorf("%d samples", samples)
	}
}

// TestDamaged reads a recording up to where it is damaged: what follows is based on that.
func TestDamaged(t *testing.T) {
	raw, err := os.ReadFile(write(t))
	if err != nil {
		t.Fatal(err)
	}
	for at := 18; at+4 < len(raw); at++ { // behind the marker
		text := bytes.Clone(raw)
		clear(text[at : at+4])
		if run, err := Read(bytes.NewReader(text)); err == nil && run.Document == nil {
			t.Errorf("damaged at %d: no document", at)
		}
	}
}

// TestFormerCutAnywhere does so with a recording of an earlier version.
func TestFormerCutAnywhere(t *testing.T) {
	raw := former(t)
	header := bytes.IndexByte(raw, '\n') + 1
	for n := range raw {
		run, err := Read(bytes.NewReader(raw[:n]))
		if n < header {
			if err == nil {
				t.Fatalf("%d bytes of a header are taken", n)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		lines := bytes.Count(raw[:n], []byte("\n"))
		if whole := raw[n-1] == '\n'; whole != (run.Partial == nil) {
			t.Fatalf("cut at %d, behind %d lines: partial is %v", n, lines, run.Partial)
		}
		if run.Document == nil {
			t.Fatalf("cut at %d: no document", n)
		}
	}
	run, _ := Read(bytes.NewReader(raw[:bytes.Index(raw, []byte(`{"document"`))]))
	if d := run.Document; len(d.Stacks) != 2 || d.Stacks[0].LiveBytes != 8192 || d.Stacks[1].LiveBytes != 4096 {
		t.Errorf("without a judgment the samples give %+v", d)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"schema":"strandline.recording/1","pid":1}` + "\n" + `{"mark":{"stacks":[{"id":1}]}}` + "\n" + `{"stack":{"id":1}}` + "\n" + `{"document":{}}` + "\n")
	f.Fuzz(func(t *testing.T, raw string) {
		run, err := Read(strings.NewReader(raw))
		if err == nil && run.Document == nil {
			t.Error("no document")
		}
	})
}

// TestReadBounds reads what unfolds to much more than the file has.
func TestReadBounds(t *testing.T) {
	const head = `{"schema":"` + formerSchema + `","pid":1}` + "\n"
	for _, line := range []string{
		`{"stack":{"id":1,"frames":[` + strings.Repeat("{},", 1_000_000) + `{}]}}`,
		`{"document":{"gpu":{"stacks":[` + strings.Repeat("{},", 1_000_000) + `{}]}}}`,
		strings.Repeat(`{"mark":{}}`+"\n", 300_000),
	} {
		run, err := Read(strings.NewReader(head + line + "\n"))
		if err != nil || run.Partial == nil || !strings.Contains(run.Partial.Error(), "more memory than its size accounts for") {
			t.Errorf("%.30s: %v", line, err)
		}
	}
	run, err := Read(strings.NewReader(head + `{"stack":{"id":1,"frames":[` + strings.Repeat("{},", 10_000) + `{}]}}` + "\n"))
	if err != nil || run.Partial != nil || len(run.Stacks[1].Frames) != 10_001 {
		t.Errorf("a long stack: %v", err)
	}
}

// TestPackedBounds reads a small file that unfolds to millions of moments.
func TestPackedBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.trace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := journal.NewWriter(f, journal.Trace)
	if err != nil {
		t.Fatal(err)
	}
	w.Begin(Header{Schema: journal.Schema, Of: of, PID: 1})
	for range 300_000 {
		w.Line(line{Sample: &Sample{}})
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Read(bytes.NewReader(raw))
	if err != nil || run.Partial == nil || !strings.Contains(run.Partial.Error(), "more memory than its size accounts for") {
		t.Errorf("%d bytes: %v, %v", len(raw), run.Partial, err)
	}
}

// TestManyJudgments reads the recording of a long trace of many stacks, whose judgments
// together unfold to much more than the file has: only the last is kept.
func TestManyJudgments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.trace")
	w, err := Create(path, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	d := &Document{Stacks: make([]Stack, 2_000)}
	for i := range d.Stacks {
		d.Stacks[i] = Stack{ID: i + 1, LiveBytes: int64(i), Frames: make([]Frame, 10)}
	}
	if err := w.Begin(Header{PID: 1}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := w.Document(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if run, err := Read(f); err != nil || run.Partial != nil || len(run.Document.Stacks) != 2_000 {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestDeepStacks reads the recording of a short trace of a program that imports modules:
// its stacks are deep, and alike, so that the file is small.
func TestDeepStacks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.trace")
	w, err := Create(path, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	const stacks, depth = 400, 110
	d := &Document{Schema: DocumentSchema, PID: 1, Stacks: make([]Stack, stacks)}
	for i := range d.Stacks {
		d.Stacks[i] = Stack{ID: i + 1, LiveBytes: 1 << 20, LiveCount: 1}
		for at := range int64(depth) {
			file, function, line := "/usr/lib/python3/dist-packages/torch/__init__.py", fmt.Sprintf("_call_with_frames_removed_%d", at), at*int64(1+i%40)
			d.Stacks[i].Frames = append(d.Stacks[i].Frames, Frame{File: &file, Line: &line, Function: &function})
		}
	}
	if err := w.Begin(Header{PID: 1}); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		if err := errors.Join(w.Sample(Sample{Seconds: float64(n)}, d.Stacks), w.Document(d)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Read(bytes.NewReader(raw))
	if err != nil || run.Partial != nil || len(run.Document.Stacks) != stacks || len(run.Samples) != 5 {
		t.Errorf("%d bytes: %v, %v, %d moments", len(raw), err, run.Partial, len(run.Samples))
	}
}

// TestBounded writes far more moments than the bound has room for: they cover the whole
// time, and what stacks hold at the last of them is right.
func TestBounded(t *testing.T) {
	const most, moments = 64 << 10, 50000
	path := filepath.Join(t.TempDir(), "run.trace")
	w, err := Create(path, most)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(Header{PID: 7}); err != nil {
		t.Fatal(err)
	}
	stacks := []Stack{{ID: 1}, {ID: 2}, {ID: 3}}
	random := rand.New(rand.NewPCG(1, 2)) // so that it does not compress
	for n := range moments {
		for i := range stacks {
			stacks[i].LiveBytes = random.Int64()
		}
		if err := w.Sample(Sample{Seconds: float64(n), RSS: random.Int64()}, stacks); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Document(&Document{Schema: DocumentSchema, PID: 7}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Read(bytes.NewReader(raw))
	if err != nil || run.Partial != nil || !run.Judged {
		t.Fatal(err, run.Partial, run.Judged)
	}
	n := len(run.Samples)
	if len(raw) > most+4<<10 || len(raw) < most/2 || n < 100 || run.Samples[0].Seconds != 0 {
		t.Fatalf("%d bytes, %d moments", len(raw), n)
	}
	last := run.Samples[n-1]
	if last.Seconds < moments/2 || len(last.Stacks) != len(stacks) {
		t.Errorf("the last moment is %+v", last)
	}
	for i := 2; i < n; i++ {
		if run.Samples[i].Seconds-run.Samples[i-1].Seconds < run.Samples[i-1].Seconds-run.Samples[i-2].Seconds {
			t.Fatalf("moments become more frequent after %v s", run.Samples[i-1].Seconds)
		}
	}
}
