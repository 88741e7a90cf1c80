package gpudriver

import (
	"strandline/host/event"
	"strandline/host/ledger"
)

// A Peak is the most that the calls with one stack held at once, from holding
// nothing to holding nothing again. Times are of the events' clock.
type Peak struct {
	Bytes           int64
	From, At, Until uint64 // Until is 0 for what is held still
	// Times is how often they took something when they held nothing.
	Times int
}

// peakKey is the calls with one stack, or those of one function without any: the
// negative of its op.
type peakKey struct {
	memory event.DriverMemory
	stack  int
}

// course is how what the calls with one stack hold goes up and down.
type course struct{ now, best Peak }

// most is nothing of calls that never held anything.
func (c *course) most() (p Peak) {
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

// peak follows what is held since the last call. What came and went in between
// counts with the most that calls of each place and size held.
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
