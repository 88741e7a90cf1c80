package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
	"strandline/torch/snapshot"
)

// TestEveryRelease records by the signatures of several releases of PyTorch, on
// every interpreter that there is.
func TestEveryRelease(t *testing.T) {
	for i, python := range pythons(t) {
		for k, release := range []string{"2.0", "2.3", "2.6", "2.11"} {
			if i > 0 && i%4 != k { // all on one interpreter, one on each of the others
				continue
			}
			t.Run(python+"/"+release, func(t *testing.T) {
				t.Parallel()
				r := program{code: train, command: []string{python}, env: []string{"STANDIN=" + release, "RANK=2"}, options: Options{EverySteps: 2}}.run(t)
				r.silent(t, 0, "trained\n")
				p := r.one(t)
				if got := reasons(p); !slices.Equal(got, []string{"step", "exit"}) {
					t.Fatalf("snapshots for %v", got)
				}
				if p.Rank == nil || *p.Rank != 2 || p.Role != "train" || p.Torch != release+".0" || !p.Ended || p.Steps != 3 {
					t.Errorf("process is %+v", p)
				}
				if want := fmt.Sprintf("train_rank2_pid%d.pickle", p.PID); filepath.Base(p.Dumps[0].File) != want {
					t.Errorf("file %s, want %s", p.Dumps[0].File, want)
				}
				s, err := snapshot.Open(filepath.Join(r.dir, p.Dumps[1].File), snapshot.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if n := s.Traces[0].Len(); s.Partial != nil || n != 10 || p.Dumps[1].Events != 10 {
					t.Errorf("the file has %d events, the manifest %d, want 10", n, p.Dumps[1].Events)
				}
			})
		}
	}
}

// TestPickle compares a file with the pickle that Python writes of the same snapshot.
func TestPickle(t *testing.T) {
	t.Parallel()
	r := program{code: `
import torch, pickle, strandline
blocks = [torch.cuda.allocate(i + 1) for i in range(2500)]
path = strandline.snapshot()
with open(path, "rb") as f:
    assert pickle.load(f) == torch.cuda.memory._snapshot()
print("same")
`}.run(t)
	r.silent(t, 0, "same\n")
}

func TestWithoutPyTorch(t *testing.T) {
	for _, c := range []struct{ name, code, release, note string }{
		{"no torch", `print("x")`, "", ""},
		{"no device", "import torch\nprint('x')", "2.6", ""},
		{"a build for the CPU", "import torch\nprint('x')", "cpu", ""},
		{"sys.meta_path replaced", "import sys\nsys.meta_path[:] = sys.meta_path[1:]\nimport torch\ntorch.cuda.init()\nprint('x')", "2.6", "imported unseen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := program{code: c.code, env: []string{"STANDIN=" + c.release}}.run(t)
			r.silent(t, 0, "x\n")
			if len(r.Processes) > 0 || len(r.Notes) > 0 != (c.note != "") || !noted(r.Manifest, c.note) && c.note != "" {
				t.Errorf("processes %v, notes %v; want the note %q", r.Processes, r.Notes, c.note)
			}
		})
	}
}

// TestLeavesNoTrace compares what a program sees with and without the recorder.
func TestLeavesNoTrace(t *testing.T) {
	t.Parallel()
	python := pythons(t)[0]
	r := program{command: []string{python}, code: `
import sys, threading
print([p for p in sys.path if "module-" in p], "sitecustomize" in sys.modules)
import torch
print(len(sys.meta_path), type(torch.__loader__).__module__, type(torch.__spec__.loader).__module__, threading.active_count())
`}.run(t)
	plain, err := exec.Command(python, "-c", "import sys; print('sitecustomize' in sys.modules, len(sys.meta_path))").Output()
	if err != nil {
		t.Fatal(err)
	}
	own, finders, _ := strings.Cut(strings.TrimSpace(string(plain)), " ")
	loader := "_frozen_importlib_external"
	r.silent(t, 0, fmt.Sprintf("[] %s\n%s %s %s 1\n", own, finders, loader, loader))
}

// TestSitecustomize runs the program's own sitecustomize, as it would be without ours.
func TestSitecustomize(t *testing.T) {
	t.Parallel()
	r := program{
		code:    "import sitecustomize\nprint(sitecustomize.mine, sitecustomize.__file__.endswith('train.py'))",
		modules: map[string]string{"sitecustomize.py": "mine = 'yes'\nprint('mine')"},
	}.run(t)
	r.silent(t, 0, "mine\nyes False\n")
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	r := program{code: `
import torch, glob, os
keep = torch.cuda.allocate(1 << 29)
def more():
    try:
        torch.cuda.allocate(1 << 30)
    except torch.OutOfMemoryError:
        pass
more()
print(len(glob.glob(os.environ["RECORDING"] + "/*/*.pickle")))
for i in range(9): more()
`}.run(t)
	r.silent(t, 0, "1\n")
	p := r.one(t)
	if got := reasons(p); !slices.Equal(got, []string{"oom", "oom", "oom", "exit"}) {
		t.Errorf("snapshots for %v", got)
	}
	if len(p.OutOfSpace) != 10 || p.OutOfSpace[0].Request != 1<<30 || p.OutOfSpace[0].Free != 1<<29 {
		t.Errorf("out of memory: %+v", p.OutOfSpace)
	}
}

// TestUnharmed lets the recorder fail in several ways, of which the program sees none.
func TestUnharmed(t *testing.T) {
	for _, c := range []struct {
		name, code, note string
		env              string
		options          Options
	}{
		{"snapshots raise", train, "no snapshot today", "STANDIN_SNAPSHOT=raise", Options{EverySteps: 1}},
		{"the folder goes", "import os, shutil, torch\ntorch.cuda.init()\nshutil.rmtree(os.environ['RECORDING'], ignore_errors=True)\nos.makedirs(os.environ['RECORDING'], exist_ok=True)\n" + train, "", "", Options{EverySteps: 1}},
		{"the quota is full", train, "the recording holds", "", Options{EverySteps: 1, MaxBytes: 1}},
		{"descriptors are closed", idle + "os.closerange(3, 4096)\nown = [os.pipe() for _ in range(16)]\n" + train + `
import strandline
strandline.snapshot()
for r, w in own:
    os.write(w, b"own")
    assert os.read(r, 9) == b"own"
`, "the program closed the recorder's sockets", "", Options{EverySteps: 1}},
		{"a function that is not there", "import json\n" + train, "steps are not counted", "", Options{EverySteps: 1, Steps: "json:nothing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := program{code: c.code, env: []string{c.env}, options: c.options}.run(t)
			r.silent(t, 0, "trained\n")
			if c.note != "" && !noted(r.Manifest, c.note) {
				t.Errorf("notes %v, want one with %q", r.Notes, c.note)
			}
		})
	}
}

// idle begins a recording, and goes on once the recorder's thread waits: the moment in
// which it looks at a descriptor and then uses it is not what is tested.
const idle = `
import os, sys, time, torch
torch.cuda.init()
import strandline._recorder
thread = strandline._recorder.current().thread
while sys._current_frames()[thread.ident].f_code.co_name != "select":
    time.sleep(0.01)
`

// TestPendingTask records programs whose event loop ends with a task that waits, which
// leaves iterators in the free list of _asyncio.
func TestPendingTask(t *testing.T) {
	t.Parallel()
	const code = `
import faulthandler
faulthandler.dump_traceback_later(120, exit=True)
import asyncio, torch
from torch import Tensor

async def wait():
    kept = [Tensor()]
    await asyncio.sleep(1e6)

async def serve():
    asyncio.ensure_future(wait())
    await asyncio.sleep(0)

asyncio.run(serve())
print("served")
`
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			r := program{code: code, command: []string{python}, options: Options{EverySteps: 1000}}.run(t)
			r.silent(t, 0, "served\n")
		})
	}
}

// TestKilled records a process that ends while it writes.
func TestKilled(t *testing.T) {
	t.Parallel()
	r := program{code: `
import os, signal, torch, strandline
torch.cuda.allocate(1)
strandline.snapshot()
write_file = os.write
def write(fd, data):
    if bytes(data[:2]) == b"\x80\x03":  # of a snapshot
        os.kill(os.getpid(), signal.SIGKILL)
    return write_file(fd, data)
import strandline._descriptors
strandline._descriptors.os = type("os", (), dict(vars(os), write=write))
strandline.snapshot()
`}.run(t)
	r.silent(t, 137, "")
	if p := r.one(t); !slices.Equal(reasons(p), []string{"call"}) || p.Ended {
		t.Errorf("snapshots for %v, ended %v", reasons(p), p.Ended)
	}
	if !noted(r.Manifest, "ended while it wrote") {
		t.Errorf("notes %v", r.Notes)
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "*", "*.tmp")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	r := program{code: `
import glob, os, time, torch
optimizer = torch.optim.SGD()
torch.cuda.allocate(1)
written = set()
while len(written) < 8:  # a step before the last snapshot is written takes none
    torch.cuda.free(torch.cuda.allocate(1000))
    optimizer.step()
    time.sleep(0.02)
    written.update(glob.glob(os.environ["RECORDING"] + "/*/*.pickle"))
`, options: Options{EverySteps: 1, MaxFiles: 5, Entries: 20}}.run(t)
	r.silent(t, 0, "")
	p := r.one(t)
	if n := len(p.Dumps); n != 5 {
		t.Fatalf("%d snapshots, want 5", n)
	}
	if first, last := p.Dumps[0].Step, p.Dumps[4]; first == nil || *first != 1 || last.Reason != "exit" || last.Events != 20 {
		t.Errorf("kept step %v to %+v", first, last)
	}
	files, _ := filepath.Glob(filepath.Join(r.dir, "*", "*"))
	if len(files) != 5 {
		t.Errorf("files %v", files)
	}
}

func TestSteps(t *testing.T) {
	const loop = `
import torch, engine
torch.cuda.allocate(1)
e = engine.Engine()
for i in range(4):
    with torch.autograd.profiler.record_function("iteration"):
        e.step()
        engine.poll()
print(engine.calls)
`
	const module = `
calls = 0
class Base:
    def step(self):
        global calls
        calls += 1
class Engine(Base):
    pass
def poll(): pass
`
	for _, steps := range []string{"annotation:iteration", "engine:Engine.step", "engine:poll"} {
		t.Run(steps, func(t *testing.T) {
			t.Parallel()
			r := program{code: loop, modules: map[string]string{"engine.py": module}, options: Options{EverySteps: 2, Steps: steps}}.run(t)
			r.silent(t, 0, "4\n")
			if p := r.one(t); p.Steps != 4 || !slices.Contains(reasons(p), "step") {
				t.Errorf("%d steps, snapshots for %v; notes %v", p.Steps, reasons(p), r.Notes)
			}
		})
	}
}

// TestShareOfSnapshots takes snapshots at each doubling of the steps within seconds, and those of the clock while all
// take little of the time.
func TestShareOfSnapshots(t *testing.T) {
	t.Parallel()
	r := program{code: `
import torch, strandline
from strandline import _recorder
torch.cuda.allocate(1)
r = _recorder.current()
r.next_at, r.next_step, r.options.every_seconds = float("inf"), 2, 0
def steps(n, paused):
    r.paused = paused
    for _ in range(n):
        strandline.step()
        while r.queue: pass
steps(60, 3.5)
assert not r.at_step_or_now("schedule") and r.due is None
steps(100, 1e9)  # until 160
steps(1, 0)
r.paused = 0
assert r.at_step_or_now("schedule") and r.due == "schedule"
steps(1, 0)
r.options.every_seconds, r.paused = 1.0, 1e9
assert r.at_step_or_now("schedule") and r.due == "schedule"
`}.run(t)
	r.silent(t, 0, "")
	p := r.one(t)
	var at []int
	for _, d := range p.Dumps {
		if d.Step != nil && d.Reason != "exit" {
			at = append(at, *d.Step)
		}
	}
	if want := []int{2, 4, 8, 16, 32, 161, 162}; !slices.Equal(at, want) {
		t.Errorf("snapshots at steps %v, want %v", at, want)
	}
}

// TestStepsWhileTracing takes no snapshot at a step while Python traces allocations, and the next
// one when that has ended.
func TestStepsWhileTracing(t *testing.T) {
	t.Parallel()
	r := program{code: `
import torch, strandline, tracemalloc
torch.cuda.allocate(1)
tracemalloc.start()
for i in range(12): strandline.step()
tracemalloc.stop()
strandline.step()
`, options: Options{Levels: "call"}}.run(t)
	r.silent(t, 0, "")
	p := r.one(t)
	i := slices.IndexFunc(p.Dumps, func(d Dump) bool { return d.Reason == "step" })
	if i < 0 || *p.Dumps[i].Step != 13 {
		t.Errorf("snapshots for %v: %+v", reasons(p), p.Dumps)
	}
}

// TestLookBeforeTracing looks for holders when lines are asked for, before Python traces.
func TestLookBeforeTracing(t *testing.T) {
	t.Parallel()
	r := program{code: `
import torch, strandline, tracemalloc
from strandline import _recorder
torch.cuda.allocate(1)
strandline.step()
open(_recorder.current().options.dir + "/.strandline/ask", "a").write("x")
strandline.step()
assert tracemalloc.is_tracing()
`, options: Options{Levels: "call"}}.run(t)
	r.silent(t, 0, "")
	if p := r.one(t); p.Dumps[0].Reason != "step" || *p.Dumps[0].Step != 2 {
		t.Errorf("snapshots for %v: %+v", reasons(p), p.Dumps)
	}
}

// TestStepWithoutDevice begins with the first step of a program without a device, which may end
// before a thread would.
func TestStepWithoutDevice(t *testing.T) {
	t.Parallel()
	r := program{env: []string{"STANDIN=cpu"}, options: Options{Levels: "call"}, code: `
import torch, strandline
from strandline import _recorder
assert _recorder.current() is None
strandline.step()
assert _recorder.current() is not None
`}.run(t)
	r.silent(t, 0, "")
}

func TestCall(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "own")
	module := t.TempDir()
	if err := WriteModule(module); err != nil {
		t.Fatal(err)
	}
	standin, _ := filepath.Abs("testdata/standin")
	c := exec.Command(pythons(t)[0], "-c", `
import sys, strandline
strandline.start(sys.argv[1], every="2steps", max_bytes="1GiB")
import torch
torch.cuda.allocate(1000)
for i in range(4): strandline.step()
strandline.snapshot()
print(sorted(strandline.reclaim()))
strandline.stop()
print(torch.cuda._recording)
`, dir)
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+module+string(os.PathListSeparator)+standin)
	out, err := c.CombinedOutput()
	if err != nil || !bytes.HasSuffix(out, []byte("]\nNone\n")) {
		t.Fatalf("%v: %s", err, out)
	}
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Processes) != 1 || len(m.Processes[0].Dumps) < 2 || m.Processes[0].Steps != 4 || len(m.Command) == 0 {
		t.Errorf("manifest %+v", m)
	}
}

func TestWhyUnseen(t *testing.T) {
	good := map[string]string{"PYTHONPATH": "/m:/x", variable: "{}"}
	for _, c := range []struct {
		command string
		environ map[string]string
		want    string
	}{
		{"python train.py -I", good, ""},
		{"python -m torch -S", good, ""},
		{"python -u -I train.py", good, "-I ignores PYTHONPATH"},
		{"python -uE train.py", good, "-E ignores PYTHONPATH"},
		{"python -S train.py", good, "-S does not load site"},
		{"python train.py", map[string]string{"PYTHONPATH": "/x", variable: "{}"}, "without PYTHONPATH"},
	} {
		if got := whyUnseen(strings.Fields(c.command), c.environ, "/m"); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
}

// TestUnseen names processes of which nothing was heard, but for children that one of
// which something was heard has forked.
func TestUnseen(t *testing.T) {
	o := observer{
		notes: []Note{{PID: 1, Command: "python -I a.py", Why: "-I"}, {PID: 2, Command: "python -I b.py", Why: "-I"}},
		silent: []Note{{PID: 3, Command: "frozen"}, {PID: 4, Command: "python train.py"}, {PID: 5, Command: "python train.py"},
			{PID: 6, Command: "python odd.py"}, {PID: 7, Command: "python full.py"}},
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, journals), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, journals, "pid7-1700000000.jsonl"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	m := &Manifest{}
	if err := m.gather(dir); err != nil {
		t.Fatal(err)
	}
	m.Processes, m.Notes, m.loaded = []Process{{PID: 2}}, []Note{{PID: 6, Why: "unseen"}}, map[int]bool{4: true}
	for _, c := range []struct {
		unwritable error
		want       []string // of processes 1, 3 and 7
	}{
		{nil, []string{"-I", "frozen or embedded", "the disk was full"}},
		{fs.ErrPermission, []string{"-I", "could not write to the folder of the recording: permission", "could not write to the folder of the recording: permission"}},
	} {
		got := o.unseen(m, c.unwritable)
		if len(got) != 3 || got[0].PID != 1 || got[1].PID != 3 || got[2].PID != 7 {
			t.Fatalf("%+v", got)
		}
		for i, want := range c.want {
			if !strings.Contains(got[i].Why, want) {
				t.Errorf("process %d: %s, want %q", got[i].PID, got[i].Why, want)
			}
		}
	}
}

// TestUnreached looks at a process that sees the folder of the module, and at one that
// does not.
func TestUnreached(t *testing.T) {
	live.Linux(t)
	o := newObserver(t.TempDir())
	if why := o.whyUnreached(procfs.Process(os.Getpid())); why != "" {
		t.Error(why)
	}
	o.module = filepath.Join(o.module, "gone")
	if why := o.whyUnreached(procfs.Process(os.Getpid())); !strings.Contains(why, "in a container") {
		t.Errorf("%q, want that it runs in a container", why)
	}
}

// TestUnseenDriver looks at a process that maps a library of the driver's name, and then
// also one of PyTorch's.
func TestUnseenDriver(t *testing.T) {
	live.Linux(t)
	python := live.Tool(t, "python3")
	dir := t.TempDir()
	for _, name := range []string{"libcuda.so.1", "libc10_cuda.so"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 4096), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(python, "-I", "-c", `
import mmap, sys
def load(name):
    with open(name, "rb") as f:
        m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    print("loaded", flush=True)
    sys.stdin.readline()
    return m
some = [load("libcuda.so.1"), load("libc10_cuda.so")]
`)
	c.Dir = dir
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		c.Wait()
	}()
	o := newObserver("/m")
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("it does not begin")
	}
	o.look(c.Process.Pid)
	if got := o.others(&Manifest{}); len(got) != 1 || got[0].PID != c.Process.Pid || len(o.unseen(&Manifest{}, nil)) != 0 {
		t.Errorf("with the driver alone: %+v and %+v", got, o.unseen(&Manifest{}, nil))
	}
	if _, err := in.Write([]byte("\n")); err != nil || !lines.Scan() {
		t.Fatal("it does not go on", err)
	}
	o.look(c.Process.Pid)
	if got := o.unseen(&Manifest{}, nil); len(got) != 1 || !strings.Contains(got[0].Why, "-I ignores") || len(o.others(&Manifest{})) != 0 {
		t.Errorf("with PyTorch: %+v and %+v", got, o.others(&Manifest{}))
	}
}

// TestManifestCannotBeWritten ends a session that cannot write its manifest, as on a disk
// that is full: what is known is reported, and stays in the folder.
func TestManifestCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "recording")
	s, err := Begin(Options{Dir: dir}, Manifest{Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	manifest, aside := filepath.Join(dir, ManifestName), filepath.Join(dir, "aside")
	if err := errors.Join(os.Rename(manifest, aside), os.MkdirAll(filepath.Join(manifest, "in the way"), 0o777)); err != nil {
		t.Fatal(err)
	}
	m, err := s.End(0)
	if err == nil || m == nil || m.ExitStatus == nil {
		t.Errorf("End returns %+v and %v", m, err)
	}
	if err := errors.Join(os.RemoveAll(manifest), os.Rename(aside, manifest)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, journals)); err != nil {
		t.Error(err)
	}
	if _, err := ReadManifest(dir); err != nil {
		t.Error(err)
	}
}
