package plan

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// GPU is a device as a plan sees it.
type GPU struct {
	Name string `json:"name"`
	// Arch is NVIDIA's compute capability ("8.9"), or the architecture of other makers
	// ("cdna3", "rdna4", "xe", "gaudi", "apple"); "" if it is not known.
	Arch  string `json:"arch"`
	Total int64  `json:"total_bytes"` // what the driver makes available to programs
	Board int64  `json:"board_bytes"` // what nvidia-smi calls memory.total
	// Bandwidth of the memory and of the links to other GPUs in one direction, bytes
	// a second; 0 if not known.
	Bandwidth float64 `json:"bandwidth_bytes_per_s"`
	Link      float64 `json:"link_bytes_per_s"`
	// Dense operations a second by the type of the numbers; 0 if not supported or not known.
	BF16 float64 `json:"bf16_flops"`
	FP8  float64 `json:"fp8_flops"`
	INT8 float64 `json:"int8_flops"`
	FP4  float64 `json:"fp4_flops"`
	// Source states where the total comes from; the other figures are the vendor's data
	// sheet.
	Source string `json:"source"`

	node int64 // GPUs that the links of a node join; 0 is 8
}

// gpuFile are the devices that are known, in the order in which names without a size are
// looked up. Sizes are the board's in MiB and the driver's in GiB, bandwidths in GB/s,
// operations in Tera a second, without sparsity: those of matrix units with sums in 32
// bits. Sources: the vendors' data sheets and memory.total of nvidia-smi; what the driver
// makes available by the messages of PyTorch, vLLM and hl-smi on the device. Where no such
// message is known, it is derived (see [derive]).
//
//go:embed gpus.csv
var gpuFile string

var gpus = sync.OnceValue(func() (out []GPU) {
	const tera, giga, mib = 1e12, 1e9, 1 << 20
	for _, line := range strings.Split(strings.TrimSpace(gpuFile), "\n")[1:] {
		row := strings.Split(line, ",")
		n := func(i int) float64 {
			x, err := strconv.ParseFloat(row[i], 64)
			if err != nil && row[i] != "" {
				panic(err) // the file is part of the program
			}
			return x
		}
		g := GPU{Name: row[0], Arch: row[1], Board: Whole(n(2) * mib), Total: Whole(n(3) * GiB), Bandwidth: n(4) * giga, Link: n(5) * giga,
			BF16: n(6) * tera, FP8: n(7) * tera, INT8: n(8) * tera, FP4: n(9) * tera, node: int64(n(10)), Source: "total: PyTorch's and vLLM's messages on this device"}
		if g.Total == 0 {
			g.derive()
		}
		out = append(out, g)
	}
	return out
})

// derive computes what the driver makes available of a board from what it keeps on measured
// boards of the kind.
func (g *GPU) derive() {
	board := float64(g.Board)
	left := board
	switch {
	case g.Arch == "apple":
		// recommendedMaxWorkingSetSize, as llama.cpp prints it: two thirds of up to 32 GiB,
		// else three quarters. Newer systems give small machines a little more.
		const small = 32 * GiB
		g.Source = "total: Metal's share of unified memory; sysctl iogpu.wired_limit_mb changes it"
		if left = board * 3 / 4; g.Board <= small {
			left = board * 2 / 3
		}
	case strings.HasPrefix(g.Arch, "cdna"), strings.HasPrefix(g.Arch, "rdna"):
		g.Source = "total: the board's, as on other devices of AMD"
	case g.Arch == "xe":
		left = 0.944 * board // A770: 15473 MB of 16384, B580: 11605 of 12288
		g.Source = "total: 94.4 % of the board's, as on other devices of Intel"
	case slices.Contains([]string{"6.0", "7.0", "8.0", "9.0", "10.0", "10.3"}, g.Arch): // HBM
		left = 0.994 * board
		g.Source = "total: memory.total of nvidia-smi less 0.6 %, which is kept back on the other devices of its kind"
	default: // RTX 3060 11.76 of 12 GiB, 3080 9.78 of 10, 3090 23.58 of 24, 4090 23.64 of 23.99, 5090 31.36 of 31.84, PRO 6000 94.97 of 95.59
		left = board - min(0.13*GiB+0.0115*board, 0.62*GiB)
		g.Source = "total: memory.total of nvidia-smi less 0.13 GiB and 1.15 %, as on measured boards"
	}
	g.Total = Whole(left)
}

// Unified reports whether the memory is the host's, too.
func (g *GPU) Unified() bool {
	return g.Arch == "apple" || g.Arch == "rdna3.5" || g.Arch == "8.7" || g.Arch == "11.0" || g.Arch == "12.1"
}

// Node returns how many GPUs of the kind the links of a node join, as they are usually
// sold: 8, of GB200 a rack of 72, of a board that is itself a machine 1.
func (g *GPU) Node() int64 {
	if g.node == 0 {
		return 8
	}
	return g.node
}

// NodeLink is a GPU's share of the network between nodes unless another figure is
// given: a port of 400 Gb/s, bytes a second in one direction.
const NodeLink = 50e9

// KnownGPUs are the devices that are known.
func KnownGPUs() []GPU { return slices.Clone(gpus()) }

// GPUs returns the names of the known devices.
func GPUs() (names []string) {
	for _, g := range gpus() {
		names = append(names, g.Name)
	}
	return names
}

// makers are the words around a device's name that do not tell it from others.
var makers = strings.NewReplacer("nvidia", "", "geforce", "", "tesla", "", "instinct", "", "amd", "", "radeonpro", "", "radeon", "", "intel", "", "apple", "",
	"(r)", "", "(tm)", "", "generation", "", "blackwell", "", "workstationedition", "", "serveredition", "", "graphics", "", "laptopgpu", "laptop", "mobile", "laptop",
	"sxm5", "", "sxm4", "", "sxm2", "", "sxm", "", "hbm3e", "", "hbm3", "", "hbm2e", "", "hbm2", "", "oam", "")

var separators = strings.NewReplacer("-", "", " ", "", "_", "")

// plainGPUs are the names of the known devices in their normal form.
var plainGPUs = sync.OnceValue(func() (names []string) {
	for _, g := range gpus() {
		names = append(names, PlainGPU(g.Name))
	}
	return names
})

// PlainGPU returns a device's name in its normal form.
func PlainGPU(name string) string {
	name = makers.Replace(separators.Replace(strings.ToLower(name)))
	for _, unit := range []string{"gib", "gb"} {
		if short, ok := strings.CutSuffix(name, unit); ok {
			name = short + "g"
		}
	}
	return strings.TrimSuffix(name, "gpu")
}

// otherNames are names of devices that have none of their own in the table.
var otherNames = map[string]string{"dgxspark": "gb10", "rtxa6000": "a6000", "aimax+395": "strixhalo128g", "ryzenaimax+395": "strixhalo128g",
	"agxorin": "jetsonagxorin64g", "jetsonorin": "jetsonagxorin64g", "orinnano": "jetsonorinnano8g", "agxthor": "jetsonagxthor", "jetsonthor": "jetsonagxthor"}

// FindGPU finds a device by its name: "H200", "NVIDIA H100 80GB HBM3", "RTX 4090". The
// series may be left out, and the size; of several sizes the first in the table is taken.
func FindGPU(name string) (*GPU, error) {
	asked := PlainGPU(name)
	if other, ok := otherNames[asked]; ok {
		asked = other
	}
	for _, plain := range []string{asked, PlainGPU(strings.ReplaceAll(asked, "pcie", "")), "rtx" + asked, "rx" + asked, "arc" + asked} {
		if g := findPlain(plain); g != nil {
			return g, nil
		}
	}
	return nil, &UnknownGPU{name, similarGPUs(asked)}
}

// findPlain finds a name with or without the size of the board, nil if there is none.
func findPlain(asked string) *GPU {
	all, names := gpus(), plainGPUs()
	if i := slices.Index(names, asked); i >= 0 {
		return &all[i]
	}
	const tolerance = 0.12 // of the size that is sold
	digits, sized := strings.CutSuffix(asked, "g")
	for i, plain := range names {
		gib := strconv.FormatInt((all[i].Board+GiB/2)/GiB, 10)
		if plain == asked+gib+"g" {
			return &all[i]
		}
		if rest, ok := strings.CutPrefix(digits, strings.TrimSuffix(plain, gib+"g")); ok && sized {
			if n, err := strconv.ParseFloat(rest, 64); err == nil && n*GiB > (1-tolerance)*float64(all[i].Board) && n*GiB < (1+tolerance)*float64(all[i].Board) {
				return &all[i]
			}
		}
	}
	return nil
}

// UnknownGPU is the error for a device that the table does not have.
type UnknownGPU struct {
	Name string
	Like []string // names that may be meant
}

// outOfScope are devices that plans do not know anything of but their memory.
var outOfScope = []struct{ word, text string }{
	{"tpu", "TPUs"}, {"trainium", "Trainium"}, {"inferentia", "Inferentia"}, {"ascend", "Ascend NPUs"}, {"910b", "Ascend NPUs"}, {"310p", "Ascend NPUs"}, {"mtt", "Moore Threads' GPUs"},
}

// Error states what to give instead.
func (e *UnknownGPU) Error() string {
	const instead = "give its memory instead, such as --capacity 16GiB"
	for _, o := range outOfScope {
		if strings.Contains(PlainGPU(e.Name), o.word) {
			return fmt.Sprintf("GPU %q is not known, as %s are out of scope; %s", e.Name, o.text, instead)
		}
	}
	text := fmt.Sprintf("GPU %q is not known; %s (nvidia-smi, rocm-smi or xpu-smi shows it)", e.Name, instead)
	if len(e.Like) > 0 {
		return text + "; similar names: " + strings.Join(e.Like, ", ")
	}
	return text + "; `strandline plan gpus` lists the known ones"
}

// similarGPUs returns a few names that begin as a given one does.
func similarGPUs(asked string) (out []string) {
	const maxNames, minLength, maxLength = 5, 2, 64
	for n := min(len(asked), maxLength); n >= minLength && len(out) == 0; n-- {
		for i, name := range plainGPUs() {
			if strings.HasPrefix(name, asked[:n]) && len(out) < maxNames {
				out = append(out, gpus()[i].Name)
			}
		}
	}
	return out
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
