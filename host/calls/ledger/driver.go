package ledger

import (
	"iter"
	"maps"

	"strandline/host/calls/event"
)

// Add enters what a driver call gave.
func (l *Ledger) Add(e *event.Event, addr, size uint64) {
	at := *e
	at.Addr, at.Len = addr, size
	l.place(l.Space(e.PID), &at, Interval{})
}

// FreeAt ends the allocation that begins at an address, unless it was made after the
// time at.
func (l *Ledger) FreeAt(pid uint32, addr, at uint64) {
	s := l.Space(pid)
	s.within(addr, addr+1, func(iv *Interval) bool {
		if iv.Start == addr && iv.since < at {
			l.remove(s, iv.Start, iv.End, at)
		}
		return false
	})
}

// Remove ends what a process has in a range of addresses.
func (l *Ledger) Remove(pid uint32, start, end, at uint64) {
	l.remove(l.Space(pid), start, end, at)
}

// End removes a process that ended or runs another program.
func (l *Ledger) End(pid uint32, at uint64) {
	if s := l.spaces[pid]; s != nil {
		l.end(s, at)
	}
}

// Spaces yields the memory of each process.
func (l *Ledger) Spaces() iter.Seq2[uint32, *Space] { return maps.All(l.spaces) }

// HasStack reports whether the calls of a site have a stack.
func (l *Ledger) HasStack(site Site) bool { return l.named[site] }

// AddStack notes a stack of a site whose calls made nothing that is still live.
func (l *Ledger) AddStack(site Site, stack int) { l.cause(site, stack, false) }

// InferredStacks returns the stack of each cause of a ledger. Calls whose stack was not
// copied are given the stack of the calls from the same place that hold most; 0 if
// there are none.
func (l *Ledger) InferredStacks() []int {
	most := map[Site]int{}
	for i, c := range l.Causes {
		if was, known := most[c.Site]; c.stack != 0 && (!known || c.Live > l.Causes[was].Live) {
			most[c.Site] = i
		}
	}
	out := make([]int, len(l.Causes))
	for i, c := range l.Causes {
		if out[i] = c.stack; c.stack == 0 {
			out[i] = l.Causes[most[c.Site]].stack
		}
	}
	return out
}

// Peaks calls f with each cause that has held something since the last call of Peaks,
// and the most that it held at once.
func (l *Ledger) Peaks(f func(i int, c *Cause, peak int64)) {
	for i := range l.Causes {
		c := &l.Causes[i]
		if c.peak == 0 {
			continue
		}
		f(i, c, c.peak)
		c.peak = c.Live
	}
}
