package plan

import (
	"strings"
	"testing"
)

func TestFindGPU(t *testing.T) {
	for asked, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "H100", "h200": "H200", "RTX 4090": "RTX-4090", "NVIDIA GeForce RTX 3090": "RTX-3090", "A100": "A100-80G",
		"NVIDIA A100-SXM4-40GB": "A100-40G", "AMD Instinct MI300X": "MI300X", "L40S": "L40S",
	} {
		if g, err := FindGPU(asked); err != nil || g.Name != want {
			t.Errorf("%s: got %v, %v; want %s", asked, g, err, want)
		}
	}
	if _, err := FindGPU("H900"); err == nil || !strings.Contains(err.Error(), "H200") {
		t.Errorf("an unknown GPU: %v", err)
	}
	for _, name := range GPUs() {
		g, err := FindGPU(name)
		if err != nil {
			t.Fatal(err)
		}
		if g.Total <= 0 || g.Total > g.Board || g.Bandwidth <= 0 || g.BF16 <= 0 {
			t.Errorf("%s: %+v", name, g)
		}
	}
}
