package snapshots

import (
	"fmt"

	"strandline/finding"
	"strandline/units"
)

// minGarbage is the share of a place's tensors, of those looked into, from which it grows by
// garbage rather than by a leak.
const minGarbage = 0.5

// withoutGarbage separates places whose tensors only reference cycles keep: Python's collector
// frees them when it runs, and the more seldom it runs, the more there is of them.
func (g *growth) withoutGarbage(places []*place) (kept []*place) {
	for _, p := range places {
		if held := g.heldBy([]*place{p}); len(held) > 0 && (held[0].Kind == byGarbage || held[0].Kind == byCycles) && held[0].Share >= minGarbage {
			g.garbage = append(g.garbage, p)
			g.judged.Open = g.judged.Open || held[0].Kind == byCycles
		} else {
			kept = append(kept, p)
		}
	}
	return kept
}

// cycles are the findings of places that grow by garbage.
func (g *growth) cycles() (out []finding.Finding) {
	for _, p := range g.garbage {
		f := g.leak([]*place{p})
		held := f.Evidence.(*finding.LeakEvidence).HeldBy
		f.Kind, f.Severity = finding.Growth, finding.Warning
		is, basis, confidence := "is", "the share of the tensors looked into that nothing but such cycles refers to", held[0].Share
		if held[0].Kind == byCycles {
			is, basis, confidence = "may be", "at the exit nothing else kept them; a list that is gone by then may have", undecidable
		}
		f.Confidence, f.Basis = confidence, basis
		f.Title = fmt.Sprintf("%s in %s at %s %s garbage: %s keep it until Python's collector runs",
			units.Bytes(*f.Bytes), units.Plural(*f.Count, "tensor"), short(p.site), is, held[0].Path)
		f.Remedies = []finding.Remedy{holderRemedy(&held[0]),
			finding.CodeChange("call gc.collect() every few steps").Because("the collector counts objects, not bytes: a few large tensors do not make it run")}
		f.Brief = finding.Brief{Title: fmt.Sprintf("%s %s garbage: %s keep it until Python's collector runs", units.Bytes(*f.Bytes), is, held[0].Path), Why: f.Basis}
		out = append(out, f)
	}
	return out
}
