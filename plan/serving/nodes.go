package serving

import (
	"fmt"

	"strandline/plan"
	"strandline/plan/engine"
)

// node returns how many GPUs a node has.
func (s Setup) node() int64 {
	switch {
	case s.Parallel.Node > 0:
		return s.Parallel.Node
	case s.GPU != nil:
		return s.GPU.Node()
	}
	return 8
}

// nodeLink returns a GPU's share of the network between nodes.
func (s Setup) nodeLink() float64 {
	if s.NodeLink > 0 {
		return s.NodeLink
	}
	return plan.NodeLink
}

// Seconds of a message before its first byte, inside a node and between two.
const (
	hop     = 10e-6
	netHop  = 25e-6
	network = "25 µs between nodes"
)

// allReduce is the time to sum n bytes over the ranks of TP: a ring, which is as slow
// as its slowest link. Between nodes each GPU has its own port.
func (s Setup) allReduce(n float64) float64 {
	tp := float64(s.Parallel.TP)
	if tp == 1 {
		return 0
	}
	bytes := 2 * (tp - 1) / tp * n
	across := s.Parallel.Across(s.Parallel.TP)
	if across == 1 {
		return bytes/s.GPU.Link + hop
	}
	ports := max(s.Parallel.TP/across, 1)
	return bytes/min(s.GPU.Link, s.nodeLink()*float64(ports)) + hop + netHop*float64(across-1)
}

// handOver is the time to hand n bytes from stage to stage of the pipeline to its end.
func (s Setup) handOver(n float64) float64 {
	stages, nodes := s.Parallel.PP, s.Parallel.Nodes()
	between := min(nodes, stages) - 1
	inside := stages - 1 - between
	return float64(inside)*(n/s.GPU.Link+hop) + float64(between)*(n/s.nodeLink()+netHop)
}

// nodeNotes returns what the network between nodes carries.
func (s Setup) nodeNotes() (out []string) {
	p := s.Parallel
	if p.Nodes() == 1 {
		return nil
	}
	link := fmt.Sprintf("%.3g GB/s a GPU", s.nodeLink()/1e9)
	if n := p.Across(p.TP); n > 1 {
		text := fmt.Sprintf("TP %d lies on %d nodes: two all-reduces of each layer go over the network between them (%s, --node-link)", p.TP, n, link)
		if p.Node > 1 && p.TP%p.Node == 0 && p.DP == 1 {
			text += fmt.Sprintf("; TP %d with PP %d keeps them inside a node", p.Node, p.PP*p.TP/p.Node)
		}
		out = append(out, text)
	} else if p.PP > 1 {
		out = append(out, fmt.Sprintf("only the hand-over from stage to stage crosses the %d nodes (%s, --node-link); TP %d stays inside a node", p.Nodes(), link, p.TP))
	}
	if n := p.Across(p.EP); p.EP > 1 && n > 1 {
		out = append(out, fmt.Sprintf("EP %d lies on %d nodes: tokens travel to their experts over the network, which the times leave out", p.EP, n))
	}
	if s.Engine.Name == engine.VLLM {
		out = append(out, fmt.Sprintf("vLLM runs on %d nodes as a Ray cluster (--distributed-executor-backend ray), newer releases with --nnodes %d and --node-rank", p.Nodes(), p.Nodes()))
	}
	return out
}
