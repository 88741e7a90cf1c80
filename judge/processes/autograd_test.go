package processes

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/proc/footprint"
)

// A heap that grows by nodes of a graph shows a kept graph, and the line reported is
// not that of the backward pass; a heap that grows by tensors alone does not.
func TestGraphOnTheHost(t *testing.T) {
	steps := []int64{0, 3, 3, 3, 3, 3, 3, 3, 3, 3}
	at := func(line string, frames ...string) *ledger.Use {
		u := made(event.Break, ledger.Heap, 135168, append(append([]string{"libc.so.6:brk", "libc.so.6:sysmalloc", "libc.so.6:malloc"}, frames...), line)...)
		return over(u, steps...)
	}
	tensor := []string{"libc10.so:c10::alloc_cpu(unsigned long)", "libtorch_cpu.so:at::native::add", "libtorch_cpu.so:torch::autograd::VariableType::add", "libtorch_cpu.so:at::_ops::add_Tensor::call"}
	node := []string{"libtorch_cpu.so:torch::autograd::impl::grad_accumulator(at::Tensor const&)", "libtorch_cpu.so:at::_ops::add_Tensor::call"}
	backward := []string{"libtorch_cpu.so:torch::autograd::GraphTask::GraphTask", "libtorch_cpu.so:torch::autograd::Engine::execute"}
	inline := []string{"libtorch_cpu.so:torch::autograd::VariableType::(anonymous namespace)::add_Tensor", "libtorch_cpu.so:at::_ops::add_Tensor::call"}
	for _, c := range []struct {
		name string
		uses []*ledger.Use
		want finding.Kind
		line string
	}{
		{"kept graph", []*ledger.Use{at("train.py:keep", tensor...), at("train.py:keep", node...)}, finding.AutogradGraph, "keep"},
		{"kept graph, seen in the backward pass too", []*ledger.Use{at("train.py:backward", append(tensor, "libtorch_cpu.so:torch::autograd::Engine::execute")...), at("train.py:keep", node...)}, finding.AutogradGraph, "keep"},
		{"nodes of one function", []*ledger.Use{at("train.py:keep", inline...)}, finding.AutogradGraph, "keep"},
		{"kept by the backward pass", []*ledger.Use{at("train.py:keep", backward...)}, finding.HeapLeak, "keep"},
		{"kept tensors", []*ledger.Use{at("train.py:keep", tensor...)}, finding.HeapLeak, "keep"},
	} {
		found := Host(traceOf(c.uses...), nil, nil)
		if len(found) != 1 || found[0].Kind != c.want || found[0].Site.Function != c.line {
			t.Errorf("%s: %+v", c.name, found)
			continue
		}
		if advised := strings.Contains(found[0].Remedies[0].Text, ".detach()"); advised != (c.want == finding.AutogradGraph) {
			t.Errorf("%s: %+v", c.name, found[0].Remedies)
		}
	}
}

// Nodes that become more from look to look show a kept graph, also where no stack names
// who made them.
func TestGraphByItsNodes(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes []int64
		want  finding.Kind
	}{
		{"kept", []int64{0, 300, 600, 900, 1200, 1500}, finding.AutogradGraph},
		{"of the steps", []int64{0, 3000, 200, 2500, 3100, 40}, finding.HeapLeak},
		{"few looks", []int64{0, 500, 1000, 1500}, finding.HeapLeak},
		{"few looks, and a part of the growth", []int64{8500, 28500, 58500, 98500}, finding.AutogradGraph},
		{"begun while it was traced", []int64{0, 0, 0, 5000, 12000, 20000}, finding.AutogradGraph},
		{"few nodes", []int64{10, 11, 12, 13, 14, 15}, finding.HeapLeak},
		{"not counted", nil, finding.HeapLeak},
	} {
		u := over(made(event.Break, ledger.Heap, 135168, "libc.so.6:brk", "libc.so.6:malloc", "libtorch_cpu.so:f", "train.py:keep"), 0, 3, 3, 3, 3, 3, 3, 3, 3, 3)
		found := Host(traceOf(u), &footprint.Growth{After: &footprint.Observation{Nodes: c.nodes}}, nil)
		if len(found) != 1 || found[0].Kind != c.want {
			t.Errorf("%s: %+v", c.name, found)
			continue
		}
		if told := strings.Contains(strings.Join(found[0].Detail, "; "), "nodes of the graph more than when the trace began"); told != (c.want == finding.AutogradGraph) {
			t.Errorf("%s: %q", c.name, found[0].Detail)
		}
	}
}
