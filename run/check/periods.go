package check

import (
	"slices"
	"time"
)

// An interval is a time; its end is zero as long as it goes on.
type interval struct{ begin, end time.Time }

// periods are the times after which Python processes that count no steps look at what
// they hold. Processes are told that one has ended: a thread to measure it would run in
// all of them, and not only in those that look as if they leaked.
type periods struct {
	long  time.Duration // of one; 0 if none was asked for
	asked time.Duration // how long the command had run then
	began time.Time     // zero if none is under way
	last  time.Time     // when one ended
	n     int           // that have ended
	seen  bool          // a process traces its allocations
}

const (
	periodShare  = 32 // one period is that part of the time until then, but at least
	minPeriod    = 250 * time.Millisecond
	periodsHeard = 10 // by which a process has begun to trace, if one does
)

// begin begins periods of a command that has run for some time, once more when it has run
// some times as long. It reports whether it did.
func (p *periods) begin(ran time.Duration) bool {
	if p.running() || p.long > 0 && ran < retryFactor*p.asked {
		return false
	}
	*p = periods{long: max(minPeriod, ran/periodShare), asked: ran, began: time.Now()}
	return true
}

func (p *periods) running() bool { return !p.began.IsZero() }

// endPeriod tells the processes that a period has ended, if it has, until none of them
// traces its allocations any more.
func (w *watch) endPeriod() {
	p := &w.periods
	if !p.running() || time.Since(p.last) < p.long {
		return
	}
	since := w.session.Tracing()
	traces := &w.run.traces
	if !since.IsZero() && !p.seen {
		p.seen = true
		*traces = append(*traces, interval{begin: since})
	}
	if p.n >= periodsHeard && since.IsZero() {
		p.began = time.Time{}
		if p.seen {
			(*traces)[len(*traces)-1].end = time.Now()
		}
		return
	}
	for _, process := range w.run.Samples.Processes {
		w.session.EndPeriod(process.PID)
	}
	p.last, p.n = time.Now(), p.n+1
}

// quiet reports whether no process traced its allocations at a time.
func (m *Measured) quiet(at time.Time) bool {
	return !slices.ContainsFunc(m.traces, func(t interval) bool { return !at.Before(t.begin) && (t.end.IsZero() || at.Before(t.end)) })
}
