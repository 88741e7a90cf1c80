package digest

import (
	"strandline/stack"
	"strandline/torch/purpose"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// OOM is the last request of a history that failed, and what memory held
// then.
type OOM struct {
	Event int
	Time  int64 // µs, 0 if unknown
	Stack stack.ID

	// Known reports which of the figures below the file holds and does not contradict.
	Known struct{ Request, DeviceFree, State bool }

	Request    int64 // rounded, as recorded
	DeviceFree int64 // what the driver had left
	Reserved   int64
	Requested  int64 // of what lived
	// Active is the rounded size of the blocks that were active. Where Exact is
	// false it is a lower bound, and the holes are upper bounds: the file was
	// dumped later, no replay has the sizes, and the blocks of the moment are inferred
	// from its events.
	Active int64
	Exact  bool
	After  int // allocations made later: the program continued

	Stream uint64
	Pool   *snapshot.Pool // of the request; nil before PyTorch 2.12, which records it
	Pools  []timeline.PoolSum
	Free   timeline.Free  // in segments
	Memory purpose.Moment // what it was for

	Expandable bool               // segments are expandable
	Conf       string             // the allocator's settings, "" if unknown
	Sites      []timeline.SiteSum // what lived, by place, most bytes first; the stacks are of the book
}

// oom describes the last failure of a timeline, nil if there is none; memory is
// what it was for then.
func (b *Book) oom(t *timeline.Timeline, dev snapshot.Device, exact *replay.Result, memory *purpose.Moment, stacks []stack.ID) *OOM {
	if t.OOMs == 0 {
		return nil
	}
	s, e := t.Snap, &t.Trace.Events
	k := t.LastOOM
	o := &OOM{
		Event: k, Stack: b.intern(s, e.Stack[k], stacks), Request: e.Size[k], DeviceFree: e.DeviceFree(k),
		Stream: s.Stream(e.Stream[k]), Exact: true, Memory: *memory,
	}
	o.Known.Request = t.Trace.HasSize(k) && o.Request > 0
	o.Known.DeviceFree, o.Known.State = t.Trace.HasDeviceFree(k), t.Unsound == ""
	o.Requested, o.Reserved = t.RequestedAt(k), t.ReservedAt(k)
	if e.Time != nil {
		o.Time = e.Time[k]
	}
	if e.Pool != nil {
		pool := s.PoolOf(e.Pool[k])
		o.Pool = &pool
	}
	if set := s.Settings; set != nil {
		o.Conf, o.Expandable = set.Conf, set.ExpandableSegments
	}
	for _, a := range e.Action[k+1:] {
		o.Exact = o.Exact && (a == snapshot.SnapshotTaken || a == snapshot.Annotate)
		if a == snapshot.Alloc {
			o.After++
		}
	}
	o.addState(t, dev, exact)
	for _, sum := range t.SitesAt(k) {
		sum.Stack = b.intern(s, sum.Stack, stacks)
		o.Sites = append(o.Sites, sum)
	}
	return o
}

// addState adds the state of the segments at the failure. A file that was dumped
// later is cut after it; an exact replay has the sizes of the blocks.
func (o *OOM) addState(t *timeline.Timeline, dev snapshot.Device, exact *replay.Result) {
	s := t.Snap
	if !o.Exact {
		sizes := exact.BlockSizes()
		o.Exact = sizes != nil
		s = t.Part(0, o.Event+1, sizes)
		dev = s.Devices()[0]
	}
	o.Pools, o.Free = timeline.Pools(s, dev), timeline.FreeOf(s, dev)
	for _, p := range o.Pools {
		o.Active += p.Active
		o.Expandable = o.Expandable || p.Expandable
	}
}

// serves reports whether a pool could have served the request. Where the
// request's pool was not recorded it is taken to be the default one.
func (o *OOM) serves(p timeline.PoolSum) bool {
	pool := snapshot.Pool{}
	if o.Pool != nil {
		pool = *o.Pool
	}
	return p.Pool == pool && p.Stream == o.Stream && p.Type == timeline.SizeClass(o.Request)
}

// Hole is the largest free block that the request could have used: of its
// stream, pool and size class.
func (o *OOM) Hole() (bytes int64) {
	for _, p := range o.Pools {
		if o.serves(p) {
			bytes = max(bytes, p.LargestGap)
		}
	}
	return bytes
}
