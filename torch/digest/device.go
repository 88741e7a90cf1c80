package digest

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/torch/purpose"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// triedFrom is the fragmentation, in bytes, from which expandable segments are
// simulated.
const triedFrom = 256 << 20

// Digest analyzes a file.
func (b *Book) Digest(s *snapshot.Snapshot) *File {
	s = s.Sane()
	d := &File{Name: s.Name, Partial: s.Partial, Version: s.TorchVersion(), Unknown: s.Unknown()}
	stacks := make([]stack.ID, s.Stacks.Len()) // the book's IDs by the file's, 0 if not interned yet
	for _, dev := range s.Devices() {
		d.Devices = append(d.Devices, b.device(s, dev, stacks))
	}
	return d
}

// intern returns the book's id of a file's stack.
func (b *Book) intern(s *snapshot.Snapshot, id stack.ID, known []stack.ID) stack.ID {
	if id == stack.None || id == stack.Empty {
		return id
	}
	if known[id] == 0 {
		frames := s.Stacks.Frames(id)
		ids := make([]stack.FrameID, len(frames))
		for i, f := range frames {
			ids[i] = b.Stacks.Frame(s.Stacks.At(f), nil)
		}
		known[id] = b.Stacks.Intern(ids)
	}
	return known[id]
}

// device analyzes one device of a file.
func (b *Book) device(s *snapshot.Snapshot, dev snapshot.Device, stacks []stack.ID) Device {
	t := timeline.New(s, dev)
	out := Device{
		Index: dev.Index, History: historyOf(t, dev.Index), Consistency: consistencyOf(t), Settings: settingsOf(s, dev),
		Totals: Totals{
			Requested: t.EndRequested, Reserved: t.EndReserved,
			PeakRequested: t.PeakRequested.Bytes, PeakReserved: t.PeakReserved.Bytes,
		},
		Usage: Usage{
			Space: timeline.SpaceOf(t, dev), Purpose: purpose.Of(t), Waiting: timeline.WaitingOf(t, dev),
			Private: timeline.PrivatePools(s, dev), Rounding: timeline.RoundingOf(s, dev),
		},
		Allocations: Allocations{Deaths: map[stack.ID]*Lifetimes{}, Kept: map[stack.ID]*timeline.Kept{}},
		Regrown:     timeline.Regrowths(t),
	}
	out.Checkpoints = checkpoints(&out.Steps, out.Events)
	if dev.Index != snapshot.Host && (out.OOMs > 0 || out.Space.Overhead >= triedFrom) {
		x := replay.NewRecording(t).Replay()
		out.Trial, out.Reclaim = replay.TryExpandable(x), replay.TryReclaim(x)
		out.LastOOM = b.oom(t, dev, x, out.Purpose.OOM, stacks)
	}
	out.Purpose.EachStack(func(id *stack.ID) { *id = b.intern(s, *id, stacks) })
	for i := range out.Regrown {
		out.Regrown[i].Stack = b.intern(s, out.Regrown[i].Stack, stacks)
	}
	kept := timeline.KeptBy(t)
	for _, id := range slices.Sorted(maps.Keys(kept)) { // so that stacks are numbered alike in every run
		out.Kept[b.intern(s, id, stacks)] = kept[id]
	}
	out.addAllocations(t, dev, func(id stack.ID) stack.ID { return b.intern(s, id, stacks) })
	out.addInGraphs(s, dev)
	out.addOlder(t)
	return out
}

// historyOf returns what the events of a device cover.
func historyOf(t *timeline.Timeline, device int) History {
	e := &t.Trace.Events
	h := History{
		Events: e.Len(), OOMs: t.OOMs, HasTime: e.Time != nil, HasHistory: t.Snap.HasHistory(),
		Complete: t.Complete(), RingFull: t.Snap.RingFull(device) && !t.Complete(), Steps: t.Steps(),
	}
	for _, a := range e.Action {
		if a == snapshot.SnapshotTaken {
			h.Marks++
		}
	}
	if e.Len() > 0 {
		h.First = e.Addr[0]*31 + uint64(e.Size[0])
		if h.HasTime {
			h.Start, h.End = e.Time[0], e.Time[e.Len()-1]
		}
	}
	return h
}

// consistencyOf collects where a file contradicts itself on a device.
func consistencyOf(t *timeline.Timeline) Consistency {
	c := Consistency{Faults: append(slices.Clone(t.Snap.BadSizes), t.Faults...), Unsound: t.Unsound != "", Doubt: t.Doubt()}
	if c.Unsound && !slices.Contains(c.Faults, t.Unsound) {
		c.Faults = append(c.Faults, t.Unsound)
	}
	return c
}

// settingsOf are the allocator's on a device.
func settingsOf(s *snapshot.Snapshot, dev snapshot.Device) (out Settings) {
	for _, i := range dev.Segments {
		out.Expandable = out.Expandable || s.Segments[i].Expandable
	}
	if s.Settings != nil {
		out.Conf = s.Settings.Conf
	}
	return out
}

// addAllocations adds every allocation of the history, with the book's ID of its
// stack.
func (d *Device) addAllocations(t *timeline.Timeline, dev snapshot.Device, intern func(stack.ID) stack.ID) {
	blocks := blockStacks(t.Snap, dev)
	deaths := make([]*Lifetimes, t.Snap.Stacks.Len()) // by the file's ID of a stack
	for i := range t.Allocs {
		id := intern(t.Stack(i))
		if death := t.Death(i); death != timeline.Never {
			if !t.Before(i) {
				l := &deaths[t.Stack(i)]
				if *l == nil {
					*l = d.lifetimes(id)
				}
				(*l).add(death - t.Birth(i))
			}
		} else {
			missing := t.Missing(i)
			if id <= stack.Empty { // recording of "state" has stacks on blocks alone
				if known, ok := blocks[t.Addr(i)]; ok {
					id, missing = intern(known), t.MissingIn(i, known)
				}
			}
			d.addLive(t, i, id, missing)
		}
		d.addInside(t, i, id)
	}
	sort.Slice(d.Live, func(i, j int) bool { return d.Live[i].Addr < d.Live[j].Addr })
}

// lifetimes are those of a stack of the book's.
func (d *Device) lifetimes(id stack.ID) *Lifetimes {
	l := d.Deaths[id]
	if l == nil {
		l = new(Lifetimes)
		d.Deaths[id] = l
	}
	return l
}

// addLive adds allocation i, unless it was freed and only awaits another stream.
func (d *Device) addLive(t *timeline.Timeline, i int, id stack.ID, missing timeline.Missing) {
	if t.Freed(i) != timeline.Never {
		return
	}
	l := Live{Addr: t.Addr(i), Bytes: t.Size(i), Born: -1, Stack: id, Age: d.Events, Missing: missing}
	if !t.Before(i) {
		l.Born = int64(t.Birth(i))
		l.Age = d.Events - t.Birth(i)
		if d.HasTime {
			l.Born = t.Born(i)
		}
	}
	if noStacks := t.Snap.Stacks.Len() == int(stack.Empty)+1; id == stack.None || noStacks {
		d.UnknownBytes += l.Bytes
		d.UnknownCount++
	}
	d.Live = append(d.Live, l)
}

// addOlder keeps what was allocated before the history began.
func (d *Device) addOlder(t *timeline.Timeline) {
	for i := range t.Allocs {
		if !t.Before(i) {
			break
		}
		d.Older = append(d.Older, Live{Addr: t.Addr(i), Bytes: t.Size(i), Born: -1})
	}
	sorts.By(d.Older, func(a, b Live) int { return cmp.Compare(a.Addr, b.Addr) })
}

// addInGraphs sums up what is alive in the pools of CUDA graphs.
func (d *Device) addInGraphs(s *snapshot.Snapshot, dev snapshot.Device) {
	capturing := map[int]bool{} // steps
	for _, i := range dev.Segments {
		seg := &s.Segments[i]
		if s.PoolOf(seg.Pool).Graph == 0 {
			continue
		}
		from := sort.Search(len(d.Live), func(k int) bool { return d.Live[k].Addr >= seg.Addr })
		for _, l := range d.Live[from:] {
			if l.Addr >= seg.Addr+uint64(seg.TotalSize) {
				break
			}
			if d.InGraphs == nil {
				d.InGraphs = map[stack.ID]int64{}
			}
			d.InGraphs[l.Stack] += l.Bytes
			if birth := d.Events - l.Age; l.Born >= 0 && birth > d.Steps.Begin {
				capturing[sort.SearchInts(d.Steps.Ends, birth)] = true
			}
		}
	}
	d.Captures = len(capturing)
}

// blockStacks are the stacks of live blocks, by address.
func blockStacks(s *snapshot.Snapshot, dev snapshot.Device) map[uint64]stack.ID {
	out := map[uint64]stack.ID{}
	for _, i := range dev.Segments {
		for _, b := range s.Segments[i].Blocks {
			if b.State.Active() && b.Stack > stack.Empty {
				out[b.Addr] = b.Stack
			}
		}
	}
	return out
}
