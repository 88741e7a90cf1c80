package torch

import (
	"fmt"
	"sort"
	"strings"

	"strandline/finding"
	"strandline/stack"
	"strandline/torch/digest"
	"strandline/torch/purpose"
	"strandline/torch/timeline"
	"strandline/units"
)

// peak says what the highest memory of the newest file is made of, and what is
// left at its end.
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
		Kind: finding.Peak, Severity: finding.Info, Confidence: min(known(held), known(end)),
		Device: &device, Process: p.Name,
		Title:    fmt.Sprintf("the peak is %s: %s", units.Bytes(at.Bytes), madeOf(held)),
		Basis:    "the share of the peak, or of the end if that is less, that stacks, lifetimes and sizes tell the purpose of",
		Evidence: e,
	}
	if at.Event != timeline.Never {
		f.Detail = append(f.Detail, fmt.Sprintf("it is reached at event %s of %s", units.Count(int64(at.Event)), units.Count(int64(d.Events))))
	} else {
		f.Detail = append(f.Detail, "it is what was in use when the history began; what was in use before is not recorded")
	}
	f.Detail = append(f.Detail, heaviest(held)...)
	f.Detail = append(f.Detail, inferredOf(at)...)
	e.UnusedGraphs = tellUnused(&f, d)
	f.Detail = append(f.Detail, fmt.Sprintf("at the end %s: %s", units.Bytes(d.Purpose.End.Bytes), madeOf(end)))
	return []finding.Finding{f}
}

// inferredEvidence is what sizes suggest of memory that was there before the
// recording, nil if they suggest nothing.
func inferredEvidence(m *purpose.Moment) *finding.Inferred {
	if m.Inferred == nil {
		return nil
	}
	return &finding.Inferred{ByPurpose: m.Inferred.By.Map(), Confidence: m.Inferred.Confidence}
}

// inferredOf says the same in a sentence.
func inferredOf(m *purpose.Moment) []string {
	if m.Inferred == nil {
		return nil
	}
	var parts []string
	for _, p := range m.Inferred.By.Sorted() {
		parts = append(parts, units.Bytes(m.Inferred.By[p])+" "+p.Words())
	}
	return []string{fmt.Sprintf("of what was there before the recording, sizes suggest: %s (inferred, %s sure)",
		strings.Join(parts, ", "), units.Percent(m.Inferred.Confidence))}
}

// tellUnused says what forward passes kept for backward passes that did not come, and
// what to do about it, if that is worth a person's time; else it returns nil.
func tellUnused(f *finding.Finding, d *digest.Device) *finding.UnusedGraphs {
	u, peak := d.Purpose.Unused, d.Purpose.Peak.Bytes
	if u == nil || worth(u.Bytes, peak) == "" {
		return nil
	}
	e := &finding.UnusedGraphs{Bytes: u.Bytes, Count: u.Graphs, OlderBytes: u.Older}
	f.Detail = append(f.Detail, fmt.Sprintf("%s of this was kept for a backward pass that does not follow", units.Bytes(u.Bytes)))
	if u.Graphs > 1 {
		e.PeakWithoutOlderBytes = &u.Without
		f.Detail = append(f.Detail, fmt.Sprintf("it is of %s forward passes: %s of the older lives until the new output takes the place of the old",
			units.Count(int64(u.Graphs)), units.Bytes(u.Older)))
	}
	what := "put the forward pass under torch.no_grad() or torch.inference_mode() where no backward pass follows: nothing is kept then"
	if u.Graphs > 1 && worth(peak-u.Without, peak) != "" {
		what += fmt.Sprintf("; where gradients are needed, del the output before the next forward pass: played again on this history, the peak would be %s instead of %s",
			units.Bytes(u.Without), units.Bytes(peak))
	}
	f.Remedies = append(f.Remedies, finding.CodeChange(what))
	return e
}

// usage says what memory holds where a file has no history of a device.
func usage(s *subject) []finding.Finding {
	p, d, leaks := s.process, s.newest, s.leaks
	m := &d.Purpose.End
	if m.Bytes == 0 {
		return nil
	}
	h := holdingsOf(m, leakingSites(leaks), true)
	held, sums := h.uses(), h.sums()
	f := finding.Finding{
		Kind: finding.Usage, Severity: finding.Info, Confidence: known(held), Device: &d.Index, Process: p.Name,
		Title:    fmt.Sprintf("%s is in use: %s", units.Bytes(m.Bytes), madeOf(held)),
		Basis:    "the share that the stacks of the blocks tell the purpose of",
		Evidence: &finding.UsageEvidence{ByPurpose: sums.ByPurpose, Bytes: sums.Bytes, LeakedBytes: sums.LeakedBytes, Sites: h.places()},
		Detail:   append([]string{"the file has no history: what was the peak, and what is soon freed, it does not tell"}, heaviest(held)...),
	}
	return []finding.Finding{f}
}

// A holding is what a place holds for a purpose, and whether it leaked: what did
// is of no use any more, whatever it was made for.
type holding struct {
	purpose.Place
	leaked bool
}

// holdings are those of a moment, most bytes first.
type holdings []holding

// holdingsOf tells apart what has leaked at a moment: what stands at the places of
// leaks and is never freed. Until the file's end it can be what a pass under way
// still needs.
func holdingsOf(m *purpose.Moment, leaking map[stack.Site]bool, end bool) (out holdings) {
	index := map[holding]int{}
	for _, x := range m.Places {
		h := holding{x, leaking[x.Site] && (end || x.Kept && stays(&x))}
		if h.leaked {
			h.Purpose = purpose.Other
		}
		key := h
		key.Bytes, key.Count, key.Before, key.Kept = 0, 0, false, h.pending()
		if i, ok := index[key]; ok {
			out[i].Bytes += x.Bytes
			out[i].Count += x.Count
			continue
		}
		index[key] = len(out)
		out = append(out, h)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Bytes > out[j].Bytes })
	return out
}

// pending tells what is unknown only because it is not freed yet, in a history that
// tells of its making.
func (h *holding) pending() bool {
	return h.Purpose == purpose.Unknown && !h.Before && h.Kept && h.Site != (stack.Site{})
}

// stays tells whether what stands at a leaking place can have leaked: what a
// pass under way needs is still to be freed.
func stays(x *purpose.Place) bool { return x.Purpose != purpose.Activations }

// sums are the bytes by purpose, for machines.
func (h holdings) sums() (out finding.PurposeSums) {
	var by purpose.Sums
	for i := range h {
		out.Bytes += h[i].Bytes
		by[h[i].Purpose] += h[i].Bytes
		if h[i].leaked {
			out.LeakedBytes += h[i].Bytes
		}
	}
	out.ByPurpose = by.Map()
	return out
}

// places are those that hold most, for machines.
func (h holdings) places() []finding.PurposePlace {
	const most = 10
	out := []finding.PurposePlace{}
	for _, x := range h[:min(most, len(h))] {
		out = append(out, finding.PurposePlace{Purpose: x.Purpose.String(), Site: siteOf(x.Site), Bytes: x.Bytes, Count: x.Count, Leaked: x.leaked})
	}
	return out
}

// known is the share of some memory of which the purpose is known.
func known(held []use) float64 {
	var unknown int64
	for _, u := range held {
		if u.unknown() {
			unknown += u.bytes
		}
	}
	return 1 - share(unknown, bytesOf(held))
}

// eventAt is an event, nil for the moment before all events.
func eventAt(event int) *int {
	if event == timeline.Never {
		return nil
	}
	return &event
}

// A use is what memory holds for one purpose.
type use struct {
	name   string
	bytes  int64
	places []purpose.Place // most bytes first
}

// notFreed is the name of what may be gone when its step ends, or stay.
const notFreed = "not yet freed"

// unknown tells a use of which the purpose is not known.
func (u *use) unknown() bool { return u.name == notFreed || u.name == purpose.Unknown.Words() }

// uses are the purposes of a moment, most bytes first. What leaked stands for
// itself.
func (h holdings) uses() (out []use) {
	index := map[string]int{}
	for _, x := range h {
		name := x.Purpose.Words()
		switch {
		case x.leaked:
			name = "leaked"
		case x.pending():
			name = notFreed
		}
		i, ok := index[name]
		if !ok {
			i = len(out)
			index[name] = i
			out = append(out, use{name: name})
		}
		out[i].bytes += x.Bytes
		out[i].places = append(out[i].places, x.Place)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].bytes > out[j].bytes })
	return out
}

// leakingSites are the places of the findings that are leaks.
func leakingSites(growth []finding.Finding) map[stack.Site]bool {
	out := map[stack.Site]bool{}
	for i := range growth {
		if growth[i].Severity == finding.Problem {
			for _, s := range sitesOf(&growth[i]) {
				out[stack.Site(s)] = true
			}
		}
	}
	return out
}

// sitesOf are the places of a finding.
func sitesOf(f *finding.Finding) (out []finding.Site) {
	for _, p := range f.Sites {
		out = append(out, p.Site)
	}
	if len(out) == 0 && f.Site != nil {
		out = append(out, *f.Site)
	}
	return out
}

// madeOf lists uses; crumbs are left out.
func madeOf(held []use) string {
	const crumb = 0.005
	var parts []string
	for _, u := range held {
		if share(u.bytes, bytesOf(held)) >= crumb || len(parts) == 0 {
			parts = append(parts, units.Bytes(u.bytes)+" "+u.name)
		}
	}
	if len(parts) == 0 {
		return "nothing is in use"
	}
	return strings.Join(parts, ", ")
}

// heaviest names the places that hold most of the largest uses.
func heaviest(held []use) (out []string) {
	const purposes, places, least = 4, 3, 0.02
	for _, u := range held[:min(purposes, len(held))] {
		var parts []string
		for _, x := range u.places {
			known := x.Backward || x.Site != (stack.Site{})
			if known && len(parts) < places && share(x.Bytes, bytesOf(held)) >= least {
				parts = append(parts, fmt.Sprintf("%s %s (%s)", units.Bytes(x.Bytes), madeAt(&x), units.Count(int64(x.Count))))
			}
		}
		if len(parts) > 0 {
			out = append(out, u.name+": "+strings.Join(parts, ", "))
		}
	}
	return out
}

func bytesOf(held []use) (n int64) {
	for _, u := range held {
		n += u.bytes
	}
	return n
}

// madeAt says where memory was made.
func madeAt(x *purpose.Place) string {
	if x.Backward {
		return "in the backward pass"
	}
	return "at " + short(x.Site)
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
