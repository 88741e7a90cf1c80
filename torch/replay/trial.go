package replay

import (
	"context"
	"strings"

	"strandline/torch/allocator"
	"strandline/units"
)

// A Trial is what expandable segments would have done for a recorded run.
type Trial struct {
	Settings  string // of the allocator, those of the file with expandable segments
	Exact     bool   // the history is replayed exactly under its own settings
	Own, Peak int64  // peak of reserved bytes: recorded, and with the settings
	RanOut    bool   // memory ran out in the history
	RunsOut   bool   // and does with the settings, in as much memory as there was
	Left      *int64 // what was still available after the request that failed; nil if it fails again
}

// Saves returns how much lower the peak is; less than 0 if it is higher.
func (t *Trial) Saves() int64 { return t.Own - t.Peak }

// TryExpandable simulates expandable segments. It is nil where that shows
// nothing: segments are expandable already, the release has none, the state is
// not known, or a limit of unknown size stopped a request.
func TryExpandable(x *Result) *Trial {
	s := x.Snap
	const first allocator.Version = 201
	v := VersionOf(s)
	if v != 0 && v < first || s.Settings != nil && s.Settings.ExpandableSegments {
		return nil
	}
	t := &Trial{}
	if s.Settings != nil {
		t.Settings = s.Settings.Conf
	}
	t.Settings = WithExpandable(t.Settings)
	set, err := allocator.ParseSettings(t.Settings, v)
	if err != nil {
		return nil
	}
	as := x.Assumed()
	if x.Trace.Len() == 0 || x.Lost || as.Limited {
		return nil
	}
	sc := Scenario{Settings: set}
	if as.Capacity != nil {
		sc.Capacity = *as.Capacity
	}
	o := x.WhatIf(sc)
	t.Exact, t.Own, t.Peak = x.Difference == nil, x.PeakReserved.Bytes, o.ReservedPeak
	t.RanOut, t.RunsOut = x.OOMs > 0, o.OOM != nil
	t.Left = o.Left
	return t
}

// A Reclaim is what calling empty_cache at the ends of steps would have done for a recorded run.
type Reclaim struct {
	Policy    string // in the words of `strandline record --reclaim`
	Exact     bool   // the history is replayed exactly under its own settings
	Own, Peak int64  // peak of reserved bytes: recorded, and with the policy
	Returned  int64  // bytes that a call returns to the driver, at the median
}

// TryReclaim simulates about ten calls of empty_cache, evenly over the steps of a run, and no
// fewer than one in ten steps. It is nil where the steps or the state are not known.
func TryReclaim(x *Result) *Reclaim {
	ends, _ := x.StepEnds()
	const minSteps, calls = 4, 10
	if x.Lost || len(ends) < minSteps {
		return nil
	}
	steps := units.Plural(int64(min(calls, max(1, len(ends)/calls))), "step")
	p := Policy{Name: "every=" + strings.ReplaceAll(steps, " ", "")}
	p.at = p.Name
	tried := p.try(context.Background(), []*Result{x})
	return &Reclaim{
		Policy: p.Name, Exact: x.Difference == nil, Own: x.PeakReserved.Bytes, Peak: tried.Peak,
		Returned: max(0, tried.Levels[0].Before-tried.Levels[0].After),
	}
}

// WithExpandable adds expandable segments to settings. A limit of splitting
// works against them and is left out.
func WithExpandable(conf string) string {
	var keep []string
	for _, option := range strings.Split(conf, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(option), ":")
		if name != "" && name != "expandable_segments" && name != "max_split_size_mb" {
			keep = append(keep, strings.TrimSpace(option))
		}
	}
	return strings.Join(append(keep, "expandable_segments:True"), ",")
}
