package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"strandline/bpf"
	"strandline/hostleak"
	"strandline/recording"
	"strandline/units"
)

// NewGPU makes the part of the document of a trace that tells of the GPU's
// driver.
func NewGPU(s *hostleak.DriverSums) *recording.GPU {
	out := &recording.GPU{
		Libraries: append([]string{}, s.Libraries...), LiveBytes: s.Bytes[bpf.Device], LiveCount: s.Count[bpf.Device],
		ManagedBytes: s.Bytes[bpf.Managed], PinnedBytes: s.Bytes[bpf.Pinned], Foreign: s.Count[bpf.Foreign],
		Owners: []recording.GPUOwner{}, Stacks: []recording.GPUStack{}, Devices: []recording.GPUDevice{},
	}
	for _, o := range s.Owners {
		out.Owners = append(out.Owners, recording.GPUOwner{Owner: o.Name, Memory: o.Memory.String(), LiveBytes: o.Bytes, LiveCount: o.Count})
	}
	for i := range s.Uses {
		u := &s.Uses[i]
		out.Stacks = append(out.Stacks, recording.GPUStack{Stack: traceStack(&u.Use), Owner: u.Owner, Memory: u.Memory.String()})
	}
	return out
}

// gpu prints what was taken from the GPU's driver, whose it is, and the places.
func (d *Trace) gpu(w io.Writer, s Style) {
	g := d.GPU
	switch {
	case g == nil:
		return
	case len(g.Libraries) == 0:
		fmt.Fprintln(w, "\nGPU driver: no process has loaded libcuda, so nothing of a GPU could be seen")
		return
	}
	fmt.Fprintf(w, "\n%s\n", s.bold(fmt.Sprintf("GPU driver: %s of device memory in %s taken since the trace began and not given back", units.Bytes(g.LiveBytes), count(int(g.LiveCount), "piece"))))
	var beside []string
	if g.ManagedBytes > 0 {
		beside = append(beside, units.Bytes(g.ManagedBytes)+" of managed memory")
	}
	if g.PinnedBytes > 0 {
		beside = append(beside, units.Bytes(g.PinnedBytes)+" of pinned host memory")
	}
	if g.Foreign > 0 {
		beside = append(beside, count(int(g.Foreign), "handle")+" of memory of other processes")
	}
	if len(beside) > 0 {
		fmt.Fprintln(w, s.dim("  beside it "+strings.Join(beside, ", ")))
	}
	fmt.Fprintln(w, s.dim("  what was taken before, contexts, code and what the driver's pools keep are not in it"))
	if d.Drops > 0 {
		fmt.Fprintln(w, s.dim("  events were lost; what the driver gave or took back by them is not known"))
	}
	owners := &table{right: map[int]bool{0: true, 1: true}}
	for _, o := range g.Owners {
		if len(owners.rows) == 0 {
			owners.row("held", "pieces", "memory", "by")
		}
		owners.row(units.Bytes(o.LiveBytes), units.Count(o.LiveCount), o.Memory, o.Owner)
	}
	owners.write(w, "")
	const most = 10
	stacks := &table{right: map[int]bool{0: true, 1: true}}
	for i := range g.Stacks {
		st := &g.Stacks[i]
		if st.LiveCount == 0 {
			continue
		}
		if len(stacks.rows) == 0 {
			fmt.Fprintln(w)
			stacks.row("held", "pieces", "call", "", "from")
		}
		if len(stacks.rows) > most {
			break
		}
		stacks.row(units.Bytes(st.LiveBytes), units.Count(st.LiveCount), st.Call, sparkline(st.Trend), driverPlace(st))
	}
	stacks.write(w, "")
	d.devices(w, s)
}

// driverPlace is a stack on one line, without the driver and CUDA's runtime.
func driverPlace(st *recording.GPUStack) string {
	own := st.Stack
	for len(own.Frames) > 0 && own.Frames[0].Object != nil && hostleak.OfCUDA(*own.Frames[0].Object) {
		own.Frames = own.Frames[1:]
	}
	text := placeOf(&own)
	if len(own.Frames) > 0 && own.Frames[0].Function == nil && own.Frames[0].Object != nil {
		return filepath.Base(*own.Frames[0].Object) + " ← " + text
	}
	return text
}
