package record

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

// held is what a snapshot's holders come to.
type held struct {
	Error   string
	Bound   string
	Holders []struct {
		Kind, Path, File string
		Line             int
		Lines            []int
		Blocks           []uint64
	}
	Graphs []struct {
		Path, Node  string
		Nodes       int
		ChainLength int `json:"chain_length"`
		Grew        *int
	}
	Sampled []uint64 `json:"blocks_sampled"`
	Unowned []uint64
}

// holders are those of the snapshots that a program calls for, in order.
func holders(t *testing.T, p program) (out []held) {
	t.Helper()
	p.code = "import strandline._holders as passes; passes.BUDGET = passes.LIBRARIES = 600.0; del passes" + p.code // a slow machine
	r := p.run(t)
	r.silent(t, 0, "")
	for _, d := range r.one(t).Dumps {
		if d.Reason != "call" {
			continue
		}
		var h held
		if err := json.Unmarshal(d.HeldBy, &h); err != nil || h.Error != "" {
			t.Fatalf("held by %s: %v", d.HeldBy, err)
		}
		out = append(out, h)
	}
	return out
}

const shapes = `
import asyncio, collections, contextvars, functools, threading, weakref
import numpy, strandline, torch
from torch import Tensor

TABLE = numpy.ndarray([None, Tensor()])
TRACE = contextvars.ContextVar("trace")
TRACE.set({"steps": [Tensor()]})
CACHE = []
CACHE += [Tensor() for _ in range(3)]
BY_ID = {}
for i in range(3):
    BY_ID["req", i] = Tensor()
RING = collections.deque([(1, Tensor())])

class Meter:
    def __init__(self):
        self.total = Tensor()

class Trainer:
    outputs = [Tensor()]
    def __init__(self):
        self.meters = {"loss": Meter()}

class Box:
    __slots__ = ("kept",)

trainer, box = Trainer(), Box()
box.kept = [Tensor()]

def closure():
    seen = [Tensor()]
    def hook():
        return seen
    return hook

HOOK = closure()

def default(acc=[Tensor()]):
    pass

ERRORS = []
def fail():
    lost = Tensor()
    raise ValueError

try:
    fail()
except ValueError as e:
    ERRORS.append(e)

def generate():
    inside = Tensor()
    yield inside

GENERATOR = generate()
next(GENERATOR)
PARTIAL = functools.partial(print, Tensor())

@functools.lru_cache(maxsize=None)
def cached(i):
    return Tensor()

cached(1)
WEAK = weakref.WeakKeyDictionary()
key = Meter()
WEAK[key] = Tensor()
ready, done = threading.Event(), threading.Event()

def work():
    mine = Tensor()
    ready.set()
    done.wait()

thread = threading.Thread(target=work)
thread.start()
ready.wait()

def main():
    local = [Tensor()]
    strandline.snapshot()

main()
done.set()
thread.join()
`

// numpy stands in for NumPy, whose arrays the collector does not look into.
const numpy = `
class Objects:
    hasobject = True
    def __eq__(self, other):
        return other is object

class ndarray:
    __slots__ = ("kept",)
    dtype, ndim = Objects(), 1
    size = property(lambda self: len(self.kept))
    flat = property(lambda self: iter(self.kept))
    def __init__(self, kept):
        self.kept = kept
`

// TestHolders finds tensors by every sort of path.
func TestHolders(t *testing.T) {
	t.Parallel()
	want := []string{
		"BY_ID[...]", "CACHE[...]", "ERRORS[0].__traceback__: lost in fail()", "GENERATOR: inside in generate()",
		"HOOK.__closure__.seen[0]", "PARTIAL.args[0]", "RING[0][1]", "TABLE[1]", "TRACE.get()['steps'][0]", "Trainer.outputs[0]", "WEAK.data[<Meter>]", "box.kept[0]",
		"cached.cache (functools.lru_cache)[1]", "default.__defaults__ (acc)[0]", "local[0] in main()", "mine in work()",
		"key.total", "trainer.meters['loss'].total",
	}
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			h := holders(t, program{code: shapes, command: []string{python}, options: Options{EverySteps: 1000}, modules: map[string]string{"numpy.py": numpy}})[0]
			var got []string
			for _, x := range h.Holders {
				got = append(got, x.Path)
				if !strings.HasSuffix(x.File, "train.py") || x.Line == 0 {
					t.Errorf("%s is at %s:%d", x.Path, x.File, x.Line)
				}
			}
			for _, path := range want {
				if !slices.Contains(got, path) {
					t.Errorf("%s is not found", path)
				}
			}
			if len(got) != len(want) || len(h.Unowned) > 0 || h.Bound != "" {
				t.Errorf("found %q; unowned %v, bound %q", got, h.Unowned, h.Bound)
			}
		})
	}
}

// TestHoldersAtTheExit states the lines of globals of a program that has run to its end,
// which Python has removed the name of its file from.
func TestHoldersAtTheExit(t *testing.T) {
	t.Parallel()
	r := program{code: "from torch import Tensor\nCACHE = []\nCACHE += [Tensor()]\n"}.run(t)
	r.silent(t, 0, "")
	var h held
	if err := json.Unmarshal(r.one(t).Dumps[0].HeldBy, &h); err != nil || len(h.Holders) != 1 {
		t.Fatalf("%+v, %v", h, err)
	}
	if x := h.Holders[0]; x.Path != "CACHE[0]" || !strings.HasSuffix(x.File, "train.py") || x.Line != 3 {
		t.Errorf("%+v", x)
	}
}

// TestHoldersThatAreSuspended finds the locals of generators and coroutines that wait and
// that nobody has a name for.
func TestHoldersThatAreSuspended(t *testing.T) {
	t.Parallel()
	const code = `
import types
import strandline, torch
from torch import Tensor

@types.coroutine
def pause():
    yield

async def worker():
    done = [Tensor()]
    await pause()

def task():
    for _ in worker().__await__():
        yield

def batches():
    kept = [Tensor()]
    for _ in task():
        yield

for _ in batches():
    strandline.snapshot()
`
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			h := holders(t, program{code: code, command: []string{python}, options: Options{EverySteps: 1000}})[0]
			var got []string
			for _, x := range h.Holders {
				got = append(got, x.Path)
			}
			slices.Sort(got)
			if want := []string{"done[0] in worker()", "kept[0] in batches()"}; !slices.Equal(got, want) || h.Bound != "" {
				t.Errorf("found %q, unowned %v, bound %q", got, h.Unowned, h.Bound)
			}
		})
	}
}

// TestHoldersAreBounded states a bound that was reached, and leaves nothing behind.
func TestHoldersAreBounded(t *testing.T) {
	t.Parallel()
	h := holders(t, program{options: Options{EverySteps: 1000}, code: `
import gc, sys
import strandline, torch, strandline._holders
from torch import Tensor

FIRST = [[i] for i in range(5000)]
CACHE = [[[[Tensor()]]]]
interval, garbage = sys.getswitchinterval(), gc.isenabled()
strandline._holders.NODES = 1000
before = sys.getrefcount(CACHE[0][0][0][0])

def main():
    local = Tensor()
    strandline.snapshot()
    address, local = local.data_ptr(), None
    left = [o for o in gc.get_objects() if type(o) is Tensor and o.data_ptr() == address]
    assert not left

main()
assert sys.getrefcount(CACHE[0][0][0][0]) == before
assert (interval, garbage) == (sys.getswitchinterval(), gc.isenabled())
`})
	if len(h) != 1 || h[0].Bound != "1000 objects" {
		t.Errorf("%+v", h)
	}
}

// TestHoldersKeepNothing takes a snapshot while the collector is off, as programs have it
// that collect at moments of their own: what the program drops after it is gone.
func TestHoldersKeepNothing(t *testing.T) {
	t.Parallel()
	const code = `
import gc, itertools
import strandline, torch
from torch import Tensor

class Box:
    pass

def main():
    gc.collect()
    gc.disable()
    boxes = [Box() for _ in range(1000)]
    for box in boxes:
        box.kept = Tensor()
    addresses = {box.kept.data_ptr() for box in boxes}
    strandline.snapshot()
    del box
    boxes.clear()
    left = [o for o in gc.get_objects() if type(o) is Tensor and o.data_ptr() in addresses or type(o) is itertools._tee_dataobject]
    assert not left, len(left)

main()
`
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			holders(t, program{code: code, command: []string{python}, options: Options{EverySteps: 1000}})
		})
	}
}

// TestHoldersEndInTime lets the clock of a pass come to its deadline at several moments,
// among tens of thousands of objects, and counts the lines that it runs then: a few
// milliseconds of them, to name what was found.
func TestHoldersEndInTime(t *testing.T) {
	t.Parallel()
	const code = `
import sys, time, types
import torch, strandline._holders as passes
from torch._tensor import Node, Tensor

class Leaf(Tensor):
    __slots__ = ("grad",)
    requires_grad = True

class Link:
    pass

LISTS = [[i] for i in range(4000)]
FIRST = last = Link()
for i in range(4000):
    last.next = last = Link()
last.kept = KEPT = [Tensor() for _ in range(40)]
LEAVES = [Leaf() for _ in range(2000)]
for leaf in LEAVES:
    leaf.grad = None
GRAPHS, node = [], None
for i in range(4000):
    node = Node("AddBackward0", *([node] if node else []))
    if i % 4 == 0:
        GRAPHS.append(Tensor(node=node))
wanted = [t.data_ptr() for t in KEPT] + [1000001 + 1024 * i for i in range(40)]
passes.LIBRARIES = float("inf")
del KEPT, last, leaf, node

def look(until):
    """How often a pass looks at the clock, the lines that it runs from look until on, and what it finds."""
    looks = lines = 0

    def monotonic():
        nonlocal looks
        looks += 1
        if looks == until:  # tracing takes longer than the pass, so it begins here
            frame = sys._getframe(1)
            while frame is not None:
                frame.f_trace = trace
                frame = frame.f_back
            sys.settrace(trace)
        return 1e9 if looks >= until else 1.0

    def trace(frame, event, argument):
        nonlocal lines
        if frame.f_code.co_filename.startswith(passes._HERE):
            lines += event == "line"
            return trace

    modules = passes, passes._owned, passes._graph
    clock = passes._clock
    for module in modules:
        module._clock = types.SimpleNamespace(now=monotonic)
    try:
        found = passes.Holders(torch).look(wanted, 1000.0)
    finally:
        sys.settrace(None)
        for module in modules:
            module._clock = clock
    return looks, lines, found

looks, _, found = look(float("inf"))
paths = [h["path"] for h in found["holders"] + found["graphs"]]
assert paths == ["FIRST.next….kept[...]", "GRAPHS[...]"] and "bound" not in found, (paths, found.get("bound"))
for part in range(5):
    _, lines, found = look(looks * part // 5 + 1)
    assert lines < 30000 and found.get("bound") == "time", (part, lines, found.get("bound"))
print("in time")
`
	program{code: code, options: Options{EverySteps: 1000}}.run(t).silent(t, 0, "in time\n")
}

// TestHoldersLeaveForeignTensors takes no reference to a tensor that C++ alone refers to
// into the next instruction: PyTorch warns of such, once C++ releases it.
func TestHoldersLeaveForeignTensors(t *testing.T) {
	t.Parallel()
	code := `
import ctypes, itertools, sys
import strandline._holders, strandline._owned
from torch import Tensor

class Named(Tensor):  # with a dict
    pass

CACHE = [Named() for _ in range(100)]
foreign = [Named() for _ in range(10)]
ids = set(map(id, foreign))
counts = [ctypes.c_uint32.from_address(i) for i in ids]
for t in foreign:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(t))
    t.of_another = CACHE[0]
del t, foreign[:]
assert {c.value for c in counts} == {1}
seen, taken = set(), set()

def trace(frame, event, argument):
    if frame.f_code.co_filename.endswith(("_owned.py", "_holders.py")) and frame.f_code.co_name != "spread":
        frame.f_trace_opcodes = True
        seen.add(frame.f_code.co_name)
        if {c.value for c in counts} != {1}:
            taken.add((frame.f_code.co_name, frame.f_lineno))
        return trace

import torch
holders = strandline._holders.Holders(torch)
sys.settrace(trace)
held_by = holders.look([t.data_ptr() for t in CACHE], float("inf"))
owners = strandline._owned.referrers([CACHE[0]], {id(Named)})
dicts = [d for d in owners if type(d) is dict and "of_another" in d]
owners += strandline._owned.referrers(dicts, {id(Named)})
owned = strandline._owned.referred({id(Named)}, {id(type(sys))}, itertools.repeat(True, 10**9), float("inf"))
sys.settrace(None)
assert {"look", "referred", "referrers"} <= seen, seen
assert not taken, taken
assert [h["path"] for h in held_by["holders"]] == ["CACHE[...]"], held_by
assert set(map(id, CACHE)) <= set(map(id, owned))
assert not ids & set(map(id, owned)) and not ids & set(map(id, owners))
print("left alone")
`
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			if exec.Command(python, "-c", "import ctypes").Run() != nil {
				live.Missing(t, "ctypes", "this Python has none")
			}
			program{code: code, command: []string{python}, options: Options{EverySteps: 1000}}.run(t).silent(t, 0, "left alone\n")
		})
	}
}

// TestLinesAreQuiet reads a source of which the parser warns.
func TestLinesAreQuiet(t *testing.T) {
	t.Parallel()
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			r := program{
				code:    "import os, strandline._lines as lines\nodd = os.path.join(os.path.dirname(__file__), 'odd.py')\nprint([n.lineno for n in lines._tree(odd).body])",
				command: []string{python}, modules: map[string]string{"odd.py": "import re\na = re.compile('\\d\\\\\\'\\\n')\nb = f'\\N{BULLET}'\nc = '\\N{EM DASH}'\n"},
			}.run(t)
			r.silent(t, 0, "[1, 2, 4, 5]\n")
		})
	}
}

// TestHoldersWithoutDevice records a program that initializes no device: the chain of a running
// sum, and the tensors in a list.
func TestHoldersWithoutDevice(t *testing.T) {
	t.Parallel()
	r := program{env: []string{"STANDIN=cpu"}, options: Options{EverySeconds: 0.5}, code: `
import time, strandline, strandline._recorder, torch
from torch._tensor import Node
class Storage:
    def __init__(self, at): self.at = at
    def data_ptr(self): return self.at
    def nbytes(self): return 4096
class Tensor(torch.Tensor):
    is_cuda, is_cpu = False, True
    def __init__(self, node=None):
        self._at, self._hidden = id(self), torch._tensor._hide(node)
    def untyped_storage(self): return Storage(self._at)
CACHE = []
def main():
    node = None
    while strandline._recorder.current() is None: time.sleep(0.05)
    for _ in range(4):
        for _ in range(20):
            node = Node("AddBackward0", *([node] if node else []))
            total = Tensor(node)
            CACHE.append(Tensor())
        strandline.snapshot()
main()
`}.run(t)
	r.silent(t, 0, "")
	p := r.one(t)
	if len(p.Devices) > 0 || p.Torch == "" {
		t.Errorf("process is %+v", p)
	}
	var chains, kept []int
	for _, d := range p.Dumps {
		if d.Reason != "call" {
			continue
		}
		var h struct {
			Graphs, Host []struct {
				Path, File string
				Line       int
				Length     int `json:"chain_length"`
				Count      int
				Bytes      int64
			}
		}
		if err := json.Unmarshal(d.HeldBy, &h); err != nil {
			t.Fatal(err)
		}
		for _, g := range h.Graphs {
			if g.Path == "total in main()" && g.Line == 20 {
				chains = append(chains, g.Length)
			}
		}
		for _, g := range h.Host {
			if g.Path == "CACHE[...]" && g.Line == 21 && g.Bytes == int64(g.Count)*4096 {
				kept = append(kept, g.Count)
			}
		}
		if d.Host <= 0 || len(d.Devices) > 0 {
			t.Errorf("snapshot is %+v", d)
		}
	}
	if want := []int{20, 40, 60, 80}; !slices.Equal(chains, want) || !slices.Equal(kept, want) {
		t.Errorf("chains of %v, and %v kept; want %v", chains, kept, want)
	}
}
