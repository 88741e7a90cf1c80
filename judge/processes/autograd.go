package processes

import (
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/proc/footprint"
	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
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
// a part of it, by the calls that made them, by how many there were from look to look, or as
// a container that grew holds tensors with theirs,
// and puts first the calls that make the graph: the largest of those outside a backward
// pass. It returns how many nodes more there are, if they were counted.
func (g *hostGrowth) graph(looks *footprint.Growth) (more int64) {
	var nodes, all int64
	for _, u := range g.uses {
		all += g.residentBytes(u)
		if makesNode(u.Frames) {
			nodes += g.residentBytes(u)
		}
	}
	held := false
	if looks != nil && looks.After != nil {
		more, held = keptNodes(looks.After.Nodes, g.resident), looks.After.Graphs
	}
	if g.kind != finding.HeapLeak || g.shape != grows || more == 0 && !held && (nodes == 0 || float64(nodes) < graphShare*float64(all)) {
		return 0
	}
	g.kind = finding.AutogradGraph
	sorts.StableBy(g.uses, func(a, b *ledger.Use) int { return outsideBackward(b) - outsideBackward(a) })
	return more
}

// By how many nodes, and from how many looks to the next, a graph grows that is known to
// be kept: the graph of a step comes and goes. Fewer looks will do if the nodes are a part
// of the growth.
const (
	minNodes      = 100
	minRisesAlone = 4
	minRises      = 3
	nodeBytes     = 200 // what a node takes at least, with its parts
)

// keptNodes returns how many nodes more there were at the last look than at the first, if
// there were more from look to look; otherwise 0. Looks before the first node do not count: a
// program that still loads PyTorch has none. The heap grew by some bytes.
func keptNodes(nodes []int64, grown int64) int64 {
	for len(nodes) > 1 && nodes[1] == 0 {
		nodes = nodes[1:]
	}
	rises := len(nodes) - 1
	for i := range max(rises, 0) {
		if nodes[i+1] <= nodes[i] {
			return 0
		}
	}
	if rises < minRises {
		return 0
	}
	more := nodes[rises] - nodes[0]
	if more < minNodes || rises < minRisesAlone && float64(more*nodeBytes) < graphShare*float64(grown) {
		return 0
	}
	return more
}

// outsideBackward is 1 for calls from a line that is not within a backward pass, otherwise 0.
func outsideBackward(u *ledger.Use) int {
	within := slices.ContainsFunc(u.Frames, func(f symbolize.Frame) bool {
		return strings.Contains(f.Function, "torch::autograd::Engine") || f.Function == "_engine_run_backward" || f.Function == "Tensor.backward"
	})
	if within || len(u.Frames) == 0 {
		return 0
	}
	return 1
}

var graphRemedies = []finding.Remedy{
	finding.CodeChange("call .detach(), or .item() of a scalar, on tensors kept beyond the step (a running loss, a list of outputs): each keeps its whole graph"),
	finding.CodeChange("compute without gradients in torch.no_grad() or torch.inference_mode() where none are needed"),
}
