package snapshots

import (
	"fmt"
	"strings"

	"strandline/finding"
	"strandline/torch/digest"
	"strandline/torch/purpose"
	"strandline/torch/timeline"
	"strandline/units"
)

// peak states what the newest file's memory consists of at its highest, and what is left at
// the end.
func peak(s *subject) []finding.Finding {
	p, device, d := s.process, s.device, s.newest
	at, leaking := &d.Purpose.Peak, leakingSites(s.leaks)
	top, left := holdingsOf(at, leaking, false), holdingsOf(&d.Purpose.End, leaking, true)
	held, end := top.uses(), left.uses()
	sums, after := top.sums(), left.sums()
	after.Inferred = inferredEvidence(&d.Purpose.End)
	e := &finding.PeakEvidence{
		Event: eventAt(at.Event), Sites: top.places(), AtEnd: after,
		ByPurpose: sums.ByPurpose, Bytes: sums.Bytes, LeakedBytes: sums.LeakedBytes, Inferred: inferredEvidence(at),
	}
	f := finding.Finding{
		Kind: finding.Peak, Severity: finding.Info, Confidence: min(knownShare(held), knownShare(end)),
		Device: &device, Process: p.Name,
		Title:    fmt.Sprintf("the peak is %s: %s", units.Bytes(at.Bytes), madeOf(held)),
		Basis:    "the share of the peak (or of the end, if less) whose purpose stacks, lifetimes and sizes show",
		Evidence: e,
	}
	if at.Event != timeline.Never {
		f.Detail = append(f.Detail, fmt.Sprintf("it is reached at event %s of %s", units.Count(int64(at.Event)), units.Count(int64(d.Events))))
	} else {
		f.Detail = append(f.Detail, "it is the memory when the history began; earlier memory is not recorded")
	}
	if d.Doubt != "" {
		f.Detail = append(f.Detail, d.Doubt)
	}
	f.Detail = append(f.Detail, heaviest(held)...)
	f.Detail = append(f.Detail, inferredOf(at)...)
	e.UnusedGraphs = addUnused(&f, d)
	f.Detail = append(f.Detail, fmt.Sprintf("at the end %s: %s", units.Bytes(d.Purpose.End.Bytes), madeOf(end)))
	name := "peak"
	if d.Doubt != "" {
		name = "peak at most"
	}
	f.Brief = finding.Brief{Title: name + " " + units.Bytes(at.Bytes), Account: accountOf(name, held), Next: inspecting(p.Newest().Name, at.Event, device)}
	return []finding.Finding{f}
}

// inferredEvidence is what sizes suggest about memory that was there before the
// recording, nil if they suggest nothing.
func inferredEvidence(m *purpose.Moment) *finding.Inferred {
	if m.Inferred == nil {
		return nil
	}
	return &finding.Inferred{ByPurpose: m.Inferred.By.Map(), Confidence: m.Inferred.Confidence}
}

// inferredOf describes the same in sentences.
func inferredOf(m *purpose.Moment) []string {
	if m.Inferred == nil {
		return nil
	}
	var parts []string
	for _, p := range m.Inferred.By.Sorted() {
		parts = append(parts, units.Bytes(m.Inferred.By[p])+" "+p.Words())
	}
	return []string{fmt.Sprintf("sizes suggest, of the memory before the recording: %s (inferred, confidence %s)",
		strings.Join(parts, ", "), units.Percent(m.Inferred.Confidence))}
}

// addUnused states what forward passes kept for backward passes that did not come, and what
// to do about it, if it is a lot; otherwise it returns nil.
func addUnused(f *finding.Finding, d *digest.Device) *finding.UnusedGraphs {
	u, peak := d.Purpose.Unused, d.Purpose.Peak.Bytes
	if u == nil || severityOf(u.Bytes, peak) == "" {
		return nil
	}
	e := &finding.UnusedGraphs{Bytes: u.Bytes, Count: u.Graphs, OlderBytes: u.Older}
	f.Detail = append(f.Detail, fmt.Sprintf("%s of this was kept for a backward pass that does not follow", units.Bytes(u.Bytes)))
	if u.Graphs > 1 {
		e.PeakWithoutOlderBytes = &u.Without
		f.Detail = append(f.Detail, fmt.Sprintf("it belongs to %s forward passes: %s of the older one lives until the new output replaces the old",
			units.Count(int64(u.Graphs)), units.Bytes(u.Older)))
	}
	what := "run the forward pass under torch.no_grad() or torch.inference_mode() if no backward pass follows: nothing is then kept for it"
	if u.Graphs > 1 && severityOf(peak-u.Without, peak) != "" {
		what += fmt.Sprintf(". Where gradients are needed, del the output before the next forward pass: replayed, the peak is %s instead of %s",
			units.Bytes(u.Without), units.Bytes(peak))
	}
	f.Remedies = append(f.Remedies, finding.CodeChange(what))
	return e
}

// eventAt is the number of an event, nil for the moment before all events.
func eventAt(event int) *int {
	if event == timeline.Never {
		return nil
	}
	return &event
}
