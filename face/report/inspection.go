package report

import (
	"fmt"
	"io"
	"time"

	"strandline/face/api"
	"strandline/stack"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

// Inspection is the document of `strandline inspect`.
type Inspection struct {
	api.Inspection
}

// NewInspection makes the document.
func NewInspection(s *snapshot.Snapshot, f *timeline.Facts) *Inspection {
	return &Inspection{Inspection: api.Inspection{Schema: api.InspectSchema, Facts: f}}
}

// AddAt adds what lives after an event.
func (d *Inspection) AddAt(t *timeline.Timeline, event int, exact *replay.Result) {
	a := &api.At{Event: event, Device: t.Device, Requested: t.RequestedAt(event), Reserved: t.ReservedAt(event), Sites: []api.Place{}}
	a.AllocatedLow, a.AllocatedHigh = t.AllocatedBounds(event)
	if exact.Exactly(event) {
		allocated, active := exact.At(event)
		a.Allocated, a.Active = &allocated, &active
		a.AllocatedLow, a.AllocatedHigh = allocated, allocated
	}
	for _, s := range t.SitesAt(event) {
		a.Allocations += s.Count
		a.Sites = append(a.Sites, api.Place{Site: siteOf(s.Site), Missing: s.Missing, Bytes: s.Bytes, Count: s.Count})
	}
	d.At = a
}

// AddAlloc adds one allocation.
func (d *Inspection) AddAlloc(t *timeline.Timeline, i int) {
	a := &api.Alloc{Device: t.Device, Address: t.Addr(i), Bytes: t.Size(i), Stack: t.Snap.Stacks.Short(t.Stack(i))}
	event := func(k int) *int {
		if k == timeline.Never {
			return nil
		}
		return &k
	}
	a.Born, a.Freed, a.Completed = event(t.Birth(i)), event(t.Freed(i)), event(t.Death(i))
	if a.Freed != nil {
		a.FreeStack = t.Snap.Stacks.Short(t.Trace.Stack[*a.Freed])
		if born := t.Born(i); born > 0 {
			lived := t.Trace.Time[*a.Freed] - born
			a.LivedUS = &lived
		}
	}
	d.Alloc = a
}

// AddPools adds the sums by pool.
func (d *Inspection) AddPools(s *snapshot.Snapshot, dev snapshot.Device) {
	for _, p := range timeline.Pools(s, dev) {
		var name *string
		if p.Recorded {
			name = named(p.Pool.String())
		}
		d.Pools = append(d.Pools, api.Pool{Pool: name, Stream: p.Stream, Type: p.Type, Expandable: p.Expandable, Segments: p.Segments, Reserved: p.Reserved, Active: p.Active, Free: p.Free, LargestGap: p.LargestGap})
	}
}

// Text prints the facts.
func (d *Inspection) Text(w io.Writer, s Style) {
	if !s.Verbose {
		d.brief(w, s)
		return
	}
	fmt.Fprintf(w, "%s  PyTorch %s, %s\n", s.bold(inputName(d.File)), Line(d.Version), Line(d.Encoding))
	if d.Partial {
		fmt.Fprintln(w, s.yellow("only partly readable"))
	}
	if d.Conf != nil && *d.Conf != "" {
		fmt.Fprintln(w, "PYTORCH_CUDA_ALLOC_CONF="+Line(*d.Conf))
	}
	for i := range d.Devices {
		fmt.Fprintln(w)
		writeDevice(w, s, &d.Devices[i])
	}
	if len(d.Notes) > 0 {
		fmt.Fprintln(w)
		for _, n := range d.Notes {
			fmt.Fprintln(w, s.yellow("note")+"  "+Line(n))
		}
	}
	if d.At != nil {
		d.writeAt(w, s)
	}
	if d.Alloc != nil {
		d.writeAlloc(w, s)
	}
	if d.Pools != nil {
		d.writePools(w, s)
	}
}

func writeDevice(w io.Writer, s Style, d *timeline.DeviceFacts) {
	fmt.Fprintln(w, s.bold(snapshot.DeviceName(d.Device)))
	keyValues(w, func(w io.Writer) {
		row := func(label, format string, args ...any) {
			fmt.Fprintf(w, "  %s\t"+format+"\n", append([]any{label}, args...)...)
		}
		row("reserved", "%s in %s, cut into %s", units.Bytes(d.ReservedBytes), count(d.Segments, "segment"), count(d.Blocks, "block"))
		row("allocated", "%s, for %s requested", units.Bytes(d.AllocatedBytes), units.Bytes(d.RequestedBytes))
		if d.ActiveBytes != d.AllocatedBytes {
			row("active", "%s: %s waiting for another stream", units.Bytes(d.ActiveBytes), units.Bytes(d.ActiveBytes-d.AllocatedBytes))
		}
		row("free", "%s inside segments, of which %s in split ones", units.Bytes(d.ReservedBytes-d.ActiveBytes), units.Bytes(d.InactiveSplitBytes))
		if d.Events == nil {
			return
		}
		row("history", "%s, %s, %s", count(*d.Events, "event"), count(d.Stacks, "distinct stack"), count(*d.OOMEvents, "out-of-memory error"))
		if *d.Events > 0 {
			row("peak", "%s requested at event %s; %s reserved at event %s", units.Bytes(*d.PeakRequested), eventName(*d.PeakRequestedEvent),
				units.Bytes(*d.PeakReserved), eventName(*d.PeakReservedEvent))
		}
		if d.StartTime != nil {
			lasted, end := units.Duration(time.Duration(*d.EndTime-*d.StartTime)*time.Microsecond), time.UnixMicro(*d.EndTime).UTC()
			if end.Year() < 2000 { // some writers count from another moment
				row("recorded", "%s", lasted)
			} else {
				row("recorded", "%s, until %s", lasted, end.Format("2006-01-02 15:04:05 UTC"))
			}
		}
	})
}

func eventName(k int) string {
	if k == timeline.Never {
		return "-1 (before the first)"
	}
	return units.Count(int64(k))
}

func (d *Inspection) writeAt(w io.Writer, s Style) {
	a := d.At
	allocated := fmt.Sprintf("allocated between %s and %s", units.Bytes(a.AllocatedLow), units.Bytes(a.AllocatedHigh))
	if a.Allocated != nil {
		allocated = fmt.Sprintf("%s allocated in blocks", units.Bytes(*a.Allocated))
	}
	fmt.Fprintf(w, "\n%s on %s: %s requested in %s, %s, %s reserved\n",
		s.bold("after event "+eventName(a.Event)), snapshot.DeviceName(a.Device), units.Bytes(a.Requested), count(a.Allocations, "allocation"),
		allocated, units.Bytes(a.Reserved))
	t := table{right: map[int]bool{0: true, 1: true, 2: true}}
	const maxRows = 30
	for i, p := range a.Sites {
		if i == maxRows {
			t.row("", "", "", fmt.Sprintf("… and %s (--json lists all)", count(len(a.Sites)-maxRows, "more place")))
			break
		}
		share := float64(p.Bytes) / float64(max(a.Requested, 1))
		t.row(units.Bytes(p.Bytes), units.Percent(share), units.Count(int64(p.Count)), placeName(p.Site, p.Missing))
	}
	t.write(w, "  ")
}

func (d *Inspection) writeAlloc(w io.Writer, s Style) {
	a := d.Alloc
	fmt.Fprintf(w, "\n%s of %s at 0x%x on %s\n", s.bold("allocation"), units.Bytes(a.Bytes), a.Address, snapshot.DeviceName(a.Device))
	state := func(label string, k *int, otherwise string) {
		if k == nil {
			fmt.Fprintf(w, "  %-12s %s\n", label, otherwise)
		} else {
			fmt.Fprintf(w, "  %-12s event %s\n", label, units.Count(int64(*k)))
		}
	}
	state("allocated", a.Born, "before the recording began")
	state("freed", a.Freed, "never, within the history")
	if a.Freed != nil {
		state("completed", a.Completed, "not yet: another stream uses it")
	}
	if a.LivedUS != nil {
		fmt.Fprintf(w, "  %-12s %s\n", "lived", units.Duration(time.Duration(*a.LivedUS)*time.Microsecond))
	}
	writeFrames(w, "allocated at", a.Stack)
	writeFrames(w, "freed at", a.FreeStack)
}

func writeFrames(w io.Writer, label string, frames []stack.Frame) {
	for i, f := range stack.Readable(frames) {
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(w, "  %-12s %s\n", label, frameName(f))
	}
}

func (d *Inspection) writePools(w io.Writer, s Style) {
	fmt.Fprintln(w)
	t := table{right: map[int]bool{3: true, 4: true, 5: true, 6: true, 7: true}}
	t.row("pool", "stream", "class", "segments", "reserved", "active", "free", "largest free block")
	for _, p := range d.Pools {
		class := p.Type
		if p.Expandable {
			class += ", expandable"
		}
		pool := "unknown"
		if p.Pool != nil {
			pool = *p.Pool
		}
		t.row(pool, fmt.Sprintf("0x%x", p.Stream), class, units.Count(int64(p.Segments)), units.Bytes(p.Reserved),
			units.Bytes(p.Active), units.Bytes(p.Free), units.Bytes(p.LargestGap))
	}
	t.write(w, "  ")
}
