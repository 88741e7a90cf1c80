package gpudriver

import (
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
)

// A Peak is the most that the calls with one stack held at once, between two moments at
// which they held nothing. Times are on the events' clock.
type Peak struct {
	Bytes           int64
	From, At, Until uint64 // Until is 0 if something is still held
	// Times is how often they took something when they held nothing.
	Times int
}

// peakKey identifies the calls with one stack, or those of one function without a
// stack, by its negated op.
type peakKey struct {
	memory event.DriverMemory
	stack  int
}

// course is how the amount held by the calls with one stack rises and falls.
type course struct{ now, best Peak }

// highest returns the zero Peak for calls that never held anything.
func (c *course) highest() (p Peak) {
	if c == nil {
		return p
	}
	p = c.best
	if c.now.Bytes > p.Bytes {
		p = c.now
	}
	p.Times = c.best.Times
	return p
}

// peak follows what has been held since the last call. What came and went in between is
// counted as the most that the calls from each place and of each size held.
func (d *Driver) peak(at uint64) {
	type sum struct{ most, live int64 }
	type place struct {
		peakKey
		ledger.Site
	}
	places := map[place]sum{}
	for m, l := range d.ledgers {
		stacks := l.InferredStacks()
		l.Peaks(func(i int, c *ledger.Cause, most int64) {
			p := place{peakKey{event.DriverMemory(m), stacks[i]}, c.Site}
			if p.stack == 0 {
				p.stack = -int(c.Op)
			}
			s := places[p]
			places[p] = sum{max(s.most, most), s.live + c.Live}
		})
	}
	sums := map[peakKey]sum{}
	for p, s := range places {
		all := sums[p.peakKey]
		sums[p.peakKey] = sum{all.most + max(s.most, s.live), all.live + s.live}
	}
	for key, s := range sums {
		c := d.courses[key]
		if c == nil {
			c = &course{}
			d.courses[key] = c
		}
		if c.now.Bytes == 0 {
			c.now.From = at
			c.best.Times++
		}
		if s.most > c.now.Bytes {
			c.now.Bytes, c.now.At = s.most, at
		}
		if s.live > 0 {
			continue
		}
		if c.now.Until = at; c.now.Bytes > c.best.Bytes {
			c.now.Times, c.best = 0, Peak{c.now.Bytes, c.now.From, c.now.At, at, c.best.Times}
		}
		c.now = Peak{}
	}
}
