package plan

import (
	"fmt"
	"slices"

	"strandline/plan/model"
)

// Parallel states how a model is divided among GPUs.
type Parallel struct {
	TP, PP int64 // tensor and pipeline parallel
	EP     int64 // ranks among which whole experts are divided; 1 divides their matrices by TP
	DP     int64 // replicas of the attention, where the experts are shared
	CP     int64 // ranks among which the tokens of a sequence are divided
	Node   int64 // GPUs of a node, which its links join; 0 if not stated
	// Stages are the layers of each pipeline stage; empty divides them evenly.
	Stages []int64
}

func (p Parallel) Normal() Parallel {
	for _, n := range []*int64{&p.TP, &p.PP, &p.EP, &p.DP, &p.CP} {
		*n = max(*n, 1)
	}
	return p
}

// Layers are the layers of each pipeline stage. vLLM's get_pp_indices gives what
// is left over to the Layers before the last, since that has lm_head.
func (p Parallel) Layers(layers int64) []int64 {
	if int64(len(p.Stages)) == p.PP {
		return p.Stages
	}
	out := make([]int64, p.PP)
	for i := range out {
		out[i] = layers / p.PP
	}
	for i := range layers % p.PP {
		out[max(p.PP-2-i, 0)]++
	}
	return out
}

// Nodes returns how many nodes the ranks take, 1 if the size of a node is not stated.
func (p Parallel) Nodes() int64 {
	if p.Node <= 0 {
		return 1
	}
	return (p.TP*p.PP + p.Node - 1) / p.Node
}

// Across returns the largest number of nodes that n neighboring ranks are on.
func (p Parallel) Across(n int64) int64 {
	switch {
	case p.Node <= 0 || p.Nodes() == 1:
		return 1
	case n > p.Node:
		return (n + p.Node - 1) / p.Node
	case p.Node%n != 0: // some group begins on one node and ends on the next
		return 2
	}
	return 1
}

// Divide divides GPUs into ranks of TP and stages of PP; 0 means not stated. TP stays
// inside a node, and must divide the heads.
func Divide(m *model.Model, gpus, tp, pp, node int64) (Parallel, error) {
	switch {
	case tp == 0 && pp == 0:
		for tp = min(gpus, node); tp > 1 && (gpus%tp != 0 || !divides(tp, m)); tp-- {
		}
		pp = gpus / tp
	case tp == 0:
		tp = max(gpus/pp, 1)
	case pp == 0:
		pp = max(gpus/tp, 1)
	}
	if tp*pp != gpus && gpus > 1 {
		return Parallel{}, fmt.Errorf("%d GPUs are not TP %d × PP %d", gpus, tp, pp)
	}
	return Parallel{TP: tp, PP: pp, Node: node}, nil
}

// divides reports whether the attention heads of every layer can be divided evenly.
func divides(tp int64, m *model.Model) bool {
	return !slices.ContainsFunc(m.Layers, func(l model.Layer) bool { return Undivided(&l.Cache, tp) != "" })
}

// Undivided names the heads of a layer that engines cannot divide among ranks of TP:
// those of the queries evenly, those of keys evenly or in copies. Source: vLLM,
// model_executor/layers/linear.py, QKVParallelLinear.
func Undivided(c *model.Cache, tp int64) string {
	switch {
	case c.Kind == model.State || c.QueryHeads == 0:
		return ""
	case c.QueryHeads%tp != 0:
		return fmt.Sprintf("%d attention heads", c.QueryHeads)
	case c.Heads > 0 && c.Heads%tp != 0 && tp%c.Heads != 0:
		return fmt.Sprintf("%d key-value heads", c.Heads)
	}
	return ""
}
