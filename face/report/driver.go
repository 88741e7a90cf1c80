package report

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"strandline/host/calls/event"
	"strandline/host/gpu/gpuaccount"
	"strandline/host/gpu/gpudriver"
	"strandline/host/store/recording"
	"strandline/internal/sorts"
	"strandline/judge/processes"
	"strandline/units"
)

// AddGPU adds to the document of a trace what was taken from the GPU's driver, and the
// account of the devices.
func (d *Trace) AddGPU(s *gpudriver.Sums, devices []recording.GPUDevice, reserved map[int]gpuaccount.Placed) {
	d.GPU = newGPU(s)
	addHolders(&d.Document, s)
	processes.SetDevices(&d.Document, devices, reserved)
}

func newGPU(s *gpudriver.Sums) *recording.GPU {
	out := &recording.GPU{
		Libraries: append([]string{}, s.Libraries...), LiveBytes: s.Bytes[event.Device], LiveCount: s.Count[event.Device],
		ManagedBytes: s.Bytes[event.Managed], PinnedBytes: s.Bytes[event.Pinned], Foreign: s.Count[event.Foreign],
		Owners: []recording.GPUOwner{}, Stacks: []recording.GPUStack{}, Devices: []recording.GPUDevice{},
	}
	for _, o := range s.Owners {
		out.Owners = append(out.Owners, recording.GPUOwner{Owner: o.Name, Memory: o.Memory.String(), LiveBytes: o.Bytes, LiveCount: o.Count})
	}
	for i := range s.Uses {
		u := &s.Uses[i]
		out.Stacks = append(out.Stacks, recording.GPUStack{Stack: traceStack(&u.Use), Owner: u.Owner, Memory: u.Memory.String(), Peak: peakOf(u, s.Began)})
	}
	return out
}

// addHolders adds to the processes of a document what each took from the driver.
func addHolders(doc *recording.Document, s *gpudriver.Sums) {
	for i := range doc.Processes {
		p := &doc.Processes[i]
		for _, h := range s.Holders {
			if int(h.PID) == p.PID {
				p.GPU = append(p.GPU, recording.GPUOwner{Owner: h.Name, Memory: h.Memory.String(), LiveBytes: h.Bytes, LiveCount: h.Count})
			}
		}
	}
}

func peakOf(u *gpudriver.Use, began uint64) *recording.GPUPeak {
	if u.Peak.Bytes == 0 || u.Memory == event.Foreign {
		return nil
	}
	since := func(at uint64) float64 {
		return time.Duration(max(int64(at-began), 0)).Round(time.Millisecond).Seconds()
	}
	p := &recording.GPUPeak{Bytes: u.Peak.Bytes, From: since(u.Peak.From), At: since(u.Peak.At), Times: u.Peak.Times}
	if u.Peak.Until > 0 {
		p.Until = new(since(u.Peak.Until))
	}
	return p
}

// gpu prints what was taken from the GPU's driver, whose it is, and the places.
func (d *Trace) gpu(w io.Writer, s Style) {
	g := d.GPU
	switch {
	case g == nil:
		return
	case len(g.Libraries) == 0:
		fmt.Fprintln(w, "\nGPU driver: no process has loaded libcuda, so no GPU memory could be observed")
		return
	}
	fmt.Fprintf(w, "\n%s\n", s.bold(fmt.Sprintf("GPU driver: %s of device memory in %s taken since the trace began and not returned", units.Bytes(g.LiveBytes), count(int(g.LiveCount), "piece"))))
	var others []string
	if g.ManagedBytes > 0 {
		others = append(others, units.Bytes(g.ManagedBytes)+" of managed memory")
	}
	if g.PinnedBytes > 0 {
		others = append(others, units.Bytes(g.PinnedBytes)+" of pinned host memory")
	}
	if g.Foreign > 0 {
		others = append(others, count(int(g.Foreign), "handle")+" of memory of other processes")
	}
	if len(others) > 0 {
		fmt.Fprintln(w, s.dim("  in addition: "+strings.Join(others, ", ")))
	}
	fmt.Fprintln(w, s.dim("  it excludes earlier allocations, contexts, code, and the driver's pools"))
	if d.Drops > 0 {
		fmt.Fprintln(w, s.dim("  events were lost; their allocations and frees are unknown"))
	}
	owners := &table{right: map[int]bool{0: true, 1: true}}
	for _, o := range g.Owners {
		if len(owners.rows) == 0 {
			owners.row("held", "pieces", "memory", "by")
		}
		owners.row(units.Bytes(o.LiveBytes), units.Count(o.LiveCount), o.Memory, o.Owner)
	}
	owners.write(w, "")
	const maxOwners = 10
	stacks := &table{right: map[int]bool{0: true, 1: true}}
	rows := mergedDriver(g.Stacks)
	for i := range rows {
		st := &rows[i]
		if st.LiveCount == 0 {
			continue
		}
		if len(stacks.rows) == 0 {
			fmt.Fprintln(w)
			stacks.row("held", "pieces", "call", "", "from")
		}
		if len(stacks.rows) > maxOwners {
			break
		}
		stacks.row(units.Bytes(st.LiveBytes), units.Count(st.LiveCount), st.Call, sparkline(st.Trend), driverPlace(st))
	}
	stacks.write(w, "")
	bursts(w, g)
	d.devices(w, s)
}

// mergedDriver merges the stacks of one call and place, for one owner and kind of memory.
func mergedDriver(stacks []recording.GPUStack) []recording.GPUStack {
	key := func(st *recording.GPUStack) string {
		return strings.Join([]string{st.Call, st.Owner, st.Memory, driverPlace(st)}, " ")
	}
	return merged(stacks, key, func(st *recording.GPUStack) *recording.Stack { return &st.Stack })
}

// minBurstBytes is the smallest burst that is printed, in bytes.
const minBurstBytes = 16 << 20

// bursts prints the places that held much more than they do at the end.
func bursts(w io.Writer, g *recording.GPU) {
	var some []*recording.GPUStack
	for i := range g.Stacks {
		if st := &g.Stacks[i]; st.Peak != nil && st.Peak.Bytes >= minBurstBytes && (st.Peak.Until != nil || st.LiveBytes < st.Peak.Bytes/2) {
			some = append(some, st)
		}
	}
	sorts.StableBy(some, func(a, b *recording.GPUStack) int { return cmp.Compare(b.Peak.Bytes, a.Peak.Bytes) })
	if len(some) == 0 {
		return
	}
	const maxShown = 5
	bursts := &table{right: map[int]bool{0: true, 2: true}}
	bursts.row("soon freed", "when", "times", "memory", "by", "from")
	for _, st := range some[:min(len(some), maxShown)] {
		p := st.Peak
		when := fmt.Sprintf("%.1f s on", p.From)
		if p.Until != nil {
			when = fmt.Sprintf("%.1f to %.1f s", p.From, *p.Until)
		}
		bursts.row(units.Bytes(p.Bytes), when, units.Count(int64(p.Times)), st.Memory, st.Owner, driverPlace(st))
	}
	fmt.Fprintln(w)
	bursts.write(w, "")
}

// driverPlace is a stack on one line, without the driver and CUDA's runtime.
func driverPlace(st *recording.GPUStack) string {
	own := st.Stack
	for len(own.Frames) > 0 && own.Frames[0].Object != nil && gpudriver.OfCUDA(*own.Frames[0].Object) {
		own.Frames = own.Frames[1:]
	}
	text := placeOf(&own)
	if len(own.Frames) > 0 && own.Frames[0].Function == nil && own.Frames[0].Object != nil {
		return filepath.Base(*own.Frames[0].Object) + " ← " + text
	}
	return text
}
