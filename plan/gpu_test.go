package plan

import (
	"strings"
	"testing"
)

func TestFindGPU(t *testing.T) {
	for asked, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "H100", "h200": "H200", "RTX 4090": "RTX-4090", "NVIDIA GeForce RTX 3090": "RTX-3090", "A100": "A100-80G",
		"NVIDIA A100-SXM4-40GB": "A100-40G", "AMD Instinct MI300X": "MI300X", "L40S": "L40S", "NVIDIA H200 141GB": "H200", "B200-180G": "B200",
		"4090": "RTX-4090", "RTX-4060": "RTX-4060", "RTX 4060 Ti": "RTX-4060-Ti-8G", "RTX 4060 Ti 16GB": "RTX-4060-Ti-16G", "NVIDIA GeForce RTX 4070 Laptop GPU": "RTX-4070-Laptop",
		"RX 7900 XTX": "RX-7900-XTX", "AMD Radeon RX 7900 XTX": "RX-7900-XTX", "7900 XTX": "RX-7900-XTX", "AMD Radeon Pro W7900": "W7900", "Intel(R) Arc(TM) B580 Graphics": "Arc-B580",
		"Tesla V100-SXM2-32GB": "V100-32G", "V100": "V100-32G", "Tesla T4": "T4", "RTX 3080 12GB": "RTX-3080-12G", "NVIDIA RTX A6000": "A6000", "NVIDIA RTX 6000 Ada Generation": "RTX-6000-Ada",
		"NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTX-PRO-6000", "RTX PRO 6000 96GB": "RTX-PRO-6000", "DGX Spark": "GB10", "Apple M4 Max 64GB": "M4-Max-64G", "M3 Max": "M3-Max-36G",
		"Jetson AGX Orin 64GB": "Jetson-AGX-Orin-64G", "Jetson Orin Nano": "Jetson-Orin-Nano-8G", "Gaudi 3": "Gaudi-3", "MI250X": "MI250X", "NVIDIA A100 80GB PCIe": "A100-80G", "RTX 3050": "RTX-3050", "A100-PCIE-40GB": "A100-40G", "Tesla V100-PCIE-16GB": "V100-16G", "H100 PCIe": "H100-PCIe",
	} {
		if g, err := FindGPU(asked); err != nil || g.Name != want {
			t.Errorf("%s: got %v, %v; want %s", asked, g, err, want)
		}
	}
	for name, want := range map[string]string{"H900": "--capacity 16GiB", "TPU v5e": "out of scope", "RTX 4055": "RTX-4050-Laptop", "Ascend 910B": "out of scope", "": "--capacity", "RTX 4090 12GB": "--capacity"} {
		if g, err := FindGPU(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("an unknown GPU %q: %v, %v; want %s", name, g, err, want)
		}
	}
	plain := map[string]bool{}
	for _, name := range GPUs() {
		g, err := FindGPU(name)
		if err != nil || g.Name != name {
			t.Fatal(name, g, err)
		}
		if g.Total < 2*GiB || g.Total > g.Board || g.Bandwidth <= 0 || g.Bandwidth > 1e13 || g.FP8 > 0 && g.FP8 < g.BF16 || g.FP4 > 0 && g.FP4 < g.FP8 || g.Arch == "" || g.Source == "" || plain[PlainGPU(name)] {
			t.Errorf("%s: %+v", name, g)
		}
		if g.Total < g.Board*9/10 && !g.Unified() {
			t.Errorf("%s: %d of %d bytes", name, g.Total, g.Board)
		}
		plain[PlainGPU(name)] = true
	}
}
