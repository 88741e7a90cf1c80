package plan

import (
	"fmt"
	"slices"
	"strings"
)

// GPU is a device as a plan sees it.
type GPU struct {
	Name  string `json:"name"`
	Total int64  `json:"total_bytes"` // what the driver makes available to programs
	Board int64  `json:"board_bytes"` // what nvidia-smi calls memory.total
	// Bandwidth of the memory and of the links to other GPUs in one direction, bytes
	// a second.
	Bandwidth float64 `json:"bandwidth_bytes_per_s"`
	Link      float64 `json:"link_bytes_per_s"`
	// Dense operations a second by the type of the numbers; 0 if not supported.
	BF16 float64 `json:"bf16_flops"`
	FP8  float64 `json:"fp8_flops"`
	INT8 float64 `json:"int8_flops"`
	FP4  float64 `json:"fp4_flops"`
	// Source states where the total comes from; the other figures are the vendor's data
	// sheet.
	Source string `json:"source"`
}

const (
	observed = "total: PyTorch's and vLLM's messages on this device"
	derived  = "total: memory.total of nvidia-smi less 0.6 %, which is kept back on the other devices of its kind"
)

func gpu(name string, total, board, bandwidth, link, bf16, fp8, int8, fp4 float64, source string) GPU {
	const tera, giga, mib = 1e12, 1e9, 1 << 20
	return GPU{name, Whole(total * GiB), Whole(board * mib), bandwidth * giga, link * giga, bf16 * tera, fp8 * tera, int8 * tera, fp4 * tera, source}
}

// gpus are the devices that are known. Totals are in GiB, boards in MiB,
// bandwidths in GB/s, operations in Tera a second, without sparsity. Sources: the
// vendors' data sheets; memory.total of nvidia-smi; the totals by Source.
var gpus = []GPU{
	gpu("H100", 79.11, 81559, 3350, 450, 989, 1979, 1979, 0, observed),
	gpu("H100-PCIe", 79.11, 81559, 2000, 64, 756, 1513, 1513, 0, observed),
	gpu("H100-NVL", 93.10, 95830, 3900, 300, 835, 1671, 1671, 0, derived),
	gpu("H100-96G", 94.50, 97871, 3350, 450, 989, 1979, 1979, 0, derived),
	gpu("H800", 79.11, 81559, 3350, 200, 989, 1979, 1979, 0, observed),
	gpu("H200", 139.72, 143771, 4800, 450, 989, 1979, 1979, 0, observed),
	gpu("H20", 95.00, 97871, 4000, 450, 148, 296, 296, 0, observed),
	gpu("GH200", 94.50, 97871, 4000, 450, 989, 1979, 1979, 0, observed),
	gpu("B200", 178.35, 183359, 8000, 900, 2250, 4500, 4500, 9000, observed),
	gpu("GB200", 184.30, 189471, 8000, 900, 2500, 5000, 5000, 10000, observed),
	gpu("B300", 267.70, 275040, 8000, 900, 2250, 4500, 140, 13500, derived),
	gpu("A100-80G", 79.15, 81920, 2039, 300, 312, 0, 624, 0, observed),
	gpu("A100-40G", 39.39, 40960, 1555, 300, 312, 0, 624, 0, observed),
	gpu("A800", 79.15, 81920, 2039, 200, 312, 0, 624, 0, observed),
	gpu("L40S", 44.40, 46068, 864, 32, 362, 733, 733, 0, observed),
	gpu("L40", 44.40, 46068, 864, 32, 181, 362, 362, 0, observed),
	gpu("L4", 22.05, 23034, 300, 32, 121, 242, 242, 0, observed),
	gpu("A10G", 22.07, 23028, 600, 32, 70, 0, 140, 0, observed),
	gpu("A10", 22.07, 23028, 600, 32, 125, 0, 250, 0, observed),
	gpu("A6000", 47.43, 49140, 768, 56, 155, 0, 310, 0, observed),
	gpu("RTX-6000-Ada", 47.50, 49140, 960, 32, 364, 728, 728, 0, derived),
	gpu("RTX-PRO-6000", 94.97, 97887, 1792, 64, 503, 1007, 1007, 2015, observed),
	gpu("RTX-3090", 23.58, 24576, 936, 56, 71, 0, 284, 0, observed),
	gpu("RTX-4090", 23.64, 24564, 1008, 32, 165, 330, 660, 0, observed),
	gpu("RTX-5090", 31.36, 32607, 1792, 64, 210, 419, 838, 1676, observed),
	gpu("V100-32G", 31.74, 32768, 900, 150, 125, 0, 0, 0, observed),
	gpu("V100-16G", 15.77, 16384, 900, 150, 125, 0, 0, 0, observed),
	gpu("T4", 14.58, 15360, 320, 16, 65, 0, 130, 0, observed),
	gpu("GB10", 121.63, 124550, 273, 25, 125, 250, 250, 500, observed),
	gpu("MI300X", 191.69, 196592, 5300, 448, 1307, 2615, 2615, 0, observed),
	gpu("MI325X", 255.98, 262128, 6000, 448, 1307, 2615, 2615, 0, observed),
	gpu("MI355X", 287.98, 294896, 8000, 538, 2500, 5000, 5000, 10000, derived),
}

// Node returns how many GPUs of the kind the links of a node join, as they are usually
// sold: 8, of GB200 a rack of 72, of a board that is itself a machine 1.
func (g *GPU) Node() int64 {
	switch g.Name {
	case "GB200":
		return 72
	case "GB10", "GH200":
		return 1
	}
	return 8
}

// NodeLink is a GPU's share of the network between nodes unless another figure is
// given: a port of 400 Gb/s, bytes a second in one direction.
const NodeLink = 50e9

// KnownGPUs are the devices that are known.
func KnownGPUs() []GPU { return slices.Clone(gpus) }

// GPUs returns the names of the known devices.
func GPUs() (names []string) {
	for i := range gpus {
		names = append(names, gpus[i].Name)
	}
	return names
}

// PlainGPU returns a device's name in its normal form.
func PlainGPU(name string) string {
	name = strings.ToLower(name)
	for _, word := range []string{"-", " ", "_", "nvidia", "geforce", "tesla", "instinct", "amd", "sxm5", "sxm4", "sxm", "hbm3e", "hbm3", "gib", "gb"} {
		with := ""
		if word == "gib" || word == "gb" {
			if !strings.HasSuffix(name, word) {
				continue
			}
			with = "g"
		}
		name = strings.ReplaceAll(name, word, with)
	}
	return name
}

// FindGPU finds a device by its name: "H200", "NVIDIA H100 80GB HBM3", "RTX 4090".
func FindGPU(name string) (*GPU, error) {
	asked := PlainGPU(name)
	aliases := map[string]string{"a100": "a10080g", "a800": "a800", "v100": "v10032g", "h10080g": "h100", "h200141g": "h200", "3090": "rtx3090",
		"4090": "rtx4090", "5090": "rtx5090", "rtxa6000": "a6000", "b200180g": "b200", "mi300x192g": "mi300x", "rtxpro600096g": "rtxpro6000", "a10080g": "a10080g"}
	if to, ok := aliases[asked]; ok {
		asked = to
	}
	for i := range gpus {
		if PlainGPU(gpus[i].Name) == asked {
			return &gpus[i], nil
		}
	}
	return nil, fmt.Errorf("GPU %q is not known; these are: %s", name, strings.Join(slices.Sorted(slices.Values(GPUs())), ", "))
}

// Flops are the operations a second for weights of a format. Those without
// hardware for them are widened to 16 bits.
func (g *GPU) Flops(format string) float64 {
	switch {
	case strings.HasPrefix(format, "nvfp4") && g.FP4 > 0:
		return g.FP4
	case strings.Contains(format, "fp8") && g.FP8 > 0:
		return g.FP8
	case strings.HasPrefix(format, "int8") && g.INT8 > 0:
		return g.INT8
	}
	return g.BF16
}
