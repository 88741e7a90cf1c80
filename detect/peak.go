package detect

import (
	"fmt"
	"sort"
	"strings"

	"strandline/compare"
	"strandline/finding"
	"strandline/purpose"
	"strandline/stack"
	"strandline/timeline"
	"strandline/units"
)

// peak says what the highest memory of the newest file is made of, and what is
// left at its end. Leaks are the findings of growth there.
func peak(p *compare.Process, device int, leaks []finding.Finding) []finding.Finding {
	d := p.Newest().Device(device)
	if d.Events == 0 {
		return nil
	}
	at, end := &d.Purpose.Peak, &d.Purpose.End
	leaking := leakingSites(leaks)
	held, left := uses(at, leaking), uses(end, leaking)
	f := finding.Finding{
		Kind: finding.Peak, Severity: finding.Info, Confidence: 1 - share(at.By[purpose.Unknown], at.Bytes),
		Device: &device, Process: p.Name,
		Title: fmt.Sprintf("the peak is %s: %s", units.Bytes(at.Bytes), madeOf(held)),
		Basis: "the share of the peak that stacks, lifetimes and sizes tell the purpose of",
		Evidence: map[string]any{
			"event": eventAt(at.Event), "bytes": at.Bytes, "by_purpose": at.By.Map(), "sites": peakPlaces(at),
			"at_end": map[string]any{"bytes": end.Bytes, "by_purpose": end.By.Map()},
		},
	}
	if at.Event != timeline.Never {
		f.Detail = append(f.Detail, fmt.Sprintf("it is reached at event %s of %s", units.Count(int64(at.Event)), units.Count(int64(d.Events))))
	}
	f.Detail = append(f.Detail, heaviest(held)...)
	f.Detail = append(f.Detail, fmt.Sprintf("at the end %s: %s", units.Bytes(end.Bytes), madeOf(left)))
	return []finding.Finding{f}
}

// eventAt is an event, nil for the moment before all events.
func eventAt(event int) any {
	if event == timeline.Never {
		return nil
	}
	return event
}

// A use is what memory holds for one purpose.
type use struct {
	name   string
	bytes  int64
	places []purpose.Place // most bytes first
}

// uses are the purposes of a moment, most bytes first. What leaked stands for
// itself, whatever it was made for.
func uses(m *purpose.Moment, leaking map[stack.Site]bool) (out []use) {
	index := map[string]int{}
	for _, x := range m.Places {
		name := x.Purpose.Words()
		if leaking[x.Site] && stays(&x) {
			name = "leaked"
		}
		i, ok := index[name]
		if !ok {
			i = len(out)
			index[name] = i
			out = append(out, use{name: name})
		}
		out[i].bytes += x.Bytes
		out[i].places = append(out[i].places, x)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].bytes > out[j].bytes })
	return out
}

// stays tells whether what stands at a leaking place can have leaked: what a
// pass under way needs is still to be freed.
func stays(x *purpose.Place) bool { return x.Purpose != purpose.Activations }

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

// peakPlaces are the places of a moment that hold most, for machines.
func peakPlaces(m *purpose.Moment) []map[string]any {
	const most = 10
	out := []map[string]any{}
	for i, x := range m.Places {
		if i == most {
			break
		}
		out = append(out, map[string]any{"purpose": x.Purpose.String(), "site": siteOf(x.Site), "bytes": x.Bytes, "count": x.Count})
	}
	return out
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
