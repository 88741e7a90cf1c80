package planner

import (
	"fmt"

	"strandline/plan"
)

// machineOptions are the flags of plan that state how GPUs are arranged in nodes.
type machineOptions struct {
	nodes, each int64
	link        float64
}

func (o *machineOptions) add(f *Flags) {
	f.Int64Var(&o.nodes, "nodes", 0, "nodes `N` that share the GPUs")
	f.Int64Var(&o.each, "gpus-per-node", 0, "GPUs `N` of a node with fast links (default 8; GB200: 72)")
	f.Float64Var(&o.link, "node-link", 0, "inter-node bandwidth per GPU, `GB`/s (default 50)")
}

// divide returns the number of GPUs and how many of them a node has.
func (o *machineOptions) divide(gpus int64, g *plan.GPU) (all, node int64, err error) {
	const maxNodes = 1 << 16
	switch {
	case o.nodes < 0 || o.nodes > maxNodes || o.each < 0 || o.each > maxNodes:
		return 0, 0, fmt.Errorf("--nodes %d with --gpus-per-node %d is out of range", o.nodes, o.each)
	case !(o.link >= 0 && o.link < 1e5):
		return 0, 0, fmt.Errorf("--node-link %g is not a bandwidth in GB/s", o.link)
	case o.nodes > 0 && o.each > 0 && gpus <= 1:
		gpus = o.nodes * o.each
	case o.nodes > 0 && o.each > 0 && gpus != o.nodes*o.each:
		return 0, 0, fmt.Errorf("%d GPUs are not %d nodes of %d", gpus, o.nodes, o.each)
	case o.nodes > 0 && o.each == 0 && gpus <= 1:
		gpus = o.nodes * g.Node()
	case o.nodes > 0 && gpus%o.nodes != 0:
		return 0, 0, fmt.Errorf("%d GPUs cannot be divided among %d nodes", gpus, o.nodes)
	}
	switch {
	case o.nodes > 0:
		return gpus, gpus / o.nodes, nil
	case o.each > 0:
		return gpus, o.each, nil
	}
	return gpus, g.Node(), nil
}
