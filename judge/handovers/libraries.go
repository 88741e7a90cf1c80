package handovers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"strandline/host/calls/event"
	"strandline/host/gpu/gpudriver"
	"strandline/host/store/recording"
	"strandline/internal/sorts"
	"strandline/pausable"
	"strandline/pausable/history"
)

// A Library is what one has of a device by its calls of the driver.
type Library struct {
	Name  string
	Bytes int64
}

// libraries are what the libraries of a traced process had of its devices, over time.
type libraries struct {
	times []time.Time // ascending
	held  [][]recording.GPUOwner
}

// maxSampleGap is how far from a sample a moment may be: samples are taken each second or so.
const maxSampleGap = 5 * time.Second

// hear takes in a trace of the process, if there is one.
func (c *Check) hear(log *history.Log, trace *recording.Run) error {
	if trace == nil {
		return nil
	}
	traced := trace.PID == log.PID
	if trace.Document != nil {
		traced = traced || slices.ContainsFunc(trace.Document.Processes, func(p recording.Process) bool { return p.PID == log.PID })
	}
	if !traced {
		return fmt.Errorf("the trace is of process %d, the log of process %d", trace.PID, log.PID)
	}
	c.traced = newLibraries(trace)
	if len(c.traced.times) == 0 {
		return fmt.Errorf("the trace of process %d has nothing of a GPU's driver: it was made without --gpu", trace.PID)
	}
	seen := slices.ContainsFunc(log.Steps, func(s history.Step) bool { return c.traced.at(s.Ended, true) != nil })
	if !seen {
		c.Notes = append(c.Notes, "the trace does not cover the time of any hand-over")
	}
	return nil
}

// newLibraries takes in the samples of a trace, and what was noted at its hand-overs.
func newLibraries(trace *recording.Run) libraries {
	l := sampled(trace)
	l.note(trace)
	return l
}

// sampled sums up the samples of a trace, each of which has only what changed.
func sampled(trace *recording.Run) (l libraries) {
	type key struct{ owner, memory string }
	held := map[key]recording.GPUOwner{}
	any := false
	for _, s := range trace.Samples {
		for _, o := range s.GPU {
			any = true
			if held[key{o.Owner, o.Memory}] = o; o.LiveBytes == 0 {
				delete(held, key{o.Owner, o.Memory})
			}
		}
		if !any {
			continue
		}
		var all []recording.GPUOwner
		for _, o := range held {
			all = append(all, o)
		}
		l.times = append(l.times, after(trace, s.Seconds))
		l.held = append(l.held, all)
	}
	return l
}

// note adds what was noted at the hand-overs of a trace. Of other memory than devices' it
// has nothing.
func (l *libraries) note(trace *recording.Run) {
	type look struct {
		at   time.Time
		held []recording.GPUOwner
	}
	var all []look
	for i, at := range l.times {
		all = append(all, look{at, l.held[i]})
	}
	for i := range trace.HandOvers {
		h := &trace.HandOvers[i]
		if h.Before != nil {
			all = append(all, look{after(trace, h.Began), slices.Clone(h.Before)})
		}
		if h.Before != nil || h.After != nil {
			all = append(all, look{after(trace, h.Ended), slices.Clone(h.After)})
		}
	}
	sorts.StableBy(all, func(a, b look) int { return a.at.Compare(b.at) })
	l.times, l.held = nil, nil
	for _, one := range all {
		l.times, l.held = append(l.times, one.at), append(l.held, one.held)
	}
}

// after is a time of a trace, given in seconds since it began.
func after(trace *recording.Run, seconds float64) time.Time {
	return time.UnixMicro(trace.BeganUS).Add(time.Duration(seconds * float64(time.Second)))
}

// at returns what libraries had at about some time, the most first, nil if it was not
// traced. What has a tag or is PyTorch's is left out: the log has it.
func (l *libraries) at(t time.Time, torchKnown bool) []Library {
	i, _ := slices.BinarySearchFunc(l.times, t, time.Time.Compare)
	if i == len(l.times) || i > 0 && t.Sub(l.times[i-1]) < l.times[i].Sub(t) {
		i-- // the nearest
	}
	if i < 0 || t.Sub(l.times[i]).Abs() > maxSampleGap {
		return nil
	}
	out := []Library{}
	for _, o := range l.held[i] {
		switch {
		case o.Memory != event.Device.String(), o.Owner == pausable.Name, torchKnown && o.Owner == gpudriver.OwnerPyTorch:
			continue
		}
		out = append(out, Library{o.Owner, o.LiveBytes})
	}
	sorts.By(out, func(a, b Library) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name))
	})
	return out
}

// borrow takes the libraries of a like time if those of this one are not known.
func (s *Split) borrow(spans []span) {
	if s.Libraries != nil {
		return
	}
	nearest := int64(minReported)
	for i := range spans {
		for _, other := range []*Split{&spans[i].first, &spans[i].last} {
			if d := other.Used - s.Used; other.Libraries != nil && d < nearest {
				nearest, s.Libraries = d, other.Libraries
			}
		}
	}
}
