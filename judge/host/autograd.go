package host

import (
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/ledger"
	"strandline/host/symbolize"
	"strandline/internal/lazyregexp"
)

// graphShare is the least share of a heap's growth that nodes of autograd's graph must
// have for the growth to be a kept graph: each node comes with its tensor.
const graphShare = 0.1

// ofEngine matches the functions that run a backward pass: what they allocate ends with
// it.
var ofEngine = lazyregexp.New(`torch::autograd::(Engine|GraphTask|InputBuffer|ReadyQueue)`)

// makesNode reports whether autograd itself requested memory, for a node of its graph:
// tensors are allocated by the functions it calls.
func makesNode(frames []symbolize.Frame) bool {
	for _, f := range Requested(frames) {
		if node := strings.Contains(f.Function, "torch::autograd::"); node || !InLibrary(f) && !strings.HasPrefix(f.Function, "std::") {
			return node && !ofEngine.MatchString(f.Function)
		}
	}
	return false
}

// graph turns the growth of a heap into that of autograd's graph if nodes of a graph are
// a part of it, and puts first the calls that make the graph: the largest of those
// outside a backward pass.
func (g *hostGrowth) graph() {
	var nodes, all int64
	for _, u := range g.uses {
		all += g.held(u)
		if makesNode(u.Frames) {
			nodes += g.held(u)
		}
	}
	if g.kind != finding.HeapLeak || g.shape != grows || nodes == 0 || float64(nodes) < graphShare*float64(all) {
		return
	}
	g.kind = finding.AutogradGraph
	slices.SortStableFunc(g.uses, func(a, b *ledger.Use) int { return outside(b) - outside(a) })
}

// outside is 1 for calls from a line that is not within a backward pass, else 0.
func outside(u *ledger.Use) int {
	within := slices.ContainsFunc(u.Frames, func(f symbolize.Frame) bool {
		return strings.Contains(f.Function, "torch::autograd::Engine") || f.Function == "_engine_run_backward" || f.Function == "Tensor.backward"
	})
	if within || len(u.Frames) == 0 {
		return 0
	}
	return 1
}

var graphRemedies = []finding.Remedy{
	finding.CodeChange("call .detach(), or .item() of a scalar, on what is kept beyond the step (a running loss, a list of outputs): each such tensor keeps its whole graph"),
	finding.CodeChange("compute what needs no gradients in torch.no_grad() or torch.inference_mode()"),
}
