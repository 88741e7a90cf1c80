package record

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestHoldersInLibraries finds tensors in main memory that only the frame of a library leads to,
// such as those that a callback of a trainer keeps, once they grow.
func TestHoldersInLibraries(t *testing.T) {
	t.Parallel()
	r := program{env: []string{"STANDIN=cpu"}, options: Options{EverySeconds: 1e6}, code: `
import os, sys, time, strandline, strandline._recorder, torch
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages")
os.mkdir(folder)
with open(os.path.join(folder, "lib.py"), "w") as f:
    f.write("class Trainer:\n  def __init__(self): self.history = []\n  def train(self, step, end):\n    for n in range(4):\n      step(self.history)\n      end()\n")
sys.path.insert(0, folder)
import lib
class Storage:
    def __init__(self, at): self.at = at
    def data_ptr(self): return self.at
    def nbytes(self): return 1 << 14
class Tensor(torch.Tensor):
    is_cuda, is_cpu = False, True
    def __init__(self):
        self._at, self._hidden = id(self), torch._tensor._hide(None)
    def untyped_storage(self): return Storage(self._at)
def step(history):
    history += [Tensor() for _ in range(20)]
while strandline._recorder.current() is None: time.sleep(0.05)
lib.Trainer().train(step, strandline.snapshot)
`}.run(t)
	r.silent(t, 0, "")
	var counts []int
	for _, d := range r.one(t).Dumps {
		var h struct {
			Host []struct {
				Path  string
				Count int
			}
		}
		if err := json.Unmarshal(d.HeldBy, &h); err != nil {
			t.Fatal(err)
		}
		for _, x := range h.Host {
			if x.Path == "self.history[...] in Trainer.train()" {
				counts = append(counts, x.Count)
			}
		}
	}
	if !slices.Equal(counts, []int{20, 40, 60, 80}) {
		t.Errorf("%v", counts)
	}
}
