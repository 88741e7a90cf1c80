//go:build linux && amd64

package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strandline/internal/test/live"
	"strandline/stack"
	"strandline/torch/snapshot"
)

// program requests and releases from the first line of its standard input to the
// second, of which the last one fails, is still before and after, and writes what it did. Sizes are different ones,
// so that a part of it can be found in the whole.
const program = `import ctypes, json, os, select, sys, time
lib = ctypes.CDLL(sys.argv[1])
lib.request.restype = lib.request_here.restype = lib.request_on.restype = ctypes.c_void_p
lib.request.argtypes = lib.request_here.argtypes = [ctypes.c_size_t]
lib.request_on.argtypes = [ctypes.c_size_t, ctypes.c_void_p]
lib.release.argtypes = lib.release_raw.argtypes = [ctypes.c_void_p]
log = []

def keep(size):
    p = (lib.request if size % 2 else lib.request_here)(size)
    log.append(("alloc", p, size, 0))
    return p

def step(i):
    a = keep(1000 + i)
    b = keep(2_000_000 + i)
    p = lib.request_on(5000 + i, 77)
    log.append(("alloc", p, 5000 + i, 77))
    log.append(("free", a)); lib.release(a)
    log.append(("free", p)); lib.release_raw(p)
    return b

old = [keep(100 + i) for i in range(50)]
print("ready", flush=True)
os.read(0, 1)
i, held = 0, []
while not select.select([0], [], [], 0.002)[0]:
    held.append(step(i))
    if len(held) > 5:
        b = held.pop(0)
        log.append(("free", b)); lib.release(b)
    if i % 40 == 0 and old:
        b = old.pop()
        log.append(("free", b)); lib.release(b)
    if i % 50 == 7:
        lib.request(1 << 41)
        lib.empty()
    i += 1
lib.request(1 << 41)
json.dump(log, open(sys.argv[2] + ".tmp", "w"))
os.rename(sys.argv[2] + ".tmp", sys.argv[2])
time.sleep(1000)
`

// A running is a Python program with a stand-in of PyTorch's library.
type running struct {
	pid      int
	in, file string
}

// begin starts a program.
func begin(t *testing.T, program, library string) running {
	t.Helper()
	python := live.Tool(t, "python3")
	dir := t.TempDir()
	script, out := filepath.Join(dir, "train.py"), filepath.Join(dir, "log.json")
	if err := os.WriteFile(script, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "in")
	pid, line := live.Start(t, "sh", "-c", `mkfifo "$0" && exec 3<>"$0" && exec "$@" <&3`, fifo, python, script, library, out)
	if line != "ready" {
		t.Fatalf("it says %q", line)
	}
	return running{pid, fifo, out}
}

// next lets the program go on.
func (r running) next(t *testing.T) {
	if err := os.WriteFile(r.in, []byte("\n"), 0); err != nil {
		t.Error(err)
	}
}

// done reports whether the program has written what it did.
func (r running) done() bool {
	_, err := os.Stat(r.file)
	return err == nil
}

// wait waits until the program is done.
func (r running) wait(t *testing.T) {
	for deadline := time.Now().Add(patient); !r.done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the program does not end: it was harmed")
		}
	}
}

// patient is how long a test waits before it fails.
const patient = 5 * time.Minute

// while records the program from before it goes on until enough reports so, which
// is asked about once a second.
func (r running) while(t *testing.T, o Options, enough func(Result) bool) (*snapshot.Snapshot, *Result) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	going := false
	o.PID, o.Duration = r.pid, patient
	o.Progress = func(now Result) {
		switch {
		case !going:
			going = true
			r.next(t)
		case enough(now):
			stop()
		}
	}
	return recorded(t, ctx, o)
}

// recorded records a process for some time, and reads what is written of it.
func recorded(t *testing.T, ctx context.Context, o Options) (*snapshot.Snapshot, *Result) {
	t.Helper()
	s, r, err := Record(ctx, o)
	live.Need(t, "BPF", err)
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	back, err := snapshot.Read(&b, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if back.Partial != nil || len(back.Faults) > 0 {
		t.Errorf("the snapshot breaks rules: %v %v", back.Partial, back.Faults)
	}
	return back, r
}

// did is what the program did, in order.
type did struct {
	op         string
	addr, size uint64
	stream     uint64
}

func logOf(t *testing.T, text []byte) (out []did) {
	t.Helper()
	var log [][]any
	if err := json.Unmarshal(text, &log); err != nil {
		t.Fatal(err)
	}
	for _, l := range log {
		d := did{op: l[0].(string), addr: uint64(l[1].(float64))}
		if d.op == "alloc" {
			d.size, d.stream = uint64(l[2].(float64)), uint64(l[3].(float64))
		}
		out = append(out, d)
	}
	return out
}

func eventsOf(s *snapshot.Snapshot) (out []did) {
	tr := s.Devices()[0].Trace
	for k, a := range tr.Action {
		d := did{addr: tr.Addr[k]}
		switch a {
		case snapshot.Alloc:
			d.op, d.size, d.stream = "alloc", uint64(tr.Size[k]), s.Stream(tr.Stream[k])
		case snapshot.FreeCompleted:
			d.op = "free"
		default:
			continue
		}
		out = append(out, d)
	}
	return out
}

func TestRecord(t *testing.T) {
	live.Traces(t)
	library := live.Caching(t, "Native")
	for _, c := range []struct {
		name string
		test func(t *testing.T, library string)
	}{{"agrees", agrees}, {"bounded", bounded}, {"ends", ends}, {"unharmed", unharmed}, {"storm", storm}} {
		t.Run(c.name, func(t *testing.T) { c.test(t, library) })
	}
}

// agrees requires the events to be those of the program, with its lines.
func agrees(t *testing.T, library string) {
	p := begin(t, program, library)
	ending := false
	s, r := p.while(t, Options{}, func(now Result) bool {
		if now.Requests > 200 && now.Failed > 0 && !ending {
			ending = true
			p.next(t)
		}
		return p.done()
	})
	p.wait(t)
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	log, got := logOf(t, text), eventsOf(s)
	if !r.Complete() || r.Start != nil || r.End != nil {
		t.Errorf("the recording is not complete: %+v", r)
	}
	if r.Failed == 0 || r.Segments == 0 {
		t.Errorf("got %d failed requests and %d segments, want some", r.Failed, r.Segments)
	}
	if len(got) < 100 {
		t.Fatalf("got %d events", len(got))
	}
	at := 0
	for at < len(log) && log[at] != got[0] {
		at++
	}
	for k, e := range got {
		if at+k >= len(log) || log[at+k] != e {
			t.Fatalf("event %d of %d is %+v; the program did %+v", k, len(got), e, log[at:min(at+k+1, len(log))][k:])
		}
	}
	checkStacks(t, s)
}

// checkStacks requires the lines of the program that requests were made at.
func checkStacks(t *testing.T, s *snapshot.Snapshot) {
	t.Helper()
	seen := map[string]int{}
	tr := s.Devices()[0].Trace
	for k, a := range tr.Action {
		if a != snapshot.Alloc && a != snapshot.SegmentAlloc {
			continue
		}
		var lines []string
		for _, id := range s.Stacks.Frames(tr.Stack[k]) {
			f := s.Stacks.At(id)
			lines = append(lines, fmt.Sprintf("%s:%d", f.Function, f.Line))
		}
		seen[strings.Join(lines, " ")]++
		if tr.Stack[k] == stack.None {
			t.Fatalf("event %d has no stack", k)
		}
	}
	for _, want := range []string{"keep:10 step:15 <module>:28", "keep:10 step:16 <module>:28", "step:17 <module>:28"} {
		if seen[want] == 0 {
			t.Errorf("no request was made at %s; got %v", want, seen)
		}
	}
}

// bounded keeps the newest events alone.
func bounded(t *testing.T, library string) {
	p := begin(t, program, library)
	s, r := p.while(t, Options{MaxEvents: 100}, func(now Result) bool { return now.Dropped > 0 })
	n := s.Devices()[0].Trace.Len()
	if r.Dropped == 0 || r.Complete() || n < 100 || n > 130 {
		t.Errorf("of %d requests %d events were kept and %d dropped", r.Requests, n, r.Dropped)
	}
}

// ends has a process that ends while it is recorded.
func ends(t *testing.T, library string) {
	p := begin(t, program, library)
	s, r := p.while(t, Options{}, func(now Result) bool {
		if now.Requests > 50 {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
		return false
	})
	if !r.Ended || !errors.Is(r.End, errEnded) || r.Complete() {
		t.Errorf("got %+v", r)
	}
	if n := s.Devices()[0].Trace.Len(); n < 50 || len(s.Segments) == 0 {
		t.Errorf("got %d events and %d segments", n, len(s.Segments))
	}
}

// unharmed requires code to be as it was when the recording is over, and a
// signal's interrupt to end it.
func unharmed(t *testing.T, library string) {
	p := begin(t, program, library)
	before := codeOf(t, p.pid)
	var during []byte
	_, r := p.while(t, Options{Began: func() { during = codeOf(t, p.pid) }}, func(now Result) bool { return now.Requests > 0 })
	if bytes.Equal(before, during) {
		t.Error("the probes were not there")
	}
	if !bytes.Equal(before, codeOf(t, p.pid)) {
		t.Error("the code is not as it was")
	}
	if r.Requests == 0 || r.End != nil && !errors.Is(r.End, errBusy) {
		t.Errorf("got %+v", r)
	}
	p.next(t)
	p.wait(t)
}

// storm has a program that requests and releases as fast as it can: every event is
// there, or counts as lost.
func storm(t *testing.T, library string) {
	const times = 100_000
	p := begin(t, fmt.Sprintf(`import ctypes, os, sys, time
lib = ctypes.CDLL(sys.argv[1])
lib.storm.argtypes = [ctypes.c_size_t]
print("ready", flush=True)
os.read(0, 1)
lib.storm(%d)
open(sys.argv[2], "w").close()
time.sleep(1000)
`, times), library)
	_, r := p.while(t, Options{}, func(Result) bool { return p.done() })
	p.wait(t)
	if n := r.Requests + r.Frees + r.Unknown + r.Lost; n != 2*times {
		t.Errorf("%d events are there or lost, of %d: %+v", n, 2*times, r)
	}
	if r.Lost > 0 && r.Complete() {
		t.Errorf("%d events are lost, and it counts as complete", r.Lost)
	}
	lost := 0
	for _, g := range r.Gaps {
		lost += g.Lost
		if r.End == nil && !g.Closed {
			t.Errorf("a gap is not closed: %+v", g)
		}
	}
	if lost != r.Lost {
		t.Errorf("%d events are lost, and %d in gaps", r.Lost, lost)
	}
}

// codeOf is the code of the allocator's library in a process.
func codeOf(t *testing.T, pid int) (code []byte) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Error(err)
		return nil
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Error(err)
		return nil
	}
	defer mem.Close()
	for _, line := range strings.Split(string(maps), "\n") {
		var from, to int64
		if strings.Contains(line, "r-xp") && strings.Contains(line, "libc10_cuda.so") {
			fmt.Sscanf(line, "%x-%x", &from, &to)
			b := make([]byte, to-from)
			if _, err := mem.ReadAt(b, from); err != nil {
				t.Error(err)
			}
			code = append(code, b...)
		}
	}
	return code
}

func TestRefused(t *testing.T) {
	live.Traces(t)
	sleeping := "print('ready', flush=True); import time; time.sleep(1000)"
	loading := "import ctypes, sys; ctypes.CDLL(sys.argv[1])\n" + sleeping
	cpu := filepath.Join(t.TempDir(), "libtorch_cpu.so")
	live.Tool(t, "gcc")
	text, err := os.ReadFile(live.Libcuda(t)) // any library, by that name
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cpu, text, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, program, library, want string }{
		{"no PyTorch", sleeping, "", "PyTorch is not loaded yet"},
		{"no CUDA", loading, cpu, "a PyTorch without CUDA"},
		{"another allocator", loading, live.Caching(t, "CudaMallocAsync"), "backend:cudaMallocAsync"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := begin(t, c.program, c.library)
			_, _, err := Record(context.Background(), Options{PID: p.pid, Duration: time.Second})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, _, err := Record(context.Background(), Options{PID: 1 << 30, Duration: time.Second}); err == nil || !strings.Contains(err.Error(), "no process") {
		t.Errorf("of no process: %v", err)
	}
}
