package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"strandline/host/gpu/gpudriver"
	"strandline/host/store/recording"
	"strandline/units"
)

// devices prints what the memory of each device is used for.
func (d *Trace) devices(w io.Writer, s Style) {
	for i := range d.GPU.Devices {
		v := &d.GPU.Devices[i]
		fmt.Fprintf(w, "\n%s\n", s.bold(deviceLine(v)))
		parts := &table{right: map[int]bool{0: true}}
		for _, p := range v.Parts {
			parts.row(units.Bytes(p.Bytes), partName(v, &p))
		}
		parts.write(w, "  ")
		const indent = 2
		if d.Ended && v.Used != nil {
			fmt.Fprintln(w, s.dim("  that is the driver's last answer; the processes ended before it was asked again"))
		}
		for _, n := range v.Notes {
			for _, line := range wrap(n, s.columns()-indent) {
				fmt.Fprintln(w, s.dim("  "+line))
			}
		}
	}
}

func deviceLine(v *recording.GPUDevice) string {
	name := "GPU memory"
	switch len(v.Names) {
	case 0:
	case 1:
		name += " of device " + v.Names[0]
	default:
		name += " of devices " + strings.Join(v.Names, ", ")
	}
	used := ", as far as known"
	if v.Used != nil {
		used = ": " + units.Bytes(*v.Used) + " used"
		if v.Total != nil {
			used += " of " + units.Bytes(*v.Total)
		}
	}
	return fmt.Sprintf("%s%s, after %s", name, used, units.Duration(time.Duration(v.At*float64(time.Second))))
}

// partName returns what a part of a device's memory is used for.
func partName(v *recording.GPUDevice, p *recording.GPUPart) string {
	has := func(part recording.Part) bool {
		return slices.ContainsFunc(v.Parts, func(p recording.GPUPart) bool { return p.Part == part })
	}
	switch p.Part {
	case recording.PartPyTorch:
		text := "PyTorch: reserved"
		if p.Allocated != nil && p.Since != nil {
			text += fmt.Sprintf(", %s of it allocated; %s taken since the trace began", units.Bytes(*p.Allocated), units.Bytes(*p.Since))
		}
		return text
	case recording.PartTraced:
		switch text := p.Owner + ", since the trace began"; {
		case !has(recording.PartPyTorch):
			return text
		case p.Owner == gpudriver.OwnerPyTorch:
			return text + ", not in the snapshot"
		default:
			return text + ", outside PyTorch"
		}
	case recording.PartEarlier:
		return "the processes' contexts and earlier allocations"
	case recording.PartUnseen:
		return "came since without a watched call: code of kernels, graphs, pools"
	case recording.PartOthers:
		return count(p.Count, "other process")
	case recording.PartRemainder:
		if has(recording.PartEarlier) {
			return "the remainder: the driver's own, and processes that it does not name"
		}
		return "the remainder: contexts, allocations before the trace, other processes"
	}
	return string(p.Part)
}
