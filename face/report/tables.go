package report

import (
	"fmt"
	"io"

	"strandline/face/api"
	"strandline/units"
)

// GPUTable is the document of `strandline plan gpus`.
type GPUTable struct{ *api.GPUTable }

// Text writes the table.
func (d GPUTable) Text(w io.Writer, _ Style) {
	t := table{right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true}}
	t.row("GPU", "memory", "TB/s", "link GB/s", "BF16", "FP8", "INT8", "FP4")
	for _, g := range d.GPUs {
		t.row(g.Name, units.Bytes(g.Total), fmt.Sprintf("%.3g", g.Bandwidth/1e12), fmt.Sprintf("%.3g", g.Link/1e9),
			tera(g.BF16), tera(g.FP8), tera(g.INT8), tera(g.FP4))
	}
	t.write(w, "")
	fmt.Fprintln(w, "\nmemory: available from the driver; links in one direction; dense operations, in tera per second")
	fmt.Fprintln(w, "sources: the vendors' data sheets; memory from messages of PyTorch and vLLM, or derived where --json says so")
}

func tera(x float64) string {
	if x == 0 {
		return "–"
	}
	return units.Count(int64(x / 1e12))
}

// ModelTable is the document of `strandline plan models`.
type ModelTable struct{ *api.ModelTable }

// Text writes the table.
func (d ModelTable) Text(w io.Writer, _ Style) {
	t := table{right: map[int]bool{1: true, 2: true, 4: true, 5: true}}
	t.row("model", "parameters", "active", "format", "on disk", "context")
	for _, m := range d.Models {
		active, context := "", ""
		if m.Mixture {
			active = billions(m.Active)
		}
		if m.Context != nil {
			context = units.Count(*m.Context)
		}
		t.row(m.Name, billions(m.Parameters), active, m.Format, units.Bytes(m.Checkpoint), context)
	}
	t.write(w, "")
}
