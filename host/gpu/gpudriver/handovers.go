package gpudriver

import (
	"maps"
	"slices"
	"time"

	"strandline/host/calls/event"
	"strandline/host/store/recording"
)

// A place is where memory with a handle is bound, or was: as long as the addresses are
// reserved, other memory can be bound there.
type place struct {
	len  uint64
	to   *handle
	away bool // nothing is bound there now
}

// moves are the places of a process from which memory was taken away, or to which it came
// back, in calls that follow one another.
type moves struct {
	pid          uint32
	do           recording.Act
	began, ended uint64
	places       map[uint64]place // as they were then
	// What was held of devices before and after, by cause.
	before, after []int64
}

// The bounds of a hand-over: how long after one call the next still is of it, as the
// contents of a block may be copied between them, and how many places are followed in a
// process. Of hand-overs that nobody asks for, the first are kept.
const (
	copyWindow   = uint64(time.Second)
	maxPlaces    = 1 << 14
	maxHandOvers = 1 << 10
)

// bind notes that memory is bound at an address. If other memory was bound there before,
// it comes back.
func (d *Driver) bind(e *event.Event, to *handle) {
	if to.memory != event.Device {
		return
	}
	places := d.places[e.PID]
	if places == nil {
		places = map[uint64]*place{}
		d.places[e.PID] = places
	}
	p := places[e.Addr]
	switch {
	case p != nil && p.away && p.len == e.Len:
		p.to, p.away = to, false
		d.move(e, recording.Resume, e.Addr, p)
	case p != nil || len(places) < maxPlaces:
		places[e.Addr] = &place{len: e.Len, to: to}
	}
}

// unbind notes that nothing is bound at an address any more.
func (d *Driver) unbind(e *event.Event, addr uint64) {
	if p := d.places[e.PID][addr]; p != nil && !p.away {
		p.away = true
		d.move(e, recording.Pause, addr, p)
	}
}

// unreserve forgets addresses that are given back: what was bound there was freed.
func (d *Driver) unreserve(e *event.Event) {
	places, m := d.places[e.PID], d.moving[e.PID]
	forget := func(addr uint64) {
		delete(places, addr)
		if m != nil && m.do == recording.Pause {
			delete(m.places, addr)
		}
	}
	if p := places[e.Addr]; p != nil && p.len >= e.Len {
		forget(e.Addr)
		return
	}
	for addr := range places {
		if addr-e.Addr < e.Len {
			forget(addr)
		}
	}
}

func (d *Driver) move(e *event.Event, do recording.Act, addr uint64, p *place) {
	m := d.moving[e.PID]
	if m != nil && (m.do != do || e.Time > m.ended+copyWindow) {
		d.moved(m)
		m = nil
	}
	if m == nil {
		m = &moves{pid: e.PID, do: do, began: e.Time, places: map[uint64]place{}}
		if do == recording.Resume {
			m.began = min(e.Time, p.to.since)
		} else {
			m.before = d.live()
		}
		d.moving[e.PID] = m
	}
	m.places[addr] = *p
	m.last(d, e.Time)
}

// last notes the last call of a hand-over so far.
func (m *moves) last(d *Driver, at uint64) {
	m.ended, m.after = max(m.ended, at), d.live()
}

// live is what is held of devices, by cause.
func (d *Driver) live() []int64 {
	causes := d.ledgers[event.Device].Causes
	out := make([]int64, len(causes))
	for i := range causes {
		out[i] = causes[i].Live
	}
	return out
}

// sumByOwner sums up what is held by cause.
func sumByOwner(live []int64, owners []string) (out []recording.GPUOwner) {
	sums := map[string]int64{}
	for i, n := range live {
		sums[owners[i]] += n
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if n := sums[name]; n != 0 {
			out = append(out, recording.GPUOwner{Owner: name, Memory: event.Device.String(), LiveBytes: n})
		}
	}
	return out
}

// moved ends a hand-over.
func (d *Driver) moved(m *moves) {
	delete(d.moving, m.pid)
	if len(m.places) > 0 && len(d.handOvers) < maxHandOvers {
		d.handOvers = append(d.handOvers, m)
	}
}

// settle ends the hand-overs to which nothing was added for long.
func (d *Driver) settle(now uint64) {
	for _, m := range d.moving {
		if now > m.ended+copyWindow {
			d.moved(m)
		}
	}
}

// HandOvers returns the hand-overs that have ended since it was called last. Memory that
// PyTorch's expandable segments give back and take again is not handed over, nor is what
// still has a handle.
func (d *Driver) HandOvers() (out []recording.HandOver) {
	if len(d.handOvers) == 0 {
		return nil
	}
	owners := d.ownersOf(d.ledgers[event.Device])
	for _, m := range d.handOvers {
		h := recording.HandOver{PID: int(m.pid), Do: m.do, Began: d.since(m.began), Ended: d.since(m.ended), Before: sumByOwner(m.before, owners), After: sumByOwner(m.after, owners)}
		for _, addr := range slices.Sorted(maps.Keys(m.places)) {
			p := m.places[addr]
			if m.do == recording.Pause && p.to.refs > 0 {
				continue
			}
			if h.Owner == "" {
				h.Owner = p.to.owner
			}
			h.Blocks = append(h.Blocks, recording.Block{Addr: addr, Bytes: int64(p.len)})
		}
		if len(h.Blocks) > 0 && h.Owner != OwnerPyTorch {
			out = append(out, h)
		}
	}
	d.handOvers = nil
	return out
}

// since is a time in seconds since the trace began.
func (d *Driver) since(at uint64) float64 {
	return time.Duration(at - min(at, d.Began)).Seconds()
}
