package serving

import (
	"strings"
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/engine"
)

// TestNodes lets TP cross nodes and keeps it inside one.
func TestNodes(t *testing.T) {
	h200 := plantest.GPU(t, "H200")
	of := func(tp, pp, node int64) *Fit {
		return fitOf(t, Setup{Model: plantest.Model(t, "DeepSeek-R1", ""), Engine: engine.Release{Name: engine.SGLang}, GPU: h200, Length: 8192, Parallel: plan.Parallel{TP: tp, PP: pp, Node: node}})
	}
	across, staged, one := of(16, 1, 8), of(8, 2, 8), of(16, 1, 16)
	notes := strings.Join(across.Notes, "\n")
	if !strings.Contains(notes, "TP 16 lies on 2 nodes") || !strings.Contains(notes, "TP 8 with PP 2") {
		t.Errorf("TP across nodes: %s", notes)
	}
	if got := strings.Join(staged.Notes, "\n"); !strings.Contains(got, "crosses the 2 nodes") || strings.Contains(got, "lies on") {
		t.Errorf("stages on two nodes: %s", got)
	}
	if got := strings.Join(one.Notes, "\n"); strings.Contains(got, "nodes") {
		t.Errorf("one node: %s", got)
	}
	if across.Latency.Token[0] <= one.Latency.Token[0] || across.Latency.First[0] <= one.Latency.First[0] {
		t.Errorf("a token takes %v across nodes, %v inside one", across.Latency.Token, one.Latency.Token)
	}
	if got := strings.Join(across.Flags, " "); !strings.Contains(got, "--nnodes 2") || strings.Contains(strings.Join(one.Flags, " "), "nnodes") {
		t.Errorf("flags %s", got)
	}
	slow := across.Serving
	slow.NodeLink = 1e9
	if f := fitOf(t, slow); f.Latency.First[0] <= 2*across.Latency.First[0] {
		t.Errorf("a slower network: %v after %v", f.Latency.First, across.Latency.First)
	}
}

func TestAcross(t *testing.T) {
	for _, c := range []struct{ tp, pp, node, n, nodes, across int64 }{
		{8, 2, 8, 8, 2, 1}, {16, 1, 8, 16, 2, 2}, {4, 4, 8, 4, 2, 1}, {6, 2, 8, 6, 2, 2}, {32, 1, 8, 32, 4, 4}, {16, 1, 72, 16, 1, 1}, {16, 1, 0, 16, 1, 1}, {4, 1, 8, 4, 1, 1},
	} {
		p := plan.Parallel{TP: c.tp, PP: c.pp, Node: c.node}
		if p.Nodes() != c.nodes || p.Across(c.n) != c.across {
			t.Errorf("%+v: %d nodes, %d across", p, p.Nodes(), p.Across(c.n))
		}
	}
}
