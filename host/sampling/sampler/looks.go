package sampler

import (
	"io"
	"os"
	"sync"
	"time"

	"strandline/host/proc/footprint"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
)

// Which growth of anonymous and shared memory makes a process a candidate for a closer look, and how often
// it is looked at. A look at a process with thousands of mappings takes tens of
// milliseconds, so that it is made beside the samples, one at a time.
const (
	minGrowth   = 32 << 20 // bytes
	growthShare = 20       // a part of what it holds, 1 in so many
	firstPause  = 2 * time.Second
	longest     = 5 * time.Minute
	// maxMappings of those that grew are in a sample.
	maxMappings = 12
	maxLooked   = 8 // processes whose looks are kept: each takes some 100 KiB
	// A look is followed by a pause of so many times its duration; the first one, which
	// alone shows nothing, by a shorter one.
	rarer, soon = 200, 20
)

// observations are those at processes that grow.
type observations struct {
	busy sync.WaitGroup
	mu   sync.Mutex
	on   bool // a look is being made
	all  map[sample.ID]*looked
}

// looked is a process that was looked at.
type looked struct {
	first *footprint.Observation
	began time.Time
	at    int64 // what it held at the last look, bytes
	pause time.Duration
	next  time.Time
	grown *sample.Growth
}

func newLooks() *observations { return &observations{all: map[sample.ID]*looked{}} }

// of returns what a process grew by, as far as it was looked at, and looks again if it is
// time. low is the least that it held.
func (l *observations) of(id sample.ID, h *sample.Host, low int64) *sample.Growth {
	held := h.Anonymous + h.Shared
	l.mu.Lock()
	defer l.mu.Unlock()
	own, now := l.all[id], time.Now()
	before := low
	if own != nil {
		before = own.at
	}
	if held-before >= max(minGrowth, held/growthShare) && !l.on && (own == nil || now.After(own.next)) && (own != nil || l.room(now)) {
		if own == nil {
			own = &looked{began: now, pause: firstPause}
			l.all[id] = own
		}
		own.at, l.on = held, true
		l.busy.Go(func() { l.look(id, own) })
	}
	if own == nil {
		return nil
	}
	return own.grown
}

// room makes room for one more process: that which was to be looked at again longest ago,
// and did not grow since, is forgotten.
func (l *observations) room(now time.Time) bool {
	if len(l.all) < maxLooked {
		return true
	}
	var oldest sample.ID
	for id, own := range l.all {
		if old := l.all[oldest]; old == nil || own.next.Before(old.next) {
			oldest = id
		}
	}
	if now.Sub(l.all[oldest].next) < time.Minute {
		return false
	}
	delete(l.all, oldest)
	return true
}

// look looks at a process; it may take seconds.
func (l *observations) look(id sample.ID, own *looked) {
	p := procfs.Process(id.PID)
	began := time.Now()
	seen, err := footprint.Observe(p)
	var grown *sample.Growth
	if p.Ended(id.Started) {
		err = os.ErrProcessDone // the number may be another one's
	}
	if err == nil && own.first != nil {
		seen.At = began.Sub(own.began)
		grown = classes(own.first, seen)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	pause := own.pause
	own.pause = min(2*own.pause, longest)
	now := time.Now()
	took := now.Sub(began)
	if err == nil && own.first == nil {
		own.first = seen
		own.next = now.Add(max(pause, soon*took))
	} else {
		own.next = now.Add(max(pause, rarer*took))
	}
	if grown != nil {
		own.grown = grown
	}
	l.on = false
}

// classes are what a process grew by between two looks.
func classes(before, after *footprint.Observation) *sample.Growth {
	var memory io.ReaderAt
	if m, err := after.PID.Memory(); err == nil {
		defer m.Close()
		memory = m
	}
	g := footprint.Grown([]*footprint.Observation{before, after}, memory)
	out := &sample.Growth{Seconds: (after.At - before.At).Seconds(), Classes: []sample.Class{}}
	for _, p := range g.Parts {
		if p.Process != 0 && p.Process != after.PID {
			continue // of a child
		}
		out.Classes = append(out.Classes, sample.Class{Class: string(p.Class), Bytes: p.Bytes + p.Early})
	}
	for _, m := range g.Mappings(maxMappings) {
		out.Mappings = append(out.Mappings, sample.Mapping{Start: m.Start, End: m.End, Kind: string(m.Kind), Name: m.Path, Resident: int64(m.RSS), Grown: m.Grown})
	}
	return out
}

// forget drops a process that has ended.
func (l *observations) forget(id sample.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, id)
}

// close waits for a look that is being made.
func (l *observations) close() { l.busy.Wait() }
