package planner

import (
	"testing"

	"strandline/plan"
)

func TestMachines(t *testing.T) {
	h200, err := plan.FindGPU("H200")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o               machineOptions
		gpus, all, node int64 // all 0 is refused
	}{
		{machineOptions{}, 16, 16, 8},
		{machineOptions{nodes: 2}, 1, 16, 8},
		{machineOptions{nodes: 4}, 16, 16, 4},
		{machineOptions{each: 4}, 16, 16, 4},
		{machineOptions{nodes: 3, each: 4}, 1, 12, 4},
		{machineOptions{nodes: 3, each: 4}, 16, 0, 0},
		{machineOptions{nodes: 3}, 16, 0, 0},
		{machineOptions{nodes: -1}, 16, 0, 0},
		{machineOptions{link: -1}, 16, 0, 0},
	} {
		all, node, err := c.o.divide(c.gpus, h200)
		if (err != nil) != (c.all == 0) || err == nil && (all != c.all || node != c.node) {
			t.Errorf("%+v of %d GPUs: %d, %d to a node, %v", c.o, c.gpus, all, node, err)
		}
	}
	gb, err := plan.FindGPU("GB200")
	if err != nil {
		t.Fatal(err)
	}
	if _, node, _ := new(machineOptions).divide(16, gb); node != 72 {
		t.Errorf("a node has %d GB200", node)
	}
}
