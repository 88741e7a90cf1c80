package report

import (
	"fmt"
	"io"
	"time"

	"strandline/face/api"
	"strandline/internal/shell"
	"strandline/torch/replay"
	"strandline/units"
)

// AddReclaim adds how reserved memory is kept below a level.
func (d *Simulation) AddReclaim(s *replay.Search, on []*replay.Result) {
	r := &api.Reclaim{Line: s.Line, Recorded: s.Recorded, InUse: s.InUse, Tried: []api.TriedPolicy{}, Notes: []string{}}
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
	d.Reclaim = r
}

func triedPolicy(t *replay.Reclaimed, on []*replay.Result) api.TriedPolicy {
	p := api.TriedPolicy{Policy: t.Name, Calls: t.Calls}
	for i, x := range on {
		o, l := &t.Outcomes[i], t.Levels[i]
		p.CostMS += replay.Cost(&o.Stats)
		one := api.PolicyOn{Device: x.Device, Reserved: o.ReservedPeak, Rises: l.Rises}
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
		return fmt.Sprintf("No reclaim at the ends of steps keeps it under %s; %s comes closest, with a peak of %s instead of %s. Within a step another setting helps more: strandline simulate --search.",
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

// writeReclaim prints the policy to use, and those that are nearly as good.
func (d *Simulation) writeReclaim(w io.Writer, s Style) {
	r := d.Reclaim
	fmt.Fprintln(w)
	for _, line := range wrap(r.Text, s.columns()) {
		fmt.Fprintln(w, s.bold(line))
	}
	if r.Policy != nil {
		fmt.Fprintln(w, "  strandline record --reclaim "+shell.Word(Line(*r.Policy))+" -- CMD…")
	}
	if len(r.Tried) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := table{right: map[int]bool{1: true, 2: true, 4: true}}
	t.row("reclaim", "calls", "peak", "settles at", "est. cost")
	const maxRows = 6
	shown, last := 0, "" // the first of those with the same result
	for i := range r.Tried {
		p := &r.Tried[i]
		if shown == maxRows {
			break
		}
		peak, level := int64(0), ""
		for _, on := range p.Devices {
			if on.Reserved > peak && on.After != nil {
				level = units.Bytes(*on.After) + " to " + units.Bytes(*on.Before)
			}
			peak = max(peak, on.Reserved)
		}
		if row := fmt.Sprint(p.Calls, peak, level); row != last {
			shown++
			last = row
			t.row(p.Policy, units.Count(int64(p.Calls)), units.Bytes(peak), level, units.Duration(time.Duration(p.CostMS*float64(time.Millisecond))))
		}
	}
	t.write(w, "  ")
	if n := len(r.Tried) - shown; n > 0 {
		fmt.Fprintf(w, "  others tried: %s\n", units.Count(int64(n)))
	}
	for _, note := range r.Notes {
		printWrapped(w, s, "", "note: "+note)
	}
}
