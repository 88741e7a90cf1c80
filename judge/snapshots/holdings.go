package snapshots

import (
	"fmt"
	"sort"
	"strings"

	"strandline/finding"
	"strandline/stack"
	"strandline/torch/purpose"
	"strandline/units"
)

// A holding is what a place holds for a purpose, and whether it leaked: leaked memory is
// no longer in use, whatever it was made for.
type holding struct {
	purpose.Place
	leaked bool
}

// holdings are what is held at a moment, most bytes first.
type holdings []holding

// holdingsOf separates what has leaked at a moment: what was made at leaking places and
// is never freed. Before the end of the file, such memory may still be needed by a pass
// in progress.
func holdingsOf(m *purpose.Moment, leaking map[stack.Site]bool, end bool) (out holdings) {
	index := map[holding]int{}
	for _, x := range m.Places {
		h := holding{x, leaking[x.Site] && (end || x.Kept && canLeak(&x))}
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

// pending reports whether the purpose is unknown only because the memory is not freed
// yet, in a history that contains its allocation.
func (h *holding) pending() bool {
	return h.Purpose == purpose.Unknown && !h.Before && h.Kept && h.Site != (stack.Site{})
}

// canLeak reports whether what was made at a leaking place can have leaked: what a pass in
// progress needs is still to be freed.
func canLeak(x *purpose.Place) bool { return x.Purpose != purpose.Activations }

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
	const maxPlaces = 10
	out := []finding.PurposePlace{}
	for _, x := range h[:min(maxPlaces, len(h))] {
		out = append(out, finding.PurposePlace{Purpose: x.Purpose.String(), Site: siteOf(x.Site), Bytes: x.Bytes, Count: x.Count, Leaked: x.leaked})
	}
	return out
}

// knownShare is the share of some memory whose purpose is known.
func knownShare(held []use) float64 {
	var unknown int64
	for _, u := range held {
		if u.unknown() {
			unknown += u.bytes
		}
	}
	return 1 - share(unknown, bytesOf(held))
}

// A use is what memory holds for one purpose.
type use struct {
	name   string
	bytes  int64
	places []purpose.Place // most bytes first
}

// unknown reports whether the purpose is not known.
func (u *use) unknown() bool { return u.name == purpose.NotFreed || u.name == purpose.Unknown.Words() }

// uses are the purposes of a moment, most bytes first. Leaked memory is a use of its own.
func (h holdings) uses() (out []use) {
	index := map[string]int{}
	for _, x := range h {
		name := x.Purpose.Words()
		switch {
		case x.leaked:
			name = "leaked"
		case x.pending():
			name = purpose.NotFreed
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

// madeOf lists uses; those of less than half a percent are left out.
func madeOf(held []use) string {
	const minShare = 0.005
	var parts []string
	for _, u := range held {
		if share(u.bytes, bytesOf(held)) >= minShare || len(parts) == 0 {
			parts = append(parts, units.Bytes(u.bytes)+" "+u.name)
		}
	}
	if len(parts) == 0 {
		return "nothing is live"
	}
	return strings.Join(parts, ", ")
}

// heaviest names the places that hold the most for the largest uses.
func heaviest(held []use) (out []string) {
	const purposes, places, minShare = 4, 3, 0.02
	for _, u := range held[:min(purposes, len(held))] {
		var parts []string
		for _, x := range u.places {
			known := x.Backward || x.Site != (stack.Site{})
			if known && len(parts) < places && share(x.Bytes, bytesOf(held)) >= minShare {
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

// madeAt states where memory was made.
func madeAt(x *purpose.Place) string {
	if x.Backward {
		return "in the backward pass"
	}
	return "at " + short(x.Site)
}

// leakingSites are the places of those findings that are leaks.
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

// Leaking are the places that leak on a device of a process, according to its findings.
func Leaking(findings []finding.Finding, process string, device int) map[stack.Site]bool {
	var leaks []finding.Finding
	for _, f := range findings {
		if (f.Kind == finding.Leak || f.Kind == finding.AutogradGraph) && f.Process == process && f.Device != nil && *f.Device == device {
			leaks = append(leaks, f)
		}
	}
	return leakingSites(leaks)
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
