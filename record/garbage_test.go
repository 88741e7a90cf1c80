package record

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestGarbage tells what Python's collector would free from what a name leads to, and says
// nothing of either at the exit, when what the program kept is garbage too.
func TestGarbage(t *testing.T) {
	t.Parallel()
	const code = `
import gc
import strandline, torch
from torch import Tensor

class Ring:
    def __init__(self, value):
        self.value, self.me = value, self

class Slots:
    __slots__ = "value", "me"
    def __init__(self, value):
        self.value, self.me = value, self

def failed():
    value = Tensor()
    try:
        raise ValueError
    except ValueError as e:
        error = e

gc.disable()
for _ in range(3):
    Ring(Tensor())
Slots(Tensor())
failed()
KEPT = [Ring(Tensor())]

def main():
    far = Ring(Tensor())
    far.table = {"far": far}
    table, far = far.table, None
    strandline.snapshot()
    return table

TABLE = main()
`
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			p := program{code: "import strandline._holders as passes; passes.BUDGET = passes.LIBRARIES = 600.0; del passes" + code, command: []string{python}, options: Options{EverySteps: 1000}}
			r := p.run(t)
			r.silent(t, 0, "")
			for _, d := range r.one(t).Dumps {
				var h held
				if err := json.Unmarshal(d.HeldBy, &h); err != nil || h.Error != "" || h.Bound != "" || len(h.Unowned) > 0 {
					t.Fatalf("%s: held by %s: %v", d.Reason, d.HeldBy, err)
				}
				got := map[string]int{}
				for _, x := range h.Holders {
					got[x.Path] += len(x.Blocks)
				}
				cycles := got["reference cycles of Ring, Slots, ValueError"] + got["reference cycles of Ring, Slots, frame"] // by the version of Python
				switch {
				case d.Reason == "call" && (cycles != 5 || got["KEPT[0].value"] != 1 || len(h.Sampled) != 7):
					t.Errorf("before the exit: %v of %d", got, len(h.Sampled))
				case d.Reason == "exit" && (cycles != 0 || got["KEPT[0].value"] != 1 || len(h.Sampled) != 2):
					t.Errorf("at the exit: %v of %d", got, len(h.Sampled))
				}
			}
			if got := reasons(r.one(t)); !slices.Equal(got, []string{"call", "exit"}) {
				t.Errorf("snapshots: %v", got)
			}
		})
	}
}
