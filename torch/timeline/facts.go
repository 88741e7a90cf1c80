package timeline

import (
	"fmt"
	"sort"
	"strings"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/units"
)

// Facts are what a snapshot states of each device, without judgment. Byte
// figures are of the snapshot's moment unless their name contains peak. A pointer is
// nil where the file does not show it.
type Facts struct {
	File     string        `json:"file"`
	Partial  bool          `json:"partial"`
	Version  string        `json:"torch_version"`
	Format   string        `json:"format"`   // "pytorch", beside those of other programs' files
	Encoding string        `json:"encoding"` // such as "pickle, protocol 4"
	Notes    []string      `json:"notes"`
	Devices  []DeviceFacts `json:"devices"`
	Extra    []string      `json:"extra_keys,omitempty"`   // top-level keys that are not PyTorch's
	Unknown  []string      `json:"unknown_keys,omitempty"` // keys inside records
	Conf     *string       `json:"allocator_conf,omitempty"`

	Lines []*Timeline `json:"-"`
}

// DeviceFacts are the facts of one device.
type DeviceFacts struct {
	Device             int    `json:"device"`         // -1 for the host
	Kind               string `json:"kind,omitempty"` // "host" for pinned memory of the host
	Segments           int    `json:"segments"`
	Blocks             int    `json:"blocks"`
	ReservedBytes      int64  `json:"reserved_bytes"`
	AllocatedBytes     int64  `json:"allocated_bytes"`
	ActiveBytes        int64  `json:"active_bytes"`
	RequestedBytes     int64  `json:"requested_bytes"`
	InactiveSplitBytes int64  `json:"inactive_split_bytes"`
	Stacks             int    `json:"stacks"`
	Events             *int   `json:"events"`
	OOMEvents          *int   `json:"oom_events"`
	PeakReserved       *int64 `json:"peak_reserved_bytes"`
	PeakRequested      *int64 `json:"peak_requested_bytes"`
	PeakReservedEvent  *int   `json:"peak_reserved_event,omitempty"`
	PeakRequestedEvent *int   `json:"peak_requested_event,omitempty"`
	StartTime          *int64 `json:"start_time_us,omitempty"`
	EndTime            *int64 `json:"end_time_us,omitempty"`
}

// FactsOf gathers the facts of a snapshot. Sizes that cannot be count as 0, and are
// among the notes.
func FactsOf(s *snapshot.Snapshot) *Facts {
	s = s.Sane()
	f := &Facts{
		File: s.Name, Partial: s.Partial != nil, Version: s.TorchVersion(), Format: "pytorch", Encoding: s.Format.String(),
		Notes: append([]string{}, s.Faults...), Unknown: s.UnknownKeys,
	}
	if s.Partial != nil {
		f.Notes = append(f.Notes, fmt.Sprintf("reading ended at %s: %v", s.Partial.Place(), s.Partial.Err))
	}
	if s.Settings != nil {
		f.Conf = &s.Settings.Conf
	}
	for _, x := range s.Extra[:min(len(s.Extra), maxExtra)] {
		f.Extra = append(f.Extra, keyName(x.Key))
	}
	if len(f.Extra) > 0 {
		f.Notes = append(f.Notes, "keys that are not PyTorch's are kept: "+strings.Join(f.Extra, ", "))
	}
	f.Notes = append(f.Notes, s.Unknown()...)
	if s.Format.BareList {
		f.Notes = append(f.Notes, "a bare list of segments: the state alone, without history")
	}
	for _, d := range s.Devices() {
		t := New(s, d)
		f.Lines = append(f.Lines, t)
		f.Devices = append(f.Devices, deviceFacts(s, d, t))
		f.Notes = append(f.Notes, t.Faults...)
		f.Notes = append(f.Notes, t.Gaps()...)
	}
	return f
}

// maxExtra is how many keys that are not PyTorch's are named.
const maxExtra = 64

// keyName returns the printed form of a dict's key: Python's may be of any type and length.
func keyName(key any) string {
	const maxKeyName = 64
	text := fmt.Sprintf("%T", key)
	switch key := key.(type) {
	case string:
		text = key
	case nil, bool, int64, uint64, float64:
		text = fmt.Sprint(key)
	}
	if len(text) > maxKeyName {
		text = strings.ToValidUTF8(text[:maxKeyName], "") + "…"
	}
	return text
}

func deviceFacts(s *snapshot.Snapshot, d snapshot.Device, t *Timeline) DeviceFacts {
	f := DeviceFacts{Device: d.Index, Segments: len(d.Segments)}
	if d.Index == snapshot.Host {
		f.Kind = "host"
	}
	seen := make([]bool, s.Stacks.Len())
	count := func(id stack.ID) {
		if id > stack.Empty && !seen[id] {
			seen[id] = true
			f.Stacks++
		}
	}
	for _, i := range d.Segments {
		seg := &s.Segments[i]
		f.Blocks += len(seg.Blocks)
		f.ReservedBytes += seg.TotalSize
		count(seg.Stack)
		for j := range seg.Blocks {
			b := &seg.Blocks[j]
			count(b.Stack)
			switch {
			case b.State == snapshot.Allocated:
				f.AllocatedBytes += b.Size
			case b.State == snapshot.Inactive && len(seg.Blocks) > 1 && !seg.Expandable:
				f.InactiveSplitBytes += b.Size
			}
			if b.State.Active() {
				f.ActiveBytes += b.Size
				f.RequestedBytes += b.Requested
			}
		}
	}
	for _, id := range d.Trace.Stack {
		count(id)
	}
	if s.HasHistory() {
		n := d.Trace.Len()
		f.Events, f.OOMEvents = &n, &t.OOMs
		f.PeakReserved, f.PeakRequested = &t.PeakReserved.Bytes, &t.PeakRequested.Bytes
		f.PeakReservedEvent, f.PeakRequestedEvent = &t.PeakReserved.Event, &t.PeakRequested.Event
		if n > 0 && d.Trace.Time != nil {
			f.StartTime, f.EndTime = &d.Trace.Time[0], &d.Trace.Time[n-1]
		}
	}
	return f
}

// Gaps returns what the history does not show, a sentence each.
func (t *Timeline) Gaps() (out []string) {
	if !t.Snap.HasHistory() {
		return nil
	}
	where := snapshot.DeviceName(t.Device)
	if t.Trace.Len() == 0 {
		if t.EndReserved > 0 {
			out = append(out, where+": no events were recorded; only the state is known")
		}
		return out
	}
	if doubt := t.Doubt(); doubt != "" {
		return append(out, where+": "+doubt)
	}
	if t.Complete() {
		return nil
	}
	if t.Snap.RingFull(t.Device) {
		out = append(out, fmt.Sprintf("%s: the ring of %s events overflowed; older events are lost", where, units.Count(int64(t.Trace.Len()))))
	}
	out = append(out, fmt.Sprintf("%s: when the recording began, %s were live (allocations: %s) and %s reserved; who made them is known only where a block says so",
		where, units.Bytes(t.StartRequested), units.Count(int64(len(t.before))), units.Bytes(t.StartReserved)))
	return out
}

// Doubt states by how much the sums over the history of a file may be wrong that was
// read in part or lacks events, "" for others. Blocks that missing events made are
// in the segments, and count as older than the history.
func (t *Timeline) Doubt() string {
	if t.lacking {
		return "events are missing, such as those that skip_actions leaves out: peaks and earlier moments may be too high"
	}
	if t.Snap.Partial == nil || t.Trace.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("events after %s may be missing: the sums at all events may be too high by up to %s requested and %s reserved, of which no event says that it was made",
		units.Count(int64(t.Trace.Len()-1)), units.Bytes(t.StartRequested), units.Bytes(max(t.StartReserved, 0)))
}

// A SiteSum is what one place holds.
type SiteSum struct {
	Site    stack.Site
	Missing Missing // why the site is missing
	Bytes   int64
	Count   int
	Stack   stack.ID // the heaviest
}

// SitesAt sums what lives after event k by place, most bytes first. The zero
// Site is that of unknown stacks, with one sum for each cause.
func (t *Timeline) SitesAt(k int) []SiteSum { return t.sum(t.LiveAt(k)) }

// sum sums allocations by place.
func (t *Timeline) sum(allocs []int) []SiteSum {
	type place struct {
		site    stack.Site
		missing Missing
	}
	sums := map[place]*SiteSum{}
	byStack := map[stack.ID]int64{}
	places := map[stack.ID]place{} // of stacks with frames: what is missing there is the same for all
	for _, i := range allocs {
		id := t.Stack(i)
		at, known := places[id]
		if !known {
			if at = (place{t.Snap.Stacks.Site(id), t.Missing(i)}); id > stack.Empty {
				places[id] = at
			}
		}
		s := sums[at]
		if s == nil {
			s = &SiteSum{Site: at.site, Missing: at.missing, Stack: id}
			sums[at] = s
		}
		s.Bytes += t.Size(i)
		s.Count++
		byStack[id] += t.Size(i)
		if byStack[id] > byStack[s.Stack] {
			s.Stack = id
		}
	}
	return largestFirst(sums)
}

// A PoolSum is what one pool holds on one stream.
type PoolSum struct {
	Pool       snapshot.Pool
	Recorded   bool // false: the file does not state which pool it is, as before PyTorch 2.1
	Stream     uint64
	Type       string // "small" or "large"
	Expandable bool
	Segments   int
	Reserved   int64
	Active     int64
	Free       int64
	LargestGap int64 // the largest inactive block
}

// Pools sums the segments of a device by pool, stream and size class.
func Pools(s *snapshot.Snapshot, d snapshot.Device) []PoolSum {
	type key struct {
		pool       snapshot.PoolID
		stream     snapshot.StreamID
		kind       snapshot.StringID
		expandable bool
	}
	sums := map[key]*PoolSum{}
	var order []*PoolSum
	for _, i := range d.Segments {
		seg := &s.Segments[i]
		k := key{seg.Pool, seg.Stream, seg.Type, seg.Expandable}
		p := sums[k]
		if p == nil {
			p = &PoolSum{Pool: s.PoolOf(seg.Pool), Recorded: seg.Pool != 0, Stream: s.Stream(seg.Stream), Type: s.String(seg.Type), Expandable: seg.Expandable}
			sums[k] = p
			order = append(order, p)
		}
		p.Segments++
		p.Reserved += seg.TotalSize
		for j := range seg.Blocks {
			b := &seg.Blocks[j]
			if b.State.Active() {
				p.Active += b.Size
			} else {
				p.Free += b.Size
				p.LargestGap = max(p.LargestGap, b.Size)
			}
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return order[i].Reserved > order[j].Reserved })
	out := make([]PoolSum, len(order))
	for i, p := range order {
		out[i] = *p
	}
	return out
}
