package api

import (
	"fmt"

	"strandline/torch/replay"
	"strandline/units"
)

// NewReclaim is the outcome of a search on devices, in words and figures.
func NewReclaim(s *replay.Search, on []*replay.Result) *Reclaim {
	r := &Reclaim{Line: s.Line, Recorded: s.Recorded, InUse: s.InUse, Tried: []TriedPolicy{}, Notes: []string{}}
	for i := range s.Tried {
		r.Tried = append(r.Tried, triedPolicy(&s.Tried[i], on))
	}
	if s.Best != nil {
		r.Policy = &s.Best.Name
	}
	r.Text = reclaimText(s)
	if s.Needed() {
		r.Notes = append(r.Notes, "ends of steps: "+s.Moments,
			"record --reclaim also collects Python's garbage, which can free more than is shown here")
	}
	for _, x := range on {
		if note := x.Held(); note != "" {
			r.Notes = append(r.Notes, note)
		}
	}
	return r
}

func triedPolicy(t *replay.Reclaimed, on []*replay.Result) TriedPolicy {
	p := TriedPolicy{Policy: t.Name, Calls: t.Calls}
	for i, x := range on {
		o, l := &t.Outcomes[i], t.Levels[i]
		p.CostMS += replay.Cost(&o.Stats)
		one := PolicyOn{Device: x.Device, Reserved: o.ReservedPeak, Rises: l.Rises}
		if len(o.Emptied) > 0 {
			one.Before, one.After = &l.Before, &l.After
		}
		p.Devices = append(p.Devices, one)
	}
	return p
}

// reclaimText states the outcome in sentences.
func reclaimText(s *replay.Search) string {
	line := units.Bytes(s.Line)
	switch {
	case !s.Needed():
		return fmt.Sprintf("No reclaim is needed: the run peaks at %s reserved, under the line of %s.", units.Bytes(s.Recorded), line)
	case s.Best == nil && s.InUse > s.Line:
		return fmt.Sprintf("No reclaim keeps it under %s: %s is active at once. Use less, or record where the peak comes from: strandline diagnose.", line, units.Bytes(s.InUse))
	case s.Best == nil && len(s.Tried) == 0:
		return fmt.Sprintf("No policy can be tried: no step ends in the history before its peak of %s.", units.Bytes(s.Recorded))
	case s.Best == nil:
		t := &s.Tried[0]
		return fmt.Sprintf("No reclaim at the ends of steps keeps it under %s. With %s it peaks at %s instead of %s. Within a step another setting helps more: strandline simulate --search.",
			line, t.Name, units.Bytes(t.Peak), units.Bytes(s.Recorded))
	}
	t := s.Best
	text := fmt.Sprintf("With %s reserved memory stays under %s: it peaks at %s instead of %s, with %s of empty_cache.",
		t.Name, line, units.Bytes(t.Peak), units.Bytes(s.Recorded), units.Plural(int64(t.Calls), "call"))
	return text + levelText(t)
}

// levelText states the level at which the device with the highest peak settles.
func levelText(t *replay.Reclaimed) string {
	at := 0
	for i := range t.Outcomes {
		if t.Outcomes[i].ReservedPeak > t.Outcomes[at].ReservedPeak {
			at = i
		}
	}
	l := t.Levels[at]
	text := fmt.Sprintf(" It settles between %s after a call and %s before the next.", units.Bytes(l.After), units.Bytes(l.Before))
	if l.Rises > 0 {
		text += fmt.Sprintf(" The memory after a call still rises, by %s towards the end: active memory grows, which no reclaim ends.", units.Bytes(l.Rises))
	}
	return text
}
