// Package compare holds several snapshots against each other: of one process
// over time, of many processes, or of two runs of different code.
//
// Files are read one after another; of each only a [Digest] is kept: what lived
// at its end, and what its history says of lifetimes. An allocation is the same
// in two files if it stands at the same address with the same size and was made
// at the same moment, or, where that moment was not recorded, if nothing says
// otherwise: an address alone is no identity.
package compare

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"strandline/judge/trend"
	"strandline/logs"
	"strandline/stack"
	"strandline/torch/purpose"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A Book interns the stacks of all files of a session, so that digests of
// different files speak of the same ones. Not safe for concurrent use.
type Book struct {
	Stacks *stack.Table
}

// NewBook makes an empty book.
func NewBook() *Book { return &Book{stack.NewTable()} }

// A Digest is what is kept of one file.
type Digest struct {
	Name    string
	Partial *snapshot.Partial
	Version string
	Devices []Device
	Pinned  *timeline.Pinned // host memory, nil where it was not recorded
	Said    *logs.Text       // where the file is no snapshot, but text that PyTorch's words stand in
}

// A Device is one device's part of a digest.
type Device struct {
	Index      int
	Events     int
	OOMs       int
	LastOOM    *OOM  // nil if memory never ran out inside the history
	Start, End int64 // µs, of the first and the last event; 0 if unknown
	HasTime    bool
	HasHistory bool
	Complete   bool // the history covers the device's whole life
	// Faults say where the file contradicts itself, so that figures may be wrong, a
	// sentence each. Unsound is true where its segments do not tell what was reserved
	// and free.
	Faults   []string
	Unsound  bool
	RingFull bool           // the ring of events seems to have overflowed
	Steps    timeline.Steps // of the program, inside the history

	Requested, Reserved, PeakRequested, PeakReserved int64
	UnknownBytes, UnknownCount                       int64 // live, and nobody recorded a stack

	Space      timeline.Space
	Purpose    purpose.Memory // what the memory is for, at the peak and at the end
	Expandable bool           // segments are expandable
	Conf       string         // PYTORCH_CUDA_ALLOC_CONF, "" if unknown
	Waiting    timeline.Waiting
	Private    []timeline.PrivatePool // most reserved first
	Rounding   timeline.Rounding
	// Trial is what expandable segments would have done, where memory ran out or
	// much was taken though enough was free; nil elsewhere.
	Trial *replay.Trial

	Live []Live // by address
	// Older are the allocations that lived before the history began, by address, and
	// First its first event, a digest of it: together they show which files are of one
	// process.
	Older []Live
	First uint64
	// InGraphs is how much of what lives stands in memory pools of CUDA graphs, by
	// stack, in requested bytes: such a block lives as long as its graph.
	InGraphs map[stack.ID]int64
	// Captures is in how many steps something of it was allocated.
	Captures int
	// Deaths counts, by stack, the allocations that were freed inside the history
	// by the logarithm of their lifetime in events.
	Deaths map[stack.ID]*Lifetimes
	// Inside is what each stack held at the checkpoints of the history, for judging a
	// file by itself; nil where it has too few steps.
	Inside      map[stack.ID]*trend.Population
	Checkpoints Checkpoints
}

// Checkpoints are the moments of a history at which growth is measured: before
// its first step, at the ends of steps, and at its end.
type Checkpoints struct {
	Events []int // each counts what lives after that event; -1 is before all of them
	// Steps is how many of the checkpoints end a step or several; they follow the
	// first. Another one, the end, stands behind them where the history goes on.
	Steps int
}

// Live is an allocation that lives at the end of a file.
type Live struct {
	Addr  uint64
	Bytes int64 // requested
	Born  int64 // µs; the event's number where the file has no times; -1 if unknown
	Age   int   // events since it was made, all of the history if it is older
	Stack stack.ID
}

// Lifetimes is a histogram: element i counts lifetimes of 2^(i-1) to 2^i events.
type Lifetimes [32]int32

// Over is the number of lifetimes of at least the given number of events, taken
// up to the next power of two.
func (l *Lifetimes) Over(events int) (n int64) {
	for i := bits.Len(uint(max(events-1, 0))) + 1; i < len(l); i++ {
		n += int64(l[i])
	}
	return n
}

func (l *Lifetimes) add(events int) {
	l[min(bits.Len(uint(events)), len(l)-1)]++
}

// mostCheckpoints is at how many ends of steps growth inside a history is measured
// at the most.
const mostCheckpoints = 50

// triedFrom is the fragmentation from which on another setting is simulated.
const triedFrom = 256 << 20

// Digest reduces a file to what comparing needs.
func (b *Book) Digest(s *snapshot.Snapshot) *Digest {
	s = s.Sane()
	d := &Digest{Name: s.Name, Partial: s.Partial, Version: s.TorchVersion(), Pinned: timeline.PinnedOf(s)}
	stacks := make([]stack.ID, s.Stacks.Len()) // of the file → of the book, 0 not yet
	for _, dev := range s.Devices() {
		d.Devices = append(d.Devices, b.device(s, dev, stacks))
	}
	return d
}

// intern is the book's id of a file's stack.
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

func (b *Book) device(s *snapshot.Snapshot, dev snapshot.Device, stacks []stack.ID) Device {
	t := timeline.New(s, dev)
	e := &dev.Trace.Events
	out := Device{
		Index: dev.Index, Events: e.Len(), OOMs: t.OOMs, HasTime: e.Time != nil, HasHistory: s.HasHistory(),
		Complete: t.Complete(), RingFull: s.RingFull(dev.Index) && !t.Complete(),
		Requested: t.EndRequested, Reserved: t.EndReserved,
		PeakRequested: t.PeakRequested.Bytes, PeakReserved: t.PeakReserved.Bytes,
		Deaths: map[stack.ID]*Lifetimes{},
	}
	out.Faults, out.Unsound = append(slices.Clone(s.BadSizes), t.Faults...), t.Unsound != ""
	if out.Unsound && !slices.Contains(out.Faults, t.Unsound) {
		out.Faults = append(out.Faults, t.Unsound)
	}
	if e.Time != nil && e.Len() > 0 {
		out.Start, out.End = e.Time[0], e.Time[e.Len()-1]
	}
	out.Steps = t.Steps()
	out.Checkpoints = checkpoints(&out.Steps, e.Len())
	blocks := blockStacks(s, dev)
	out.Space = timeline.SpaceOf(t, dev)
	out.Purpose = purpose.Of(t)
	if out.OOMs > 0 || out.Space.Overhead >= triedFrom {
		x := replay.NewRecording(t).Exact()
		out.Trial = replay.TryExpandable(x)
		out.LastOOM = b.oom(t, dev, x, out.Purpose.OOM, stacks)
	}
	out.Purpose.EachStack(func(id *stack.ID) { *id = b.intern(s, *id, stacks) })
	out.Waiting = timeline.WaitingOf(t, dev)
	out.Private = timeline.PrivatePools(s, dev)
	out.Rounding = timeline.RoundingOf(s, dev)
	for _, i := range dev.Segments {
		out.Expandable = out.Expandable || s.Segments[i].Expandable
	}
	if s.Settings != nil {
		out.Conf = s.Settings.Conf
	}
	for i := range t.Allocs {
		id := b.intern(s, t.Stack(i), stacks)
		if death := t.Death(i); death != timeline.Never {
			if !t.Before(i) {
				l := out.Deaths[id]
				if l == nil {
					l = new(Lifetimes)
					out.Deaths[id] = l
				}
				l.add(death - t.Birth(i))
			}
		} else {
			if id <= stack.Empty { // recording of "state" has stacks on blocks alone
				if known, ok := blocks[t.Addr(i)]; ok {
					id = b.intern(s, known, stacks)
				}
			}
			out.addLive(t, i, id)
		}
		out.addInside(t, i, id)
	}
	sort.Slice(out.Live, func(i, j int) bool { return out.Live[i].Addr < out.Live[j].Addr })
	out.addInGraphs(s, dev)
	out.addStart(t)
	return out
}

func (d *Device) addLive(t *timeline.Timeline, i int, id stack.ID) {
	if t.Freed(i) != timeline.Never { // it only waits for another stream
		return
	}
	l := Live{Addr: t.Addr(i), Bytes: t.Size(i), Born: -1, Stack: id, Age: d.Events}
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

// addStart keeps how the history begins.
func (d *Device) addStart(t *timeline.Timeline) {
	for i := range t.Allocs {
		if !t.Before(i) {
			break
		}
		d.Older = append(d.Older, Live{Addr: t.Addr(i), Bytes: t.Size(i), Born: -1})
	}
	slices.SortFunc(d.Older, func(a, b Live) int { return cmp.Compare(a.Addr, b.Addr) })
	if e := &t.Trace.Events; e.Len() > 0 {
		d.First = e.Addr[0]*31 + uint64(e.Size[0])
	}
}

// addInGraphs finds what lives in the pools of CUDA graphs.
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

// checkpoints are those of a history with some steps and events; there are none if
// the steps are too few. Where there are many steps each ends several of them.
func checkpoints(s *timeline.Steps, events int) (c Checkpoints) {
	n := len(s.Ends)
	if !s.Enough() {
		return c
	}
	stride := (n + mostCheckpoints - 1) / mostCheckpoints
	c.Events = append(c.Events, s.Begin)
	for i := (n - 1) % stride; i < n; i += stride {
		c.Events = append(c.Events, s.Ends[i])
	}
	c.Steps = len(c.Events) - 1
	if last := s.Ends[n-1]; last < events-1 {
		c.Events = append(c.Events, events-1)
	}
	return c
}

// addInside counts allocation i at the checkpoints of the history.
func (d *Device) addInside(t *timeline.Timeline, i int, id stack.ID) {
	n := len(d.Checkpoints.Events)
	if n == 0 {
		return
	}
	first := sort.SearchInts(d.Checkpoints.Events, t.Birth(i))
	last := n - 1
	if freed := t.Freed(i); freed != timeline.Never {
		last = sort.SearchInts(d.Checkpoints.Events, freed) - 1 // the last checkpoint before it
	}
	if first > last {
		return
	}
	if d.Inside == nil {
		d.Inside = map[stack.ID]*trend.Population{}
	}
	p := d.Inside[id]
	if p == nil {
		p = trend.NewPopulation(n)
		d.Inside[id] = p
	}
	p.Add(trend.Span{First: first, Last: last, Bytes: t.Size(i)})
}
