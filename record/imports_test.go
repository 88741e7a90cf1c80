package record

import (
	"slices"
	"testing"
)

// TestImportsNothing has the recorder's thread do all that it does, in a program
// that reports each import of that thread: beside the imports of the program they
// can end in a deadlock.
func TestImportsNothing(t *testing.T) {
	t.Parallel()
	r := program{
		modules: map[string]string{
			"lazy.py": "print('a lazy module was loaded')",
			"kept.py": "# -*- coding: iso8859-16 -*-\nCACHE = []\n",
		},
		code: `
import importlib.util, json, os, socket, sys, threading, time, types
class Probe:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread().name == "strandline":
            print("the recorder imports", name, flush=True)
sys.meta_path.insert(0, Probe())

import torch
lookup = torch.__getattr__
kept = types.ModuleType("kept")
kept.__file__ = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kept.py")
kept.CACHE = [torch.Tensor()]
sys.modules["kept"] = kept
spec = importlib.util.find_spec("lazy")
loader = importlib.util.LazyLoader(spec.loader)
lazy = importlib.util.module_from_spec(spec)
loader.exec_module(lazy)
object.__getattribute__(lazy, "__dict__")["tensors"] = [torch.Tensor()]

import strandline, strandline._recorder
r = strandline._recorder.current()
optimizer = torch.optim.SGD()
while r.reclaims < 2 or r.dumps < 3:
    optimizer.step()
    time.sleep(0.001)
with socket.socket(socket.AF_UNIX) as s:
    s.connect("\0strandline/%d" % os.getpid())
    replies = s.makefile()
    for do in ("status", "stats", "snapshot", "reclaim"):
        s.sendall(json.dumps({"do": do}).encode() + b"\n")
        if "error" in json.loads(replies.readline()):
            print("no answer to", do)
strandline.snapshot()
if "torch._inductor" in sys.modules:
    print("a snapshot imports torch._inductor")

# Other threads have it, also while a snapshot is taken.
def snapshot(original=torch.cuda.memory._snapshot):
    if torch.__getattr__ is lookup:
        print("the program's own lookup is in place")
    other = threading.Thread(target=lambda: found.append(torch._inductor))
    other.start()
    other.join()
    return original()
with r.lock:
    found = []
    torch.cuda.memory._snapshot, original = snapshot, torch.cuda.memory._snapshot
    strandline.snapshot()
    torch.cuda.memory._snapshot = original
    if found != [sys.modules.get("torch._inductor")] or torch.__getattr__ is not lookup:
        print("found", found, "and then", torch.__getattr__)
`,
		options: Options{EverySeconds: 0.02, Above: 1, ReclaimSeconds: 0.01, ReclaimAbove: 1},
	}.run(t)
	r.silent(t, 0, "")
	got := reasons(r.one(t))
	for _, want := range []string{"schedule", "above", "call", "exit"} {
		if !slices.Contains(got, want) {
			t.Errorf("snapshots for %v, want one for %s", got, want)
		}
	}
}
