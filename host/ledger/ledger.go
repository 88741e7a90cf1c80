package ledger

import (
	"sort"

	"strandline/host/event"
	"strandline/host/procfs"
	"strandline/host/vmmap"
	"strandline/judge/trend"
)

// A Kind is the kind of memory of an interval.
type Kind uint8

// The kinds.
const (
	Anonymous Kind = iota // private memory of no file
	Heap                  // grown by brk
	Shared                // memory that other processes can map, too
	FileBacked
	Special // the kernel's: a stack that grows by itself, the vDSO
)

// A CauseID is why there is an interval: an index into [Ledger.Causes].
type CauseID uint32

// The causes that are not calls.
const (
	Before CauseID = iota // mapped when the recording began, or inherited
	Unseen                // appeared without a call that was seen
)

// A Site is the calls of one kind and size from one place in one process.
type Site struct {
	PID   uint32
	Op    event.Op
	Class uint32
	Place event.Place
}

// A Cause is the calls of one site with one stack, and what they made. Stack is 0 for calls
// whose stack was not copied, or not yet; Inferred reports whether it is that of
// another call of the site.
type Cause struct {
	Site
	Stack       int
	Inferred    bool
	Live, Count int64 // bytes and intervals that are mapped still
	Total       int64 // bytes that were ever mapped, as far as they were seen
	Calls       int64
	MaxSize     int64 // of one interval
	most        int64 // that lived at once since [Ledger.Peaks] was called
	gone        map[[2]int]gone
}

type gone struct{ count, bytes int64 }

type causeKey struct {
	Site
	stack    int
	inferred bool
}

// A Ledger always knows what is mapped in the processes that are watched, from
// whom and since when.
type Ledger struct {
	Causes      []Cause
	index       map[causeKey]CauseID
	unused      []CauseID // of processes that have ended
	spaces      map[uint32]*Space
	checkpoints []uint64 // times
	// Discarded are the bytes that madvise freed without unmapping them.
	Discarded   int64
	Corrections Corrections
}

// Corrections are where the ledger was wrong by the kernel's own list.
type Corrections struct {
	Checks         int
	Missing, Extra int64 // bytes: mapped and not in the ledger; in it and not mapped
}

// A Space is the memory of one process.
type Space struct {
	PID uint32
	spans
	causes  []CauseID // those of its calls
	brk     uint64
	checked int
	gone    []addresses    // unmapped before the first check
	missing [2][]addresses // by the last checks, the latest first
	extra   []Interval     // by the last check
}

// New returns a ledger without a process.
func New() *Ledger {
	return &Ledger{Causes: make([]Cause, 2), index: map[causeKey]CauseID{}, spaces: map[uint32]*Space{}}
}

// Space returns that of a process, and makes it if it is new.
func (l *Ledger) Space(pid uint32) *Space {
	s := l.spaces[pid]
	if s == nil {
		s = &Space{PID: pid}
		l.spaces[pid] = s
	}
	return s
}

// Each calls f with the intervals of a space, by address.
func (s *Space) Each(f func(iv *Interval)) { s.each(f) }

// maxCauses bounds what is distinguished. Where the word on top of the stack is not a
// return address, as in programs that make system calls by themselves, every call
// can seem to come from another place; calls from more places count as if from
// none.
const maxCauses = 1 << 16

func (l *Ledger) cause(site Site, stack int, inferred bool) CauseID {
	key := causeKey{site, stack, inferred}
	c, ok := l.index[key]
	if !ok && len(l.index) >= maxCauses {
		site.Place = event.Place{}
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
	l.Causes[c] = Cause{Site: site, Stack: stack, Inferred: inferred}
	l.index[key] = c
	if s := l.spaces[site.PID]; s != nil {
		s.causes = append(s.causes, c)
	}
	return c
}

// Apply enters an event. Events come in the order of their time.
func (l *Ledger) Apply(e *event.Event) {
	s := l.Space(e.PID)
	switch e.Op {
	case event.Map:
		l.place(s, e, l.mapped(e))
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
		s.within(e.Addr, e.Addr+1, func(iv *Interval) bool {
			if iv.Start == e.Addr {
				l.remove(s, iv.Start, iv.End, e.Time)
			}
			return false
		})
	case event.Fork:
		if pid := uint32(e.Old); pid == e.Child() {
			if old := l.spaces[pid]; old != nil { // its end was not seen
				l.end(old, e.Time)
			}
			l.spaces[pid] = &Space{PID: pid}
		}
	case event.Exec:
		l.end(s, e.Time)
	case event.Exit:
		if e.Child() == e.PID {
			l.end(s, e.Time)
		}
	}
}

const mremapDontUnmap = 4

func SiteOf(e *event.Event) Site { return Site{e.PID, e.Op, e.Class, e.Place} }

func (l *Ledger) mapped(e *event.Event) Interval {
	iv := Interval{Writable: e.Prot&event.ProtWrite != 0}
	switch {
	case e.Flags&event.MapShared != 0 && e.Flags&event.MapAnonymous != 0:
		iv.Kind = Shared
	case e.Flags&event.MapAnonymous == 0:
		iv.Kind = FileBacked
	}
	return iv
}

// place puts a new interval where the event has it, and ends what was there.
func (l *Ledger) place(s *Space, e *event.Event, iv Interval) {
	iv.Start, iv.End, iv.Since = e.Addr, e.Addr+e.Len, e.Time
	if iv.End <= iv.Start {
		return
	}
	l.remove(s, iv.Start, iv.End, e.Time)
	iv.Cause = l.cause(SiteOf(e), 0, false)
	l.Causes[iv.Cause].Calls++
	l.put(s, iv)
}

func (l *Ledger) put(s *Space, iv Interval) {
	c := &l.Causes[iv.Cause]
	c.Live += iv.Size()
	c.most = max(c.most, c.Live)
	c.Total += iv.Size()
	c.MaxSize = max(c.MaxSize, iv.Size())
	if !iv.Rest {
		c.Count++
	}
	s.put(iv)
}

// remove ends what is in a range at a time.
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

// ended notes for the first check what was unmapped before it.
func (s *Space) ended(start, end uint64) {
	if s.checked == 0 {
		s.gone = append(s.gone, addresses{start, end})
	}
}

// account subtracts an interval from its cause.
func (l *Ledger) account(iv *Interval, at uint64) {
	c := &l.Causes[iv.Cause]
	c.Live -= iv.Size()
	if iv.Rest {
		return
	}
	c.Count--
	first, last := l.checkpointFrom(iv.Since), l.checkpointFrom(at)-1
	if first <= last {
		if c.gone == nil {
			c.gone = map[[2]int]gone{}
		}
		g := c.gone[[2]int{first, last}]
		c.gone[[2]int{first, last}] = gone{g.count + 1, g.bytes + iv.Size()}
	}
}

// remap moves an interval, with what is known of it. One that grew is attributed to
// the call that made it grow, all of it.
func (l *Ledger) remap(s *Space, e *event.Event) {
	iv := Interval{Writable: true}
	s.within(e.Old, e.Old+1, func(old *Interval) bool {
		iv.Kind, iv.Writable = old.Kind, old.Writable
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

// oneCall reports whether all pieces are of one interval that was made at once.
func oneCall(pieces []Interval) bool {
	for i := range pieces {
		if pieces[i].Since != pieces[0].Since || pieces[i].Cause != pieces[0].Cause {
			return false
		}
	}
	return len(pieces) > 0
}

func (l *Ledger) breakAt(s *Space, e *event.Event) {
	old := s.brk
	s.brk = e.Addr
	switch {
	case old == 0: // of a new program: a check finds where its heap began
	case e.Addr < old:
		l.remove(s, e.Addr, old, e.Time)
	case e.Addr > old:
		at := *e
		at.Addr, at.Len = old, e.Addr-old
		l.place(s, &at, Interval{Kind: Heap, Writable: true})
	}
}

// protect changes the permissions of a range. What was reserved and becomes writable
// is new memory: the arenas of the C library grow so.
func (l *Ledger) protect(s *Space, e *event.Event) {
	writable := e.Prot&event.ProtWrite != 0
	changes := false
	s.within(e.Addr, e.Addr+e.Len, func(iv *Interval) bool {
		changes = changes || iv.Writable != writable
		return !changes
	})
	if !changes {
		return
	}
	for _, iv := range s.cut(e.Addr, e.Addr+e.Len) {
		if iv.Writable == writable {
			s.put(iv)
			continue
		}
		iv.Writable = writable
		if writable && iv.Kind == Anonymous {
			l.account(&iv, e.Time)
			iv.Since, iv.Rest = e.Time, false
			iv.Cause = l.cause(SiteOf(e), 0, false)
			l.Causes[iv.Cause].Calls++
			l.put(s, iv)
			continue
		}
		s.put(iv)
	}
}

// end removes a space. What is known of its calls is kept by call and stack alone:
// their places are addresses in a program that is gone, and there can be any number
// of processes.
func (l *Ledger) end(s *Space, at uint64) {
	s.each(func(iv *Interval) { l.account(iv, at) })
	delete(l.spaces, s.PID)
	stacks := map[Site]int{} // what was made before a stack was copied counts as of that stack
	for _, c := range s.causes {
		if m := &l.Causes[c]; m.Stack != 0 {
			stacks[m.Site] = m.Stack
		}
	}
	for _, c := range s.causes {
		m := l.Causes[c]
		delete(l.index, causeKey{m.Site, m.Stack, m.Inferred})
		l.Causes[c] = Cause{}
		stack, inferred := m.Stack, m.Inferred
		if stack == 0 {
			stack = stacks[m.Site]
			inferred = stack != 0
		}
		l.unused = append(l.unused, c)
		to := l.cause(Site{Op: m.Op, Class: uint32(stack)}, stack, inferred) // no two stacks are of one site
		l.Causes[to].add(&m)
	}
}

// add takes in what another cause made.
func (m *Cause) add(other *Cause) {
	m.Live += other.Live
	m.most += other.most
	m.Count += other.Count
	m.Total += other.Total
	m.Calls += other.Calls
	m.MaxSize = max(m.MaxSize, other.MaxSize)
	for k, g := range other.gone {
		if m.gone == nil {
			m.gone = map[[2]int]gone{}
		}
		was := m.gone[k]
		m.gone[k] = gone{was.count + g.count, was.bytes + g.bytes}
	}
}

// Lives reports whether something lives still of what a call made at a time.
func (l *Ledger) Lives(pid uint32, at uint64, addr, size uint64) (live bool) {
	l.madeAt(pid, at, addr, size, func(*Interval) { live = true })
	return live
}

// SetStack gives what lives still of what a call made its stack.
func (l *Ledger) SetStack(pid uint32, at uint64, addr, size uint64, stack int) {
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
		if iv.Since == at {
			f(iv)
		}
		return true
	})
}

func (l *Ledger) move(iv *Interval, stack int, inferred bool) {
	from := &l.Causes[iv.Cause]
	if from.Stack == stack && from.Inferred == inferred {
		return
	}
	site := from.Site
	n := int64(1)
	if iv.Rest {
		n = 0
	}
	from.Live -= iv.Size()
	from.most = max(from.most-iv.Size(), from.Live)
	from.Total -= iv.Size()
	from.Count -= n
	from.Calls -= n
	iv.Cause = l.cause(site, stack, inferred)
	to := &l.Causes[iv.Cause]
	to.Live += iv.Size()
	to.most = max(to.most, to.Live)
	to.Total += iv.Size()
	to.Count += n
	to.Calls += n
	to.MaxSize = max(to.MaxSize, iv.Size())
}

// maxCheckpoints bounds how finely growth is measured over time.
const maxCheckpoints = 32

// Checkpoint notes a moment at which growth is measured. When there are many, every
// second one goes.
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

// coarsen renumbers checkpoints after every second one went: 2i+1 is i now.
func (m *Cause) coarsen() {
	old := m.gone
	m.gone = nil
	for k, g := range old {
		first, last := k[0]/2, (k[1]+1)/2-1
		if first > last {
			continue
		}
		if m.gone == nil {
			m.gone = map[[2]int]gone{}
		}
		was := m.gone[[2]int{first, last}]
		m.gone[[2]int{first, last}] = gone{was.count + g.count, was.bytes + g.bytes}
	}
}

// Checkpoints are the moments at which growth is measured, of the events' clock.
func (l *Ledger) Checkpoints() []uint64 { return l.checkpoints }

// checkpointFrom is the first checkpoint at or after a time.
func (l *Ledger) checkpointFrom(t uint64) int {
	return sort.Search(len(l.checkpoints), func(i int) bool { return l.checkpoints[i] >= t })
}

// Populations are, by cause, what lived at each checkpoint.
func (l *Ledger) Populations() []*trend.Population {
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
			if first := l.checkpointFrom(iv.Since); first < n && !iv.Rest {
				out[iv.Cause].Add(trend.Span{First: first, Last: n - 1, Bytes: iv.Size()})
			}
		})
	}
	return out
}

type addresses struct{ start, end uint64 }

// kindOf is the kind of a mapping that no call was seen to make.
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
