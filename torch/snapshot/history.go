package snapshot

import (
	"strings"

	"strandline/internal/lazyregexp"
)

// RingFull reports whether the ring of events of a device seems to have
// overflowed, so that its oldest events are lost. PyTorch states so from 2.12 on;
// before, a count of the kind chosen as max_entries is taken as a sign.
func (s *Snapshot) RingFull(device int) bool {
	n := 0
	for i := range s.Traces {
		if s.Traces[i].Device == device {
			n = s.Traces[i].Len()
		}
	}
	if set := s.Settings; set != nil && set.TraceOverflowed != nil && device != Host {
		return set.TraceOverflowed[min(device, len(set.TraceOverflowed)-1)]
	}
	return n >= 1000 && roundCount(n)
}

// roundCount reports whether n is a round number: 1, 2 or 5 and zeros, or a
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

// stepName is the name of a scope that is a step of a program, with its number.
var stepName = lazyregexp.New(`(?i)^\W*((.*\W)?(step|iter|iteration|batch|request)\b\D{0,3})\d+\W*$`)

// stepTail is how much of a scope's name shows whether it is a numbered step.
const stepTail = 64

// A Scope is an annotated part of a program's run, in µs.
type Scope struct {
	Start int64 // 0 if it began before the recording
	End   int64 // 0 if it had not ended
}

// The kinds of scopes that are steps, in addition to those that are numbered.
const (
	profilerStep = "ProfilerStep#"
	updateStep   = "Optimizer.step#"
)

// StepScopes are the steps of a program in order, as far as annotations show them:
// the profiler's, otherwise scopes that are numbered "step 3"; what states which. Of
// several kinds of numbered scopes the one that begins first is taken, as the
// others may be inside it, if there are three of it; otherwise the most frequent.
func (s *Snapshot) StepScopes() (scopes []Scope, what string) {
	kinds, order := s.stepScopes()
	if found := kinds[profilerStep]; len(found) > 0 {
		return found, "profiler steps"
	}
	const several = 3
	for _, kind := range order {
		if found := kinds[kind]; kind != updateStep && len(found) > len(scopes) && len(scopes) < several {
			scopes = found
		}
	}
	if len(scopes) == 0 {
		return nil, ""
	}
	return scopes, "annotated steps"
}

// UpdateScopes are the updates of optimizers that PyTorch annotates, in order.
func (s *Snapshot) UpdateScopes() []Scope {
	kinds, _ := s.stepScopes()
	return kinds[updateStep]
}

// stepScopes are the scopes that are steps, by kind, and the kinds in the order in
// which they begin. Each device has its own copy of an annotation: those of the
// first are taken.
func (s *Snapshot) stepScopes() (kinds map[string][]Scope, order []string) {
	kinds = map[string][]Scope{}
	names := map[string]string{}
	device := -1
	for i := range s.Annotations {
		a := &s.Annotations[i]
		kind, known := names[a.Name]
		if !known {
			kind = stepKind(a.Name)
			names[a.Name] = kind
		}
		if kind == "" || device >= 0 && a.Device != device {
			continue
		}
		device = a.Device
		found := kinds[kind]
		if found == nil {
			order = append(order, kind)
		}
		switch n := len(found); {
		case !a.End:
			kinds[kind] = append(found, Scope{Start: a.Time})
		case n > 0 && found[n-1].End == 0:
			found[n-1].End = a.Time
		default: // it began before the recording
			kinds[kind] = append(found, Scope{End: a.Time})
		}
	}
	return kinds, order
}

// stepKind returns the kind of step that a scope's name states, "" for none.
func stepKind(name string) string {
	for _, kind := range []string{profilerStep, updateStep} {
		if strings.HasPrefix(name, kind) {
			return kind
		}
	}
	if m := stepName.FindStringSubmatch(name[max(0, len(name)-stepTail):]); m != nil {
		return m[1]
	}
	return ""
}

// Steps are the times, in order, at which steps of the program ended, as far as
// annotations show: those of [Snapshot.StepScopes], otherwise calls of an optimizer.
// It is nil where there are none.
func (s *Snapshot) Steps() (ends []int64, what string) {
	scopes, what := s.StepScopes()
	if len(scopes) == 0 {
		scopes, what = s.UpdateScopes(), "optimizer steps"
	}
	for _, x := range scopes {
		if x.End != 0 {
			ends = append(ends, x.End)
		}
	}
	if len(ends) == 0 {
		return nil, ""
	}
	return ends, what
}
