// Package timeline follows one device's memory through the recorded history:
// which allocations lived when, how many bytes were requested and reserved at
// each event, and what was in the peak. It knows events, not the allocator:
// what needs its rules is package replay.
//
// A history may begin late. What lived before it is found by walking back from
// the final state: a block that is active at the end, or freed on the way,
// without having been allocated in between, was there at the start.
//
// Requested and reserved bytes are exact at every event of a whole file.
// Allocated and active bytes (with rounding and unsplit remainders) need the
// allocator itself; see [Timeline.AllocatedBounds]. Events and allocations are
// numbered from 0; [Never] is the event of what did not happen, and less than
// all others: compare with it first.
package timeline

import (
	"fmt"
	"sort"
	"sync"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/units"
)

// Never is the event of what did not happen in the history.
const Never = -1

// An Alloc is one allocation of the history.
type Alloc struct {
	birth int32 // event, or ^index into Timeline.before
	freed int32 // free_requested, or Never
	death int32 // free_completed, or Never
}

// older is an allocation from before the recording.
type older struct {
	addr  uint64
	size  int64
	stack stack.ID
}

// A Point is a moment of the history and the bytes at it. Event is Never for
// the moment before the first event.
type Point struct {
	Event int
	Bytes int64
}

// A Timeline is the history of one device.
type Timeline struct {
	Snap   *snapshot.Snapshot
	Trace  *snapshot.Trace
	Device int

	Allocs []Alloc // what lived before the recording first, then by birth
	before []older
	device snapshot.Device
	ends   snapshot.Action // what ends an allocation
	past   func() *past    // what taking events back needs

	hasStacks func() bool    // whether any event has a stack with frames
	places    func() []int32 // the places in the user's own code, by stack; see newPlaces
	parts     func() []part  // what the program does, by stack

	// At the start of the history, and at its end (the state of the snapshot).
	StartRequested, StartReserved int64
	EndRequested, EndReserved     int64
	// The first moments at which requested and reserved bytes were highest.
	PeakRequested, PeakReserved Point
	OOMs                        int
	LastOOM                     int // the event, or Never

	// Faults are contradictions inside the history, a sentence each.
	Faults  []string
	lacking bool // frees or allocations are missing in between
	// Unsound states why the segments do not show what was reserved and free, "" if
	// they do.
	Unsound string
}

// New follows the history of a device. Sizes that cannot be count as 0.
func New(s *snapshot.Snapshot, d snapshot.Device) *Timeline {
	if sane := s.Sane(); sane != s {
		s, d = sane, deviceIn(sane, d)
	}
	t := &Timeline{Snap: s, Trace: d.Trace, Device: d.Index, LastOOM: Never, device: d}
	w := walker{t: t, live: newTable(256), gone: map[uint64]bool{}}
	t.ends = completions(s, d)
	t.past = sync.OnceValue(t.newPast)
	t.hasStacks = sync.OnceValue(t.findStacks)
	t.places = sync.OnceValue(t.newPlaces)
	t.parts = sync.OnceValue(t.newParts)
	w.countAllocs()
	w.walk()
	w.end(d)
	t.measure()
	t.findUnsound()
	return t
}

// deviceIn is a device as another snapshot with the same parts has it.
func deviceIn(s *snapshot.Snapshot, d snapshot.Device) snapshot.Device {
	for _, x := range s.Devices() {
		if x.Index == d.Index {
			return x
		}
	}
	return d
}

// findUnsound looks whether the blocks of the segments are all there.
func (t *Timeline) findUnsound() {
	if t.Snap.Partial != nil || t.Unsound != "" {
		return
	}
	for _, i := range t.device.Segments {
		seg, sum := &t.Snap.Segments[i], int64(0)
		for j := range seg.Blocks {
			sum += seg.Blocks[j].Size
		}
		if sum != seg.TotalSize {
			t.Unsound = fmt.Sprintf("the blocks of the segment at 0x%x of %s do not add up: %s of %s",
				seg.Addr, snapshot.DeviceName(t.Device), units.Bytes(sum), units.Bytes(seg.TotalSize))
			return
		}
	}
}

// walker builds the allocations of a timeline.
type walker struct {
	t      *Timeline
	live   *table // address → index into t.Allocs
	onLive faults
	again  faults
	early  []Alloc         // from before the recording
	gone   map[uint64]bool // addresses of those that the history frees
}

// faults counts violations of one rule and keeps the first place.
type faults struct {
	n     int
	first string
}

func (f *faults) add(format string, args ...any) {
	if f.n == 0 {
		f.first = fmt.Sprintf(format, args...)
	}
	f.n++
}

func (w *walker) countAllocs() {
	n := 0
	for _, a := range w.t.Trace.Action {
		if a == snapshot.Alloc {
			n++
		}
	}
	w.t.Allocs = make([]Alloc, 0, n+64)
}

// walk goes through the events once.
func (w *walker) walk() {
	t, e := w.t, &w.t.Trace.Events
	for k, action := range e.Action {
		switch action {
		case snapshot.Alloc:
			addr := e.Addr[k]
			if i, ok := w.live.get(addr); ok {
				w.onLive.add("event %s allocates 0x%x, which is in use", units.Count(int64(k)), addr)
				w.alloc(i).death = int32(k)
			}
			w.live.put(addr, int32(len(t.Allocs)))
			t.Allocs = append(t.Allocs, Alloc{int32(k), Never, Never})
		case snapshot.FreeRequested:
			a := w.find(e.Addr[k], k)
			if a.freed == Never {
				a.freed = int32(k)
			}
			if t.ends == snapshot.FreeRequested {
				a.death = int32(k)
				w.live.delete(e.Addr[k])
			}
		case snapshot.FreeCompleted:
			a := w.find(e.Addr[k], k)
			if a.freed == Never {
				a.freed = int32(k)
			}
			a.death = int32(k)
			w.live.delete(e.Addr[k])
		case snapshot.OOM:
			t.OOMs++
			t.LastOOM = k
		}
	}
}

// Indices of early allocations in the table are negative.
func (w *walker) alloc(i int32) *Alloc {
	if i < 0 {
		return &w.early[^i]
	}
	return &w.t.Allocs[i]
}

// find is the allocation at addr, which event k frees. One that was not made in
// the history was there before it.
func (w *walker) find(addr uint64, k int) *Alloc {
	i, ok := w.live.get(addr)
	if !ok {
		if w.gone[addr] {
			w.again.add("event %s frees 0x%x", units.Count(int64(k)), addr)
		}
		w.gone[addr] = true
		i = w.addEarly(older{addr: addr, size: w.t.Trace.Size[k]})
		w.live.put(addr, i)
	}
	return w.alloc(i)
}

func (w *walker) addEarly(o older) int32 {
	w.early = append(w.early, Alloc{^int32(len(w.t.before)), Never, Never})
	w.t.before = append(w.t.before, o)
	return ^int32(len(w.early) - 1)
}

// end holds the history against the final state, and takes from it what lived
// all the time.
func (w *walker) end(d snapshot.Device) {
	t, s := w.t, w.t.Snap
	var missing, size faults
	matched := 0
	for _, i := range d.Segments {
		seg := &s.Segments[i]
		t.EndReserved += seg.TotalSize
		for j := range seg.Blocks {
			b := &seg.Blocks[j]
			if !b.State.Active() {
				continue
			}
			t.EndRequested += b.Requested
			i, ok := w.live.get(b.Addr)
			if !ok {
				w.addEarly(older{b.Addr, b.Requested, b.Stack})
				continue
			}
			matched++
			a := w.alloc(i)
			if i < 0 {
				o := &t.before[^a.birth]
				o.stack, o.size = b.Stack, b.Requested
			} else if want := t.Trace.Size[a.birth]; want != b.Requested {
				size.add("0x%x was allocated with %s bytes and has %s", b.Addr, units.Count(want), units.Count(b.Requested))
			}
		}
	}
	if n := w.live.n - matched; n > 0 {
		missing.n = n
	}
	t.Allocs = append(t.Allocs, w.early...)
	if n := len(w.early); n > 0 { // to the front, where the order by birth has them
		copy(t.Allocs[n:], t.Allocs[:len(t.Allocs)-n])
		copy(t.Allocs, w.early)
	}
	t.fault(w.onLive, "allocation", "at an address in use")
	t.fault(w.again, "free", "of memory that was freed before")
	t.lacking = s.Partial == nil && (w.onLive.n > 0 || w.again.n > 0 || missing.n > 0 && len(d.Segments) > 0)
	t.fault(size, "block", "of another size than was allocated")
	if missing.n > 0 && s.Partial == nil && len(d.Segments) > 0 {
		are := "are"
		if missing.n == 1 {
			are = "is"
		}
		t.Faults = append(t.Faults, fmt.Sprintf("%s of %s %s neither freed in the history nor in a segment",
			units.Plural(int64(missing.n), "allocation"), snapshot.DeviceName(t.Device), are))
	}
}

func (t *Timeline) fault(f faults, one, what string) {
	if f.n > 0 {
		t.Faults = append(t.Faults, fmt.Sprintf("%s %s on %s, first: %s", units.Plural(int64(f.n), one), what, snapshot.DeviceName(t.Device), f.first))
	}
}

// measure computes the figures of the start and the peaks.
func (t *Timeline) measure() {
	for i := range t.Allocs {
		if t.Allocs[i].birth >= 0 {
			break
		}
		t.StartRequested += t.Size(i)
	}
	t.StartReserved = t.EndReserved
	for k, a := range t.Trace.Action {
		switch a {
		case snapshot.SegmentAlloc, snapshot.SegmentMap:
			t.StartReserved -= t.Trace.Size[k]
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			t.StartReserved += t.Trace.Size[k]
		}
	}
	if t.StartReserved < 0 && t.Snap.Partial == nil {
		t.Unsound = fmt.Sprintf("%s took %s more from the driver than its segments and releases account for",
			snapshot.DeviceName(t.Device), units.Bytes(-t.StartReserved))
		t.Faults = append(t.Faults, t.Unsound)
	}
	t.PeakRequested = Point{Never, t.StartRequested}
	t.PeakReserved = Point{Never, t.StartReserved}
	t.Walk(func(k int, requested, reserved int64) bool {
		if requested > t.PeakRequested.Bytes {
			t.PeakRequested = Point{k, requested}
		}
		if reserved > t.PeakReserved.Bytes {
			t.PeakReserved = Point{k, reserved}
		}
		return true
	})
}

// SegmentIndices are those of the device in Snapshot.Segments.
func (t *Timeline) SegmentIndices() []int { return t.device.Segments }

// Walk calls f after each event with the bytes requested and reserved then,
// until f returns false.
func (t *Timeline) Walk(f func(event int, requested, reserved int64) bool) {
	requested, reserved := t.StartRequested, t.StartReserved
	e := &t.Trace.Events
	for k, a := range e.Action {
		switch a {
		case snapshot.Alloc:
			requested += e.Size[k]
		case t.ends:
			requested -= e.Size[k]
		case snapshot.SegmentAlloc, snapshot.SegmentMap:
			reserved += e.Size[k]
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			reserved -= e.Size[k]
		}
		if !f(k, requested, reserved) {
			return
		}
	}
}

// completions is the action that ends an allocation in a trace: the recorder can
// be configured to skip free_completed. Where no free is completed but blocks are
// pending, the frees simply wait, unless an address is used again.
func completions(s *snapshot.Snapshot, d snapshot.Device) snapshot.Action {
	freed := map[uint64]bool{}
	again := false
	for k, a := range d.Trace.Action {
		switch a {
		case snapshot.FreeCompleted:
			return a
		case snapshot.FreeRequested:
			freed[d.Trace.Addr[k]] = true
		case snapshot.Alloc:
			again = again || freed[d.Trace.Addr[k]]
		}
	}
	if again {
		return snapshot.FreeRequested
	}
	for _, i := range d.Segments {
		for _, b := range s.Segments[i].Blocks {
			if b.State == snapshot.Pending {
				return snapshot.FreeCompleted
			}
		}
	}
	return snapshot.FreeRequested
}

// Before reports whether allocation i was made before the recording.
func (t *Timeline) Before(i int) bool { return t.Allocs[i].birth < 0 }

// Birth is the event that made allocation i, Never if it is older.
func (t *Timeline) Birth(i int) int { return max(int(t.Allocs[i].birth), Never) }

// Freed is the event by which the program freed allocation i, or Never. The
// block can serve others only from [Timeline.Death] on.
func (t *Timeline) Freed(i int) int { return int(t.Allocs[i].freed) }

// Death is the event that completed the free of allocation i, or Never.
func (t *Timeline) Death(i int) int { return int(t.Allocs[i].death) }

// Size is the requested bytes of allocation i.
func (t *Timeline) Size(i int) int64 {
	if b := t.Allocs[i].birth; b >= 0 {
		return t.Trace.Size[b]
	}
	return t.before[^t.Allocs[i].birth].size
}

// Addr is the address of allocation i.
func (t *Timeline) Addr(i int) uint64 {
	if b := t.Allocs[i].birth; b >= 0 {
		return t.Trace.Addr[b]
	}
	return t.before[^t.Allocs[i].birth].addr
}

// Stack is the stack that made allocation i, stack.None if it was not recorded.
func (t *Timeline) Stack(i int) stack.ID {
	if b := t.Allocs[i].birth; b >= 0 {
		return t.Trace.Stack[b]
	}
	return t.before[^t.Allocs[i].birth].stack
}

// Born is the time at which allocation i was made, 0 if unknown.
func (t *Timeline) Born(i int) int64 {
	if b := t.Allocs[i].birth; b >= 0 && t.Trace.Time != nil {
		return t.Trace.Time[b]
	}
	return 0
}

// LiveAt lists the allocations that live after event k; Never is the moment
// before the first event.
func (t *Timeline) LiveAt(k int) (out []int) {
	for i := range t.Allocs {
		a := &t.Allocs[i]
		if int(a.birth) <= k || a.birth < 0 {
			if a.death == Never || int(a.death) > k {
				out = append(out, i)
			}
		} else {
			break
		}
	}
	return out
}

// RequestedAt and ReservedAt are the bytes after event k.
func (t *Timeline) RequestedAt(k int) int64 { n, _ := t.at(k); return n }

// ReservedAt is the bytes of segments after event k.
func (t *Timeline) ReservedAt(k int) int64 { _, n := t.at(k); return n }

func (t *Timeline) at(k int) (requested, reserved int64) {
	requested, reserved = t.StartRequested, t.StartReserved
	if k == Never {
		return
	}
	t.Walk(func(event int, q, r int64) bool {
		requested, reserved = q, r
		return event < k
	})
	return
}

// AllocatedBounds bounds the allocated bytes after event k: each request is
// rounded up to 512 bytes at least, and all of it is in segments. The exact
// figure depends on the allocator's splitting.
func (t *Timeline) AllocatedBounds(k int) (low, high int64) {
	for _, i := range t.LiveAt(k) {
		if f := t.Freed(i); f == Never || f > k {
			low += max(512, (t.Size(i)+511)/512*512)
		}
	}
	return low, t.ReservedAt(k)
}

// Complete reports whether the history covers the device's whole life: nothing
// was live or reserved when it began.
func (t *Timeline) Complete() bool {
	return t.StartRequested == 0 && t.StartReserved == 0 && len(t.before) == 0
}

// AllocOf is the allocation that event k made or freed, if it is of such a kind.
func (t *Timeline) AllocOf(k int) (int, bool) {
	switch t.Trace.Action[k] {
	case snapshot.Alloc:
		i := sort.Search(len(t.Allocs), func(i int) bool { return int(t.Allocs[i].birth) >= k })
		return i, i < len(t.Allocs) && int(t.Allocs[i].birth) == k
	case snapshot.FreeRequested, snapshot.FreeCompleted:
		for i := range t.Allocs {
			if int(t.Allocs[i].freed) == k || int(t.Allocs[i].death) == k {
				return i, true
			}
		}
	}
	return 0, false
}

// Ends is the action that ends an allocation in this history: free_completed,
// or free_requested where the recorder was configured to skip completions.
func (t *Timeline) Ends() snapshot.Action { return t.ends }
