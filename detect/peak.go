package detect

import (
	"fmt"
	"strings"

	"strandline/compare"
	"strandline/finding"
	"strandline/purpose"
	"strandline/timeline"
	"strandline/units"
)

// peak says what the highest memory of the newest file is made of, and what is
// left at its end.
func peak(p *compare.Process, device int) []finding.Finding {
	d := p.Newest().Device(device)
	if d.Events == 0 {
		return nil
	}
	at, end := &d.Purpose.Peak, &d.Purpose.End
	f := finding.Finding{
		Kind: finding.Peak, Severity: finding.Info, Confidence: 1 - share(at.By[purpose.Unknown], at.Bytes),
		Device: &device, Process: p.Name,
		Title: fmt.Sprintf("the peak is %s: %s", units.Bytes(at.Bytes), madeOf(at)),
		Basis: "the share of the peak that stacks, lifetimes and sizes tell the purpose of",
		Evidence: map[string]any{
			"event": eventOf(at), "bytes": at.Bytes, "by_purpose": at.By.Map(), "sites": peakPlaces(at),
			"at_end": map[string]any{"bytes": end.Bytes, "by_purpose": end.By.Map()},
		},
	}
	if at.Event != timeline.Never {
		f.Detail = append(f.Detail, fmt.Sprintf("it is reached at event %s of %s", units.Count(int64(at.Event)), units.Count(int64(d.Events))))
	}
	f.Detail = append(f.Detail, heaviest(at)...)
	f.Detail = append(f.Detail, fmt.Sprintf("at the end %s: %s", units.Bytes(end.Bytes), madeOf(end)))
	return []finding.Finding{f}
}

// eventOf is the event of a moment, nil for the one before all events.
func eventOf(m *purpose.Moment) any {
	if m.Event == timeline.Never {
		return nil
	}
	return m.Event
}

// words name the purposes for people.
var words = map[purpose.Purpose]string{
	purpose.Optimizer: "optimizer state", purpose.KVCache: "KV cache", purpose.Communication: "communication buffers",
	purpose.Unknown: "of unknown purpose",
}

func word(p purpose.Purpose) string {
	if w, ok := words[p]; ok {
		return w
	}
	return p.String()
}

// madeOf lists the purposes of a moment, largest first; crumbs are left out.
func madeOf(m *purpose.Moment) string {
	const crumb = 0.005
	var parts []string
	for _, p := range m.By.Sorted() {
		if share(m.By[p], m.Bytes) >= crumb || len(parts) == 0 {
			parts = append(parts, units.Bytes(m.By[p])+" "+word(p))
		}
	}
	if len(parts) == 0 {
		return "nothing is in use"
	}
	return strings.Join(parts, ", ")
}

// heaviest names the places that hold most of the largest purposes.
func heaviest(m *purpose.Moment) (out []string) {
	const purposes, places, least = 3, 3, 0.02
	for i, p := range m.By.Sorted() {
		if i == purposes {
			break
		}
		var parts []string
		for _, x := range m.Places {
			if x.Purpose == p && len(parts) < places && share(x.Bytes, m.Bytes) >= least {
				parts = append(parts, units.Bytes(x.Bytes)+" "+madeAt(&x))
			}
		}
		if len(parts) > 0 && p != purpose.Unknown {
			out = append(out, word(p)+": "+strings.Join(parts, ", "))
		}
	}
	return out
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
