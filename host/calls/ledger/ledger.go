package ledger

import (
	"sort"
	"sync"

	"strandline/host/calls/event"
	"strandline/host/proc/procfs"
	"strandline/host/proc/vmmap"
	"strandline/trend"
)

// A Kind is the kind of memory of an interval.
type Kind uint8

// The kinds.
const (
	Anonymous Kind = iota // private memory that belongs to no file
	Heap                  // grown with brk
	Shared                // memory that other processes can map too
	FileBacked
	Special // owned by the kernel: a stack that grows on demand, the vDSO
)

// A CauseID identifies why an interval exists: it is an index into [Ledger.Causes].
type CauseID uint32

// The causes that are not calls.
const (
	Before CauseID = iota // mapped when the recording began, or inherited
	Unseen                // appeared without any call that was seen
)

// A Site identifies the calls of one kind and size from one place in one process.
type Site struct {
	pid   uint32
	Op    event.Op
	class uint32
	place event.Place
}

// A Cause is the calls of one site with one stack, and what they made. stack is 0 for
// calls whose stack was not copied, or not yet; Inferred reports whether the stack is
// that of another call of the site.
type Cause struct {
	Site
	stack       int
	inferred    bool
	Live, Count int64 // bytes and intervals that are still mapped
	total       int64 // bytes that were ever mapped, as far as was seen
	calls       int64
	maxSize     int64 // of a single interval
	peak        int64 // live at once since the last call of [Ledger.Peaks]
	gone        map[[2]int]freed
}

type freed struct{ count, bytes int64 }

type causeKey struct {
	Site
	stack    int
	inferred bool
}

// A Ledger always knows what is mapped in the watched processes, by whom and since
// when.
type Ledger struct {
	Causes      []Cause
	index       map[causeKey]CauseID
	named       map[Site]bool // sites with a stack
	unused      []CauseID     // of processes that have ended
	spaces      map[uint32]*Space
	checkpoints []uint64 // times
	// Discarded is the number of bytes that madvise freed without unmapping them.
	Discarded   int64
	Corrections Corrections
}

// Corrections list where the ledger differed from the kernel's own list.
type Corrections struct {
	Checks         int
	Missing, Extra int64 // bytes: mapped and not in the ledger; in the ledger and not mapped
}

// A Space is the memory of one process.
type Space struct {
	pid uint32
	spans
	causes  []CauseID // those of its calls
	brk     uint64
	checked int
	gone    []addresses // unmapped before the first check
	// attached are the calls of shmat whose mapping no check has seen yet, by address:
	// only the kernel's list shows how large it is.
	attached map[uint64]attachment
	missing  [2][]addresses // found by the last checks, the latest first
	extra    []Interval     // found by the last check
}

// New returns a ledger without processes.
func New() *Ledger {
	return &Ledger{Causes: make([]Cause, 2), index: map[causeKey]CauseID{}, named: map[Site]bool{}, spaces: map[uint32]*Space{}}
}

// Space returns the space of a process, and creates it if it is new.
func (l *Ledger) Space(pid uint32) *Space {
	s := l.spaces[pid]
	if s == nil {
		s = &Space{pid: pid}
		l.spaces[pid] = s
	}
	return s
}

// Each calls f with the intervals of a space, by address.
func (s *Space) Each(f func(iv *Interval)) { s.each(f) }

// maxCauses bounds how many causes are distinguished. If the word on top of the stack
// is not a return address, as in programs that make system calls directly, every call
// can seem to come from another place; calls from places beyond the bound count as if
// they came from no place.
const maxCauses = 1 << 16

func (l *Ledger) cause(site Site, stack int, inferred bool) CauseID {
	key := causeKey{site, stack, inferred}
	c, ok := l.index[key]
	if !ok && len(l.index) >= maxCauses {
		site.place = event.Place{}
		key = causeKey{site, stack, inferred}
		c, ok = l.index[key]
	}
	if ok {
		return c
	}
	if n := len(l.unused); n > 0 {
		c, l.unused = l.unused[n-1], l.unused[:n-1]
	} else {
		c = CauseID(len(l.Causes))
		l.Causes = append(l.Causes, Cause{})
	}
	l.Causes[c] = Cause{Site: site, stack: stack, inferred: inferred}
	l.index[key] = c
	if stack != 0 {
		l.named[site] = true
	}
	if s := l.spaces[site.pid]; s != nil {
		s.causes = append(s.causes, c)
	}
	return c
}

// apply enters an event. Events come in the order of their time.
func (l *Ledger) apply(e *event.Event) {
	s := l.Space(e.PID)
	switch e.Op {
	case event.Map:
		whole := *e
		whole.Len = rounded(e)
		l.place(s, &whole, l.mapped(e))
	case event.Attach:
		s.attach(e)
	case event.Unmap:
		l.remove(s, e.Addr, e.Addr+e.Len, e.Time)
	case event.Remap:
		l.remap(s, e)
	case event.Break:
		l.breakAt(s, e)
	case event.Protect:
		l.protect(s, e)
	case event.Advise:
		if dontNeed := e.Flags == 4 || e.Flags == 24 || e.Flags == 9; dontNeed {
			l.Discarded += int64(e.Len)
		}
	case event.Detach:
		delete(s.attached, e.Addr)
		s.within(e.Addr, e.Addr+1, func(iv *Interval) bool {
			if iv.Start == e.Addr {
				l.remove(s, iv.Start, iv.End, e.Time)
			}
			return false
		})
	case event.Fork:
		if pid := uint32(e.Old); pid == e.Child() {
			if old := l.spaces[pid]; old != nil { // the end of the old space was not seen
				l.end(old, e.Time)
			}
			l.spaces[pid] = &Space{pid: pid}
		}
	case event.Exec:
		l.end(s, e.Time)
	case event.Exit:
		if e.Child() == e.PID {
			l.end(s, e.Time)
		}
	}
}

const (
	mremapDontUnmap = 4
	mapHuge         = 0x40000
)

var defaultHugePage = sync.OnceValue(procfs.HugePage)

// rounded returns the length of a new mapping, in bytes: with MAP_HUGETLB the kernel
// rounds it up to whole pages of the requested size.
func rounded(e *event.Event) uint64 {
	if e.Flags&mapHuge == 0 || e.Flags&event.MapAnonymous == 0 {
		return e.Len
	}
	page := defaultHugePage()
	if log := e.Flags >> 26 & 0x3f; log != 0 {
		page = 1 << log
	}
	return (e.Len + page - 1) / page * page
}

func SiteOf(e *event.Event) Site { return Site{e.PID, e.Op, e.Class, e.Place} }

func (l *Ledger) mapped(e *event.Event) Interval {
	iv := Interval{writable: e.Prot&event.ProtWrite != 0}
	switch {
	case e.Flags&event.MapShared != 0 && e.Flags&event.MapAnonymous != 0:
		iv.kind = Shared
	case e.Flags&event.MapAnonymous == 0:
		iv.kind = FileBacked
	}
	return iv
}

// place puts a new interval at the address of the event, and ends what was there.
func (l *Ledger) place(s *Space, e *event.Event, iv Interval) {
	iv.Start, iv.End, iv.since = e.Addr, e.Addr+e.Len, e.Time
	if iv.End <= iv.Start {
		return
	}
	l.remove(s, iv.Start, iv.End, e.Time)
	iv.Cause = l.cause(SiteOf(e), 0, false)
	l.Causes[iv.Cause].calls++
	l.put(s, iv)
}

func (l *Ledger) put(s *Space, iv Interval) {
	c := &l.Causes[iv.Cause]
	c.Live += iv.Size()
	c.peak = max(c.peak, c.Live)
	c.total += iv.Size()
	c.maxSize = max(c.maxSize, iv.Size())
	if !iv.rest {
		c.Count++
	}
	s.put(iv)
}

// remove ends, at a given time, what is in a range.
func (l *Ledger) remove(s *Space, start, end, at uint64) []Interval {
	if end <= start {
		return nil
	}
	s.ended(start, end)
	cut := s.cut(start, end)
	for i := range cut {
		l.account(&cut[i], at)
	}
	return cut
}

// ended records for the first check what was unmapped before it.
func (s *Space) ended(start, end uint64) {
	if s.checked == 0 {
		s.gone = append(s.gone, addresses{start, end})
	}
}

// account subtracts an interval from its cause.
func (l *Ledger) account(iv *Interval, at uint64) {
	c := &l.Causes[iv.Cause]
	c.Live -= iv.Size()
	if iv.rest {
		return
	}
	c.Count--
	first, last := l.checkpointFrom(iv.since), l.checkpointFrom(at)-1
	if first <= last {
		if c.gone == nil {
			c.gone = map[[2]int]freed{}
		}
		g := c.gone[[2]int{first, last}]
		c.gone[[2]int{first, last}] = freed{g.count + 1, g.bytes + iv.Size()}
	}
}

// remap moves an interval, with what is known about it. An interval that grew is
// attributed as a whole to the call that made it grow.
func (l *Ledger) remap(s *Space, e *event.Event) {
	iv := Interval{writable: true}
	s.within(e.Old, e.Old+1, func(old *Interval) bool {
		iv.kind, iv.writable = old.kind, old.writable
		return false
	})
	var cut []Interval
	if e.Flags&mremapDontUnmap == 0 && e.OldLen > 0 {
		s.ended(e.Old, e.Old+e.OldLen)
		for _, old := range s.until(e.Old, e.Old+e.OldLen, e.Time-uint64(e.Took)) {
			cut = append(cut, l.remove(s, old.start, old.end, e.Time)...)
		}
	}
	if e.Len > e.OldLen || !oneCall(cut) {
		l.place(s, e, iv)
		return
	}
	l.remove(s, e.Addr, e.Addr+e.Len, e.Time)
	moved := cut[0]
	moved.Start, moved.End = e.Addr, e.Addr+e.Len
	l.put(s, moved)
}

// oneCall reports whether all pieces belong to one interval that was made at once.
func oneCall(pieces []Interval) bool {
	for i := range pieces {
		if pieces[i].since != pieces[0].since || pieces[i].Cause != pieces[0].Cause {
			return false
		}
	}
	return len(pieces) > 0
}

func (l *Ledger) breakAt(s *Space, e *event.Event) {
	old := s.brk
	s.brk = e.Addr
	switch {
	case old == 0: // a new program's: a check finds where its heap began
	case e.Addr < old:
		l.remove(s, e.Addr, old, e.Time)
	case e.Addr > old:
		at := *e
		at.Addr, at.Len = old, e.Addr-old
		l.place(s, &at, Interval{kind: Heap, writable: true})
	}
}

// protect changes the permissions of a range. Memory that was reserved and becomes
// writable is new memory: the arenas of the C library grow this way.
func (l *Ledger) protect(s *Space, e *event.Event) {
	writable := e.Prot&event.ProtWrite != 0
	changes := false
	s.within(e.Addr, e.Addr+e.Len, func(iv *Interval) bool {
		changes = changes || iv.writable != writable
		return !changes
	})
	if !changes {
		return
	}
	for _, iv := range s.cut(e.Addr, e.Addr+e.Len) {
		if iv.writable == writable {
			s.put(iv)
			continue
		}
		iv.writable = writable
		if writable && iv.kind == Anonymous {
			l.account(&iv, e.Time)
			iv.since, iv.rest = e.Time, false
			iv.Cause = l.cause(SiteOf(e), 0, false)
			l.Causes[iv.Cause].calls++
			l.put(s, iv)
			continue
		}
		s.put(iv)
	}
}

// end removes a space. What is known about its calls is kept only by call and stack:
// their places are addresses in a program that is gone, and there can be any number of
// processes.
func (l *Ledger) end(s *Space, at uint64) {
	s.each(func(iv *Interval) { l.account(iv, at) })
	delete(l.spaces, s.pid)
	stacks := map[Site]int{} // what was made before a stack was copied counts toward that stack
	for _, c := range s.causes {
		if m := &l.Causes[c]; m.stack != 0 {
			stacks[m.Site] = m.stack
		}
	}
	for _, c := range s.causes {
		m := l.Causes[c]
		delete(l.index, causeKey{m.Site, m.stack, m.inferred})
		delete(l.named, m.Site)
		l.Causes[c] = Cause{}
		stack, inferred := m.stack, m.inferred
		if stack == 0 {
			stack = stacks[m.Site]
			inferred = stack != 0
		}
		l.unused = append(l.unused, c)
		to := l.cause(Site{Op: m.Op, class: uint32(stack)}, stack, inferred) // no two stacks share a site
		l.Causes[to].add(&m)
	}
}

// add takes in what another cause made.
func (m *Cause) add(other *Cause) {
	m.Live += other.Live
	m.peak += other.peak
	m.Count += other.Count
	m.total += other.total
	m.calls += other.calls
	m.maxSize = max(m.maxSize, other.maxSize)
	for k, g := range other.gone {
		if m.gone == nil {
			m.gone = map[[2]int]freed{}
		}
		was := m.gone[k]
		m.gone[k] = freed{was.count + g.count, was.bytes + g.bytes}
	}
}

// Lives reports whether any of what a call made at a time is still live.
func (l *Ledger) Lives(pid uint32, at uint64, addr, size uint64) (live bool) {
	if _, ok := l.attachmentAt(pid, at, addr); ok {
		return true
	}
	l.madeAt(pid, at, addr, size, func(*Interval) { live = true })
	return live
}

// SetStack assigns a stack to what is still live of what a call made.
func (l *Ledger) SetStack(pid uint32, at uint64, addr, size uint64, stack int) {
	if a, ok := l.attachmentAt(pid, at, addr); ok {
		a.stack = stack
		l.spaces[pid].attached[addr] = a
	}
	if stack != 0 {
		l.madeAt(pid, at, addr, size, func(iv *Interval) { l.move(iv, stack, false) })
	}
}

// madeAt calls f with the intervals in a range that were made at a time.
func (l *Ledger) madeAt(pid uint32, at uint64, addr, size uint64, f func(iv *Interval)) {
	s := l.spaces[pid]
	if s == nil {
		return
	}
	s.within(addr, addr+max(size, 1), func(iv *Interval) bool {
		if iv.since == at {
			f(iv)
		}
		return true
	})
}

func (l *Ledger) move(iv *Interval, stack int, inferred bool) {
	from := &l.Causes[iv.Cause]
	if from.stack == stack && from.inferred == inferred {
		return
	}
	site := from.Site
	n := int64(1)
	if iv.rest {
		n = 0
	}
	from.Live -= iv.Size()
	from.peak = max(from.peak-iv.Size(), from.Live)
	from.total -= iv.Size()
	from.Count -= n
	from.calls -= n
	iv.Cause = l.cause(site, stack, inferred)
	to := &l.Causes[iv.Cause]
	to.Live += iv.Size()
	to.peak = max(to.peak, to.Live)
	to.total += iv.Size()
	to.Count += n
	to.calls += n
	to.maxSize = max(to.maxSize, iv.Size())
}

// maxCheckpoints bounds how finely growth over time is measured.
const maxCheckpoints = 32

// Checkpoint records a moment at which growth is measured. When there are too many,
// every second one is dropped.
func (l *Ledger) Checkpoint(at uint64) {
	if len(l.checkpoints) == maxCheckpoints {
		for i := range maxCheckpoints / 2 {
			l.checkpoints[i] = l.checkpoints[2*i+1]
		}
		l.checkpoints = l.checkpoints[:maxCheckpoints/2]
		for i := range l.Causes {
			l.Causes[i].coarsen()
		}
	}
	l.checkpoints = append(l.checkpoints, at)
}

// coarsen renumbers checkpoints after every second one was dropped: 2i+1 becomes i.
func (m *Cause) coarsen() {
	old := m.gone
	m.gone = nil
	for k, g := range old {
		first, last := k[0]/2, (k[1]+1)/2-1
		if first > last {
			continue
		}
		if m.gone == nil {
			m.gone = map[[2]int]freed{}
		}
		was := m.gone[[2]int{first, last}]
		m.gone[[2]int{first, last}] = freed{was.count + g.count, was.bytes + g.bytes}
	}
}

// Checkpoints returns the moments at which growth is measured, on the events' clock.
func (l *Ledger) Checkpoints() []uint64 { return l.checkpoints }

// checkpointFrom returns the first checkpoint at or after a time.
func (l *Ledger) checkpointFrom(t uint64) int {
	return sort.Search(len(l.checkpoints), func(i int) bool { return l.checkpoints[i] >= t })
}

// populations returns, by cause, what was live at each checkpoint.
func (l *Ledger) populations() []*trend.Population {
	out := make([]*trend.Population, len(l.Causes))
	n := len(l.checkpoints)
	for i := range l.Causes {
		out[i] = trend.NewPopulation(n)
		for k, g := range l.Causes[i].gone {
			out[i].AddMany(trend.Span{First: k[0], Last: k[1], Bytes: g.bytes / max(g.count, 1)}, g.count)
		}
	}
	for _, s := range l.spaces {
		s.each(func(iv *Interval) {
			if first := l.checkpointFrom(iv.since); first < n && !iv.rest {
				out[iv.Cause].Add(trend.Span{First: first, Last: n - 1, Bytes: iv.Size()})
			}
		})
	}
	return out
}

type addresses struct{ start, end uint64 }

// kindOf returns the kind of a mapping that no call was seen to make.
func kindOf(m procfs.Mapping) Kind {
	switch vmmap.KindOf(m) {
	case vmmap.Heap:
		return Heap
	case vmmap.Stack, vmmap.Special:
		return Special
	case vmmap.Anonymous:
		if m.Shared {
			return Shared
		}
		return Anonymous
	case vmmap.Shared, vmmap.Memfd:
		return Shared
	}
	return FileBacked
}
