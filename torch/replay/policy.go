package replay

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"strandline/internal/lazyregexp"
	"strandline/stack"
	"strandline/units"
)

var every = lazyregexp.New(`^every=(\d+) ?(steps?|events?)$`)

// EmptyAt are the events before which a policy calls empty_cache:
// "every=10steps", "every=30s", "every=5000events", or "after=NAME", at each end
// of an annotation of that name, which may leave out what is behind a # in it.
// What states where steps were found.
func (r *Recording) EmptyAt(policy string) (events []int, what string, err error) {
	if name, ok := strings.CutPrefix(policy, "after="); ok {
		return r.afterPhase(name)
	}
	m := every.FindStringSubmatch(policy)
	if m == nil {
		d, err := time.ParseDuration(strings.TrimPrefix(policy, "every="))
		if err != nil || d <= 0 || !strings.HasPrefix(policy, "every=") {
			return nil, "", fmt.Errorf("%q is not a policy: every=10steps, every=30s, every=5000events, or after=NAME of an annotation", policy)
		}
		return r.everyTime(d)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || n == 0 {
		return nil, "", fmt.Errorf("%q is not a policy: the number must be 1 or more, and not of more than 18 digits", policy)
	}
	if strings.HasPrefix(m[2], "event") {
		for k := n; k < r.Trace.Len(); k += n {
			events = append(events, k)
		}
		return events, "", nil
	}
	ends, what := r.StepEnds()
	if len(ends) == 0 {
		return nil, "", fmt.Errorf("the file does not show where steps end: it has neither annotations of steps nor allocations by an optimizer; use every=30s or every=5000events")
	}
	for i := n - 1; i < len(ends); i += n {
		events = append(events, ends[i])
	}
	return events, what, nil
}

func (r *Recording) everyTime(d time.Duration) (events []int, what string, err error) {
	times := r.Trace.Time
	if times == nil {
		return nil, "", fmt.Errorf("the file has no times; use every=5000events")
	}
	next := int64(0)
	for k, t := range times {
		switch {
		case t == 0:
		case next == 0:
			next = t + d.Microseconds()
		case t >= next:
			events = append(events, k)
			next = t + d.Microseconds()
		}
	}
	return events, "", nil
}

func (r *Recording) afterPhase(name string) (events []int, what string, err error) {
	var times []int64
	others := map[string]bool{}
	for i := range r.Snap.Annotations {
		a := &r.Snap.Annotations[i]
		switch {
		case !a.End:
		case a.Name == name || strings.HasPrefix(a.Name, name+"#"):
			times = append(times, a.Time)
		default:
			others[strconv.Quote(a.Name)] = true
		}
	}
	const maxNamed = 5
	switch names := slices.Sorted(maps.Keys(others)); {
	case len(times) > 0:
	case len(names) == 0:
		return nil, "", fmt.Errorf("no annotation %q ends in the file, nor any other: torch.profiler.record_function makes them", name)
	default:
		return nil, "", fmt.Errorf("no annotation %q ends in the file; of those that do are %s", name, strings.Join(names[:min(maxNamed, len(names))], ", "))
	}
	return r.eventsAt(times), "", nil
}

// eventsAt are the first events after some times.
func (r *Recording) eventsAt(times []int64) (events []int) {
	column := r.Trace.Time
	for _, t := range times {
		if k := sort.Search(len(column), func(k int) bool { return column[k] > t }); k < len(column) {
			events = append(events, k)
		}
	}
	sort.Ints(events)
	return events
}

// StacksAt reports of each stack whether its site is one of some places: "train.py:131",
// "train.py", or a function; nil of no place. Counts are how many allocations are made at
// each place: in the history, and before it as far as that is known.
func (r *Recording) StacksAt(places ...string) (at []bool, counts []int) {
	if len(places) == 0 {
		return nil, nil
	}
	t := r.Snap.Stacks
	at, counts = make([]bool, t.Len()+1), make([]int, len(places))
	for j, place := range places {
		file, line := place, ""
		if i := strings.LastIndexByte(place, ':'); i >= 0 && isNumber(place[i+1:]) { // D:/a.py has another colon
			file, line = place[:i], place[i+1:]
		}
		here := make([]bool, len(at))
		for id := range here {
			if stack.ID(id) == stack.None || id >= t.Len() {
				continue
			}
			s := t.Site(stack.ID(id))
			if s == (stack.Site{}) {
				continue
			}
			inFile := s.File == file || strings.HasSuffix(s.File, "/"+file)
			here[id] = s.Function == place || inFile && (line == "" || line == strconv.FormatInt(s.Line, 10))
			at[id] = at[id] || here[id]
		}
		for i := range r.Allocs {
			if here[r.Stack(i)] {
				counts[j]++
			}
		}
	}
	return at, counts
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// LeftOut is a note on a run without the allocations at a place.
func LeftOut(place string, n int) string {
	return "allocations at " + place + " left out: " + units.Count(int64(n))
}
