package record

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestGarbage tells what Python's collector would free from what a name leads to. At the exit it
// calls cycles of one tensor each so, and says nothing of a list that is in one.
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

def listed():
    history = [Tensor() for _ in range(3)]
    history.append(history)

TABLE = main()
listed()
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
					path, _, _ := strings.Cut(x.Path, " of Ring, Slots") // and classes by the version of Python
					got[x.Kind+" "+path] += len(x.Blocks)
				}
				want := map[string]int{"garbage reference cycles": 5, "python KEPT[0].value": 1, "python table['far'].value in main()": 1}
				if d.Reason == "exit" {
					want = map[string]int{"cycles reference cycles": 5, "python KEPT[0].value": 1, "python TABLE['far'].value": 1}
				}
				if !maps.Equal(got, want) || len(h.Sampled) != 7 {
					t.Errorf("%s: %v of %d, want %v", d.Reason, got, len(h.Sampled), want)
				}
			}
			if got := reasons(r.one(t)); !slices.Equal(got, []string{"call", "exit"}) {
				t.Errorf("snapshots: %v", got)
			}
		})
	}
}
