package check

import (
	"slices"
	"time"
)

// An interval is a time; its end is zero as long as it goes on.
type interval struct{ begin, end time.Time }

// periods are the times after which Python processes that count no steps look at what
// they hold. Processes are told often that one may have ended: a thread to measure it would
// run in all of them, and not only in those that look as if they leaked.
type periods struct {
	asked time.Duration // how long the command had run when they were asked for; 0 if they were not
	began time.Time     // zero if none is under way
}

// periodsHeard is the time after which a process has begun to trace, if one does.
const periodsHeard = 2500 * time.Millisecond

// begin begins periods of a command that has run for some time, once more when it has run
// some times as long. It reports whether it did.
func (p *periods) begin(ran time.Duration) bool {
	if p.running() || p.asked > 0 && ran < retryFactor*p.asked {
		return false
	}
	*p = periods{asked: max(ran, 1), began: time.Now()}
	return true
}

func (p *periods) running() bool { return !p.began.IsZero() }

// endPeriod tells the processes that a period may have ended, until none of them traces its
// allocations any more.
func (w *watch) endPeriod() {
	p := &w.periods
	if !p.running() {
		return
	}
	since := w.session.Tracing()
	traces := w.run.traces
	switch open := len(traces) > 0 && traces[len(traces)-1].end.IsZero(); {
	case since.IsZero() && open:
		traces[len(traces)-1].end = time.Now()
	case since.IsZero() && time.Since(p.began) > periodsHeard:
		p.began = time.Time{}
		return
	case !since.IsZero() && !open:
		w.run.traces = append(traces, interval{begin: since})
	}
	for _, process := range w.run.Samples.Processes {
		w.session.EndPeriod(process.PID)
	}
}

// quiet reports whether no process traced its allocations at a time.
func (m *Measured) quiet(at time.Time) bool {
	return !slices.ContainsFunc(m.traces, func(t interval) bool { return !at.Before(t.begin) && (t.end.IsZero() || at.Before(t.end)) })
}
