package snapshots

import (
	"fmt"
	"slices"

	"strandline/finding"
	"strandline/stack"
	"strandline/trend"
	"strandline/units"
)

// regrownFrom is the least number of files in each of which a tensor must be larger.
const regrownFrom = 5

// rises reports whether something was larger in each of enough files.
func rises(held []int64) bool {
	for j := 1; j < len(held); j++ {
		if held[j] <= held[j-1] {
			return false
		}
	}
	return len(held) >= regrownFrom && held[0] > 0
}

// keepsRising reports whether the last of some rises is not clearly less than the others.
func keepsRising(held []int64) bool {
	n := len(held) - 1
	return float64(held[n]-held[n-1])*float64(n) >= slower*float64(held[n]-held[0])
}

// regrownBetween finds tensors that are replaced between files by larger ones, where the
// histories do not reach back to the copies; anew is what they do show.
func (g *growth) regrownBetween(anew []finding.Finding) (out []finding.Finding) {
	if g.judged.Inside || g.process.Covered(g.device, 0) {
		return nil
	}
	var larger []*place
	for _, p := range g.others {
		if p.replaced() && rises(p.pop.Bytes) {
			larger = append(larger, p)
		}
	}
	if len(larger) != 1 { // the work became larger: what several lines make, grows with it
		return nil
	}
	p := larger[0]
	first := p.pop.Bytes[0]
	shown := slices.ContainsFunc(anew, func(f finding.Finding) bool { return *f.Site == finding.Site(p.site) })
	switch {
	case shown, p.site == (stack.Site{}), slices.ContainsFunc(p.stacks, g.inForward), p.bytes() < regrownTwice*first,
		p.bytes()-first < minRegrown, !keepsRising(p.pop.Bytes):
		return nil
	}
	return []finding.Finding{g.replacedBy(p)}
}

// inForward reports whether a stack is in a forward pass.
func (g *growth) inForward(id stack.ID) bool { return stack.InForward(g.book.Stacks.Stack(id)) }

// replaced reports whether a place holds as many tensors in each file, though none stays.
func (p *place) replaced() bool {
	for _, n := range p.pop.Count {
		if n == 0 || n != p.pop.Count[0] {
			return false
		}
	}
	return p.verdict.Class == trend.Turnover
}

// replacedBy is the finding of a place that holds a larger tensor in each file.
func (g *growth) replacedBy(p *place) finding.Finding {
	f := g.leak([]*place{p})
	first, n, files := p.pop.Bytes[0], p.last(), g.process.Files
	e := &finding.RegrownEvidence{BytesAtCheckpoints: p.pop.Bytes, Files: names(g.process), FirstBytes: first, Pieces: n, Tensors: int(p.count())}
	for _, file := range files {
		e.ReservedAt = append(e.ReservedAt, file.Device(g.device).Reserved)
	}
	f.Kind, f.Severity, f.Confidence, f.Evidence = finding.Regrown, finding.Warning, undecidable, e
	f.Basis = "it is larger in each file, and nothing else is; that the work became larger looks the same"
	what := "a tensor is"
	if p.count() > 1 {
		what = units.Plural(p.count(), "tensor") + " are"
	}
	f.Title = fmt.Sprintf("%s replaced by a larger one between all files at %s, from %s to %s, %s from file to file", what, short(p.site),
		units.Bytes(first), units.Bytes(p.bytes()), units.SignedBytes((p.bytes()-first)/int64(n)))
	f.Detail = []string{"the histories do not reach from copy to copy, so the appended parts are unknown"}
	if from, to := e.ReservedAt[0], e.ReservedAt[len(files)-1]; to > from {
		f.Detail = append(f.Detail, fmt.Sprintf("reserved memory grew from %s to %s in these files", units.Bytes(from), units.Bytes(to)))
	}
	f.Remedies = append(joinOnce(p.site), finding.CodeChange("record more events (max_entries) or dump more often: five copies in one history decide it"))
	return f
}
