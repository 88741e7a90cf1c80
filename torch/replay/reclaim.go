package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"strandline/internal/sorts"
	"strandline/torch/allocator"
	"strandline/units"
)

// A Policy is when empty_cache is called, in the words of `strandline record --reclaim`.
type Policy struct {
	Name  string // every=10steps, every=30s, after=NAME, above=40GiB
	at    string // the moments, as EmptyAt takes them; empty for every moment
	above int64  // bytes reserved at which it is called there; 0 for always
}

// A Reclaimed is the outcome of a policy on all devices.
type Reclaimed struct {
	Policy
	Outcomes []Outcome // by device
	Levels   []Level   // by device
	Calls    int       // of empty_cache that the policy adds, on all devices
	Peak     int64     // bytes reserved at most, on the device that has most
}

// A Level is the reserved memory, in bytes, that a run settles at: the medians over
// the second half of the calls of a policy.
type Level struct {
	Before, After int64 // what a call finds, and what it leaves
	Rises         int64 // how much more the last calls leave than those before, 0 if no more
}

// A Search is what was tried to keep reserved memory under a line.
type Search struct {
	Line     int64       // bytes
	Best     *Reclaimed  // that keeps it with the fewest calls; nil if none does
	Tried    []Reclaimed // those that keep it first, with the fewest calls, then by peak
	Recorded int64       // peak of reserved memory without any, on the device that has most
	InUse    int64       // bytes that are in use at once there, below which none can stay
	Moments  string      // how the ends of steps were found, or what is in their place
}

// Needed reports whether the recorded run itself exceeds the line.
func (s *Search) Needed() bool { return s.Recorded > s.Line }

// KeepUnder finds the policy that keeps the reserved memory of each device at or under
// a line of some bytes with the fewest calls of empty_cache, by trying. A tie goes to
// the lower peak. Each device is emptied by itself. Begin is
// called with the number of policies that are tried, and done after each.
func KeepUnder(ctx context.Context, on []*Result, line int64, begin func(n int), done func()) (*Search, error) {
	s := &Search{Line: line}
	for _, x := range on {
		o, err := x.Run(ctx, x.Under(Scenario{}, x.Settings))
		if err != nil {
			return nil, err
		}
		s.Recorded, s.InUse = max(s.Recorded, o.ReservedPeak), max(s.InUse, o.AllocatedPeak)
	}
	if !s.Needed() || s.InUse > line {
		return s, nil
	}
	policies, what, err := policies(on, line)
	if err != nil {
		return nil, err
	}
	s.Moments = what
	begin(len(policies))
	tried := make([]Reclaimed, len(policies))
	if err := each(ctx, len(policies), func(i int) { tried[i] = policies[i].try(ctx, on) }, done); err != nil {
		return nil, err
	}
	s.Tried = slices.DeleteFunc(tried, func(r Reclaimed) bool { return r.Calls == 0 })
	sorts.StableBy(s.Tried, func(a, b Reclaimed) int {
		if a.Peak <= line && b.Peak <= line {
			return cmp.Or(cmp.Compare(a.Calls, b.Calls), cmp.Compare(a.Peak, b.Peak))
		}
		return cmp.Or(cmp.Compare(a.Peak, b.Peak), cmp.Compare(a.Calls, b.Calls))
	})
	if len(s.Tried) > 0 && s.Tried[0].Peak <= line {
		s.Best = &s.Tried[0]
	}
	return s, nil
}

// try runs a policy on all devices, unless ctx ends.
func (p Policy) try(ctx context.Context, on []*Result) (r Reclaimed) {
	r.Policy = p
	for _, x := range on {
		sc := x.Under(Scenario{EmptyAbove: p.above}, x.Settings)
		sc.Empty, _, _ = x.EmptyAt(p.at) // where it never comes to that, nothing is called
		o, _ := x.Run(ctx, sc)
		r.Outcomes, r.Levels = append(r.Outcomes, o), append(r.Levels, o.level())
		r.Calls, r.Peak = r.Calls+len(o.Emptied), max(r.Peak, o.ReservedPeak)
	}
	return r
}

// Empty has a scenario call empty_cache by a policy: as [Recording.EmptyAt] reads it, or
// "above=40GiB", at the end of a step at which that much is reserved. What states where steps
// were found.
func (x *Result) Empty(sc *Scenario, policy string) (what string, err error) {
	if size, ok := strings.CutPrefix(policy, "above="); ok {
		if sc.EmptyAbove, err = units.ParseBytes(size); err != nil {
			return "", err
		}
		policy = look
		if ends, _ := x.StepEnds(); len(ends) > 0 {
			policy = "every=1step"
		}
	}
	sc.Empty, what, err = x.EmptyAt(policy)
	return what, err
}

// level is what the calls of a run come to.
func (o *Outcome) level() (l Level) {
	half := o.Emptied[len(o.Emptied)/2:]
	if len(half) == 0 {
		return l
	}
	before, after := make([]int64, len(half)), make([]int64, len(half))
	for i, e := range half {
		before[i], after[i] = e.Before, e.After
	}
	l.Before, l.After = sorts.Median(before), sorts.Median(after)
	if n := len(half) / 2; n > 1 && slices.Min(after[n:]) > slices.Max(after[:n]) {
		l.Rises = sorts.Median(after[n:]) - sorts.Median(after[:n])
	}
	return l
}

// look is how often a recorder looks at what is reserved where it sees no steps.
const look = "every=500ms"

// policies are those to try: every so many steps (or seconds, where no step is seen),
// after each annotation, and at the ends of steps above shares of the line.
func policies(on []*Result, line int64) (out []Policy, what string, err error) {
	unit, at, most := "step", "every=1step", 0
	names := map[string]bool{}
	for _, x := range on {
		ends, found := x.StepEnds()
		if len(ends) > most {
			most, what = len(ends), found
		}
		for i := range x.Snap.Annotations {
			if a := &x.Snap.Annotations[i]; a.End {
				name, _, _ := strings.Cut(a.Name, "#")
				names[name] = true
			}
		}
	}
	if most == 0 {
		unit, at, what = "s", look, "no steps are seen: by the clock"
		if most = seconds(on); most == 0 {
			return nil, "", fmt.Errorf("the history shows neither where steps end nor times, so that no policy can be tried on it")
		}
	}
	for n := 1; n <= most; n = max(n+1, n*9/8) {
		name := fmt.Sprintf("every=%d%s", n, unit)
		if n > 1 && unit == "step" {
			name += "s"
		}
		out = append(out, Policy{Name: name, at: name})
	}
	const maxNames = 8 // annotations: those of a step are named alike
	for i, name := range slices.Sorted(maps.Keys(names)) {
		if i < maxNames && name != "" {
			out = append(out, Policy{Name: "after=" + name, at: "after=" + name})
		}
	}
	for bytes := line; bytes > line/10; bytes -= bytes / 16 {
		if b := bytes / allocator.SmallBuffer * allocator.SmallBuffer; b > 0 {
			out = append(out, Policy{Name: "above=" + units.Typed(b), at: at, above: b})
		}
	}
	return out, what, nil
}

// seconds is how long the histories are.
func seconds(on []*Result) (n int) {
	for _, x := range on {
		first, last := int64(0), int64(0)
		for _, t := range x.Trace.Time {
			if t > 0 && first == 0 {
				first = t
			}
			last = max(last, t)
		}
		n = max(n, int(time.Duration(last-first)*time.Microsecond/time.Second))
	}
	return n
}
