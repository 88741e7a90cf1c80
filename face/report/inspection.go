package report

import (
	"fmt"
	"io"
	"time"

	"strandline/stack"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

// Inspection is the document of `strandline inspect`.
type Inspection struct {
	Schema string `json:"schema"`
	*timeline.Facts
	At    *At    `json:"at,omitempty"`
	Alloc *Alloc `json:"alloc,omitempty"`
	Pools []Pool `json:"pools,omitempty"`
}

// At is what was live after an event.
type At struct {
	Event         int     `json:"event"`
	Device        int     `json:"device"`
	Requested     int64   `json:"requested_bytes"`
	Reserved      int64   `json:"reserved_bytes"`
	Allocated     *int64  `json:"allocated_bytes"` // null where the history cannot be replayed up to the event
	Active        *int64  `json:"active_bytes"`
	AllocatedLow  int64   `json:"allocated_bytes_at_least"`
	AllocatedHigh int64   `json:"allocated_bytes_at_most"`
	Allocations   int     `json:"allocations"`
	Sites         []Place `json:"sites"`
}

// Place is a site and what it holds.
type Place struct {
	Site
	Missing timeline.Missing `json:"missing,omitempty"` // why there is no site
	Bytes   int64            `json:"bytes"`
	Count   int              `json:"count"`
	name    string
}

// Alloc is one allocation from birth to death. Events are null where they are
// outside the history.
type Alloc struct {
	Device    int           `json:"device"`
	Address   uint64        `json:"address"`
	Bytes     int64         `json:"bytes"`
	Born      *int          `json:"born_event"`
	Freed     *int          `json:"freed_event"`
	Completed *int          `json:"completed_event"`
	LivedUS   *int64        `json:"lived_us"`
	Stack     []stack.Frame `json:"stack"`
	FreeStack []stack.Frame `json:"free_stack"`
}

// Pool sums the segments of one pool, stream and size class.
type Pool struct {
	Pool       *string `json:"pool"` // nil if it is not recorded
	Stream     uint64  `json:"stream"`
	Type       string  `json:"type"`
	Expandable bool    `json:"expandable"`
	Segments   int     `json:"segments"`
	Reserved   int64   `json:"reserved_bytes"`
	Active     int64   `json:"active_bytes"`
	Free       int64   `json:"free_bytes"`
	LargestGap int64   `json:"largest_free_block_bytes"`
}

// NewInspection makes the document.
func NewInspection(s *snapshot.Snapshot, f *timeline.Facts) *Inspection {
	return &Inspection{Schema: "strandline.inspect/1", Facts: f}
}

// AddAt adds what lives after an event.
func (d *Inspection) AddAt(t *timeline.Timeline, event int, exact *replay.Result) {
	a := &At{Event: event, Device: t.Device, Requested: t.RequestedAt(event), Reserved: t.ReservedAt(event), Sites: []Place{}}
	a.AllocatedLow, a.AllocatedHigh = t.AllocatedBounds(event)
	if exact.Exactly(event) {
		allocated, active := exact.At(event)
		a.Allocated, a.Active = &allocated, &active
		a.AllocatedLow, a.AllocatedHigh = allocated, allocated
	}
	for _, s := range t.SitesAt(event) {
		a.Allocations += s.Count
		name := siteName(s.Site)
		if s.Missing != "" {
			name = "(" + string(s.Missing) + ")"
		}
		a.Sites = append(a.Sites, Place{siteOf(s.Site), s.Missing, s.Bytes, s.Count, name})
	}
	d.At = a
}

// AddAlloc adds one allocation.
func (d *Inspection) AddAlloc(t *timeline.Timeline, i int) {
	a := &Alloc{Device: t.Device, Address: t.Addr(i), Bytes: t.Size(i), Stack: t.Snap.Stacks.Short(t.Stack(i))}
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
		d.Pools = append(d.Pools, Pool{name, p.Stream, p.Type, p.Expandable, p.Segments, p.Reserved, p.Active, p.Free, p.LargestGap})
	}
}

// Text prints the facts.
func (d *Inspection) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s  PyTorch %s, %s\n", s.bold(inputName(d.File)), Line(d.Version), Line(d.Format))
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
	fmt.Fprintln(w, s.bold(fmt.Sprintf("device %d", d.Device)))
	keyValues(w, func(w io.Writer) {
		row := func(label, format string, args ...any) {
			fmt.Fprintf(w, "  %s\t"+format+"\n", append([]any{label}, args...)...)
		}
		row("reserved", "%s in %s, cut into %s", units.Bytes(d.ReservedBytes), count(d.Segments, "segment"), count(d.Blocks, "block"))
		row("allocated", "%s, for %s asked for", units.Bytes(d.AllocatedBytes), units.Bytes(d.RequestedBytes))
		if d.ActiveBytes != d.AllocatedBytes {
			row("active", "%s: %s wait for another stream", units.Bytes(d.ActiveBytes), units.Bytes(d.ActiveBytes-d.AllocatedBytes))
		}
		row("free", "%s inside segments, of which %s in split ones", units.Bytes(d.ReservedBytes-d.ActiveBytes), units.Bytes(d.InactiveSplitBytes))
		if d.Events == nil {
			return
		}
		row("history", "%s, %s, %s", count(*d.Events, "event"), count(d.Stacks, "distinct stack"), count(*d.OOMEvents, "out-of-memory error"))
		if *d.Events > 0 {
			row("peak", "%s asked for at event %s; %s reserved at event %s", units.Bytes(*d.PeakRequested), eventName(*d.PeakRequestedEvent),
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
	fmt.Fprintf(w, "\n%s on device %d: %s asked for in %s, %s, %s reserved\n",
		s.bold("after event "+eventName(a.Event)), a.Device, units.Bytes(a.Requested), count(a.Allocations, "allocation"),
		allocated, units.Bytes(a.Reserved))
	t := table{right: map[int]bool{0: true, 1: true, 2: true}}
	const most = 30
	for i, p := range a.Sites {
		if i == most {
			t.row("", "", "", fmt.Sprintf("… and %s (--json lists all)", count(len(a.Sites)-most, "more place")))
			break
		}
		share := float64(p.Bytes) / float64(max(a.Requested, 1))
		t.row(units.Bytes(p.Bytes), units.Percent(share), units.Count(int64(p.Count)), p.name)
	}
	t.write(w, "  ")
}

func (d *Inspection) writeAlloc(w io.Writer, s Style) {
	a := d.Alloc
	fmt.Fprintf(w, "\n%s of %s at 0x%x on device %d\n", s.bold("allocation"), units.Bytes(a.Bytes), a.Address, a.Device)
	say := func(label string, k *int, otherwise string) {
		if k == nil {
			fmt.Fprintf(w, "  %-10s %s\n", label, otherwise)
		} else {
			fmt.Fprintf(w, "  %-10s event %s\n", label, units.Count(int64(*k)))
		}
	}
	say("made", a.Born, "before the recording began")
	say("freed", a.Freed, "never, within the history")
	if a.Freed != nil {
		say("completed", a.Completed, "not yet: another stream uses it")
	}
	if a.LivedUS != nil {
		fmt.Fprintf(w, "  %-10s %s\n", "lived", units.Duration(time.Duration(*a.LivedUS)*time.Microsecond))
	}
	writeFrames(w, "made by", a.Stack)
	writeFrames(w, "freed by", a.FreeStack)
}

func writeFrames(w io.Writer, label string, frames []stack.Frame) {
	for i, f := range stack.Readable(frames) {
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(w, "  %-10s %s\n", label, frameName(f))
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
