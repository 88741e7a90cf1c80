//go:build linux && amd64

package ptrace_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"strandline/host/calls/bpf"
	"strandline/host/calls/event"
	"strandline/host/calls/ptrace"
	"strandline/host/code/cpython"
	"strandline/host/code/image"
	"strandline/host/proc/procfs"
	"strandline/internal/test/eventtest"
	"strandline/internal/test/live"
)

// filtered is the argument by which this binary becomes a command that is traced.
const filtered = "be-a-filtered-command"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == filtered {
		const ready = 3
		fmt.Fprintln(os.Stderr, ptrace.Filtered(ready, os.Args[2:]))
		os.Exit(1)
	}
	eventtest.Main()
	goleak.VerifyTestMain(m)
}

// start traces a command.
func start(t *testing.T, command []string) (*ptrace.Tracer, *eventtest.Program) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if command[0] == "/proc/self/exe" {
		command = append([]string{exe}, command[1:]...)
	}
	stdin, in := pipe(t)
	out, stdout := pipe(t)
	tr, begin, err := ptrace.Start(exe, append([]string{filtered}, command...), stdin, stdout, os.Stderr)
	live.Need(t, "ptrace", err)
	t.Cleanup(tr.Close)
	begin()
	stdin.Close()
	stdout.Close()
	return tr, &eventtest.Program{PID: tr.PID, In: in, Out: bufio.NewReader(out)}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

// TestSource holds ptrace to what every source has to do.
func TestSource(t *testing.T) {
	live.Traces(t)
	eventtest.Run(t, func(t *testing.T, command []string) (event.Source, *eventtest.Program) { return start(t, command) })
}

// maps is a program that maps at several depths and in two threads.
const maps = `import mmap, sys, threading, time
kept = []

class Store:
    def __init__(self, depth, n):
        self.grow(depth, n)

    def grow(self, depth, n):
        if depth:
            return self.grow(depth - 1, n)
        return sorted([n], key=lambda n: kept.append(mmap.mmap(-1, n)) or n)

def work(first):
    for i in range(first, 60, 2):
        Store(i % 7, (4 + i % 4) << (12 + i // 4))

print("ready", flush=True)
for line in sys.stdin:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
    print("done", flush=True)
`

// TestPythonFrames has the frames of the same calls walked by the programs in the
// kernel and by the walker in Go: both find the same.
func TestPythonFrames(t *testing.T) {
	live.Traces(t)
	python := live.Tool(t, "python3")
	kernel, err := bpf.Start()
	live.Need(t, "BPF", err)
	defer kernel.Close()
	script := filepath.Join(t.TempDir(), "maps.py")
	if err := os.WriteFile(script, []byte(maps), 0o600); err != nil {
		t.Fatal(err)
	}
	tr, p := start(t, []string{python, script})
	p.Step(t, "")
	layout := layoutOf(t, p.PID)
	if err := kernel.Watch(p.PID); err != nil {
		t.Fatal(err)
	}
	for _, s := range []event.Source{kernel, tr} {
		if err := s.Python(p.PID, layout); err != nil {
			t.Fatal(err)
		}
		if err := s.Budget(10000); err != nil {
			t.Fatal(err)
		}
	}
	p.Step(t, "go")
	ours, theirs := samplesOf(t, tr), samplesOf(t, kernel)
	compared, deepest := 0, 0
	for call, got := range ours {
		want := theirs[call]
		if want == nil {
			continue // its stack was not copied
		}
		compared++
		deepest = max(deepest, len(got.Python))
		if got.PythonState != want.PythonState || !slices.Equal(got.Python, want.Python) {
			t.Errorf("of the call for %d bytes\nGo walks     %d %x\nthe kernel's %d %x", got.Len, got.PythonState, got.Python, want.PythonState, want.Python)
		}
	}
	if t.Logf("%d stacks compared, the deepest of %d frames", compared, deepest); compared < 30 || deepest < 9 {
		t.Error("these are too few")
	}
}

// A call is one that mapped.
type call struct {
	tid  uint32
	addr uint64
}

// samplesOf are the samples of mmap that have frames of Python, up to now.
func samplesOf(t *testing.T, s event.Source) map[call]*event.Sample {
	t.Helper()
	out := map[call]*event.Sample{}
	for from, until := event.Now(), uint64(0); until < from; time.Sleep(time.Millisecond) {
		b, err := s.Poll()
		if err != nil {
			t.Fatal(err)
		}
		until = b.Until
		for i := range b.Samples {
			if x := &b.Samples[i]; x.Op == event.Map && len(x.Python) > 0 {
				out[call{x.TID, x.Addr}] = x
			}
		}
	}
	return out
}

func layoutOf(t *testing.T, pid int) event.PythonLayout {
	t.Helper()
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(procfs.Process(pid), files)
	live.Need(t, "reading the memory of another process", err)
	defer im.Close()
	r, err := cpython.Find(im)
	if err != nil {
		t.Fatal(err)
	}
	return r.Layout()
}
