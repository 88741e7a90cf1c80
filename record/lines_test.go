package record

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestHoldersOfDefaults names the line of a function for what its arguments keep, unless it adds to them itself.
func TestHoldersOfDefaults(t *testing.T) {
	t.Parallel()
	const code = `
import strandline, torch
from torch import Tensor

def add(acc=[]):
    acc.append(Tensor())

def other(kept):
    kept.append(Tensor())

HOOKS = [
    lambda kept=Tensor(): None]
add()
strandline.snapshot()
`
	want := map[string]int{"add.__defaults__ (acc)[0]": 6, "HOOKS[0].__defaults__ (kept)": 12}
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			h := holders(t, program{code: code, command: []string{python}, options: Options{EverySteps: 1000}})[0]
			for _, x := range h.Holders {
				if x.Line == 0 || x.Line != want[x.Path] {
					t.Errorf("%s: line %d, want %d", x.Path, x.Line, want[x.Path])
				}
			}
			if len(h.Holders) != len(want) {
				t.Errorf("%+v", h.Holders)
			}
		})
	}
}

// TestHoldersOfSeveralLines names, of the lines that add to a name, one that has run. Where several
// have, or Python does not know, it names them all.
func TestHoldersOfSeveralLines(t *testing.T) {
	t.Parallel()
	const code = `
import strandline, torch
from torch import Tensor

GLOBAL, BOTH = [], []

def never(x):
    GLOBAL.append(x)

def keep(x):
    GLOBAL.append(x)

def main(debug):
    local = []
    for i in range(50):
        if debug:
            local.append(Tensor())
            GLOBAL.append(Tensor())
        local.append(Tensor())
        keep(Tensor())
        BOTH.append(Tensor())
        if i > 10: BOTH.append(Tensor())
    strandline.snapshot()

main(False)
`
	lines := func(text string) (out []int) {
		for i, line := range strings.Split(code, "\n") {
			if strings.Contains(line, text) {
				out = append(out, i+1)
			}
		}
		return out
	}
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			want := map[string][]int{"local[...] in main()": lines("local.append"), "GLOBAL[...]": lines("GLOBAL.append"), "BOTH[...]": lines("BOTH.append")}
			if exec.Command(python, "-c", "import sys; exit(sys.version_info < (3, 11))").Run() == nil {
				want["local[...] in main()"], want["GLOBAL[...]"] = want["local[...] in main()"][1:], want["GLOBAL[...]"][1:2]
			}
			h := holders(t, program{code: code, command: []string{python}, options: Options{EverySteps: 1000}})[0]
			for _, x := range h.Holders {
				if x.Line != 0 {
					x.Lines = append(x.Lines, x.Line)
				}
				if len(want[x.Path]) == 0 || !slices.Equal(x.Lines, want[x.Path]) {
					t.Errorf("%s: lines %d, want %d", x.Path, x.Lines, want[x.Path])
				}
			}
			if len(h.Holders) != len(want) {
				t.Errorf("%d holders", len(h.Holders))
			}
		})
	}
}
