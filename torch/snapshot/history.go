package snapshot

import (
	"regexp"
	"strings"
)

// RingFull tells whether the ring of events of a device seems to have
// overflowed, so that its oldest events are lost. PyTorch says so from 2.12 on;
// before, a count that people choose as max_entries is taken as a sign.
func (s *Snapshot) RingFull(device int) bool {
	n := 0
	for i := range s.Traces {
		if s.Traces[i].Device == device {
			n = s.Traces[i].Len()
		}
	}
	if set := s.Settings; set != nil && set.TraceOverflowed != nil {
		return set.TraceOverflowed[min(device, len(set.TraceOverflowed)-1)]
	}
	return n >= 1000 && roundCount(n)
}

// roundCount tells a number as people choose it: 1, 2 or 5 and zeros, or a
// power of two.
func roundCount(n int) bool {
	if n&(n-1) == 0 {
		return true
	}
	for n%10 == 0 {
		n /= 10
	}
	return n == 1 || n == 2 || n == 5 || n == 25
}

var stepNumber = regexp.MustCompile(`(?i)^(.*\b(?:step|iter|iteration|batch|request)\b\D{0,3})\d+$`)

// stepTail is how much of a scope's name says whether it is a numbered step.
const stepTail = 64

// numberedStep finds out whether a scope is a numbered step, once for each name.
func numberedStep() func(name string) bool {
	known := map[string]bool{}
	return func(name string) bool {
		is, ok := known[name]
		if !ok {
			is = stepNumber.MatchString(name[max(0, len(name)-stepTail):])
			known[name] = is
		}
		return is
	}
}

// Steps are the times, in order, at which steps of the program ended, as far as
// annotations tell: the profiler's steps, scopes that are numbered "step 3", or
// else calls of an optimizer. It is nil where there are none.
func (s *Snapshot) Steps() (ends []int64, what string) {
	numbered := numberedStep()
	for _, kind := range []struct {
		what  string
		match func(name string) bool
	}{
		{"profiler steps", func(n string) bool { return strings.HasPrefix(n, "ProfilerStep#") }},
		{"numbered scopes", numbered},
		{"optimizer steps", func(n string) bool { return strings.HasPrefix(n, "Optimizer.step#") }},
	} {
		ends = ends[:0]
		device := -1
		for i := range s.Annotations {
			a := &s.Annotations[i]
			if !a.End || !kind.match(a.Name) {
				continue
			}
			if device < 0 {
				device = a.Device
			}
			if a.Device == device {
				ends = append(ends, a.Time)
			}
		}
		if len(ends) > 0 {
			return ends, kind.what
		}
	}
	return nil, ""
}
