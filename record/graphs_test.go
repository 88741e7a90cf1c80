package record

import (
	"maps"
	"testing"
)

// TestHoldersOfGraphs measures chains, and leaves tensors alone that only the walk
// and C++ refer to.
func TestHoldersOfGraphs(t *testing.T) {
	t.Parallel()
	h := holders(t, program{options: Options{EverySteps: 1000}, code: `
import strandline, torch
from torch._tensor import Node, Tensor

torch.cuda.allocate(512)  # of no Python object

class Meter:
    def update(self, n):
        for _ in range(n):
            self.node = Node("AddBackward0", *([self.node] if hasattr(self, "node") else []))
        self.total = Tensor(node=self.node)

meter = Meter()
for n in 20000, 5000:
    meter.update(n)
    strandline.snapshot()
`})
	if len(h) != 2 || len(h[1].Graphs) != 1 || len(h[1].Unowned) == 0 {
		t.Fatalf("%+v", h)
	}
	if g := h[1].Graphs[0]; g.Path != "meter.total" || g.Node != "AddBackward0" || g.ChainLength != 25000 || g.Grew == nil || *g.Grew != 5000 {
		t.Errorf("%+v", g)
	}
}

// TestHoldersOfLargeSteps does not take the graph of a step that is measured in part for a
// longer one at the next look, and follows one that is carried over.
func TestHoldersOfLargeSteps(t *testing.T) {
	t.Parallel()
	h := holders(t, program{options: Options{EverySteps: 1000}, code: `
import strandline, torch
from torch._tensor import Node, Tensor

class Numbered(Node):
    made = 0
    def __init__(self, name, *below):
        super().__init__(name, *below)
        Numbered.made += 1
        self.number = Numbered.made
    def _sequence_nr(self):
        return self.number

def step(node):
    for _ in range(4000):
        node = Numbered("ViewBackward0", *([Numbered("MulBackward0", node)] if node else []))
    return node

class State: pass

state, carried = State(), None
for _ in range(3):
    state.loss = Tensor(node=step(None))
    carried = step(carried)
    state.carried = Tensor(node=carried)
    strandline.snapshot()
`})
	if len(h) != 3 {
		t.Fatalf("%+v", h)
	}
	for _, g := range h[2].Graphs {
		if grew := g.Grew != nil && *g.Grew > 3000; grew != (g.Path == "state.carried") {
			t.Errorf("%+v", g)
		}
	}
	if len(h[2].Graphs) != 2 {
		t.Errorf("%+v", h[2])
	}
}

// TestHoldersOfSharedGraphs counts the graph of a state that is carried over for the
// state, not for the loss that was computed from it and has the longer chain, and that of
// a sum for the sum.
func TestHoldersOfSharedGraphs(t *testing.T) {
	t.Parallel()
	h := holders(t, program{options: Options{EverySteps: 1000}, code: `
import strandline, torch
from torch._tensor import Node, Tensor

class State: pass

state = State()
node = Node("GruBackward0")
for _ in range(99):
    node = Node("GruBackward0", node)
state.hidden = Tensor(node=node)
loss = Tensor(node=Node("MeanBackward0", Node("PowBackward0", node)))

one = Node("MulBackward0", Node("MulBackward0"))
total = one
for _ in range(300):
    total = Node("AddBackward0", total)
state.total = Tensor(node=total)
last = Tensor(node=one)
strandline.snapshot()
`})
	if len(h) != 1 {
		t.Fatalf("%+v", h)
	}
	nodes := map[string]int{}
	for _, g := range h[0].Graphs {
		nodes[g.Path] = g.Nodes
	}
	if want := map[string]int{"state.hidden": 100, "loss": 2, "state.total": 302, "last": 0}; !maps.Equal(nodes, want) {
		t.Errorf("%v, want %v", nodes, want)
	}
}
