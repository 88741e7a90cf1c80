package snapshots

import (
	"fmt"
	"slices"

	"strandline/finding"
	"strandline/judge/verdict"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/timeline"
	"strandline/units"
)

// leaksOf are the findings of growth on the devices of a process.
func leaksOf(subjects []*subject, p *compare.Process) (out []finding.Finding) {
	for _, s := range subjects {
		if s.process == p && s.newest != nil {
			out = append(out, s.leaks...)
		}
	}
	return out
}

// growingGraphs are the findings of graphs that grow while the device's memory does not:
// each step adds a node, on the host's heap, to the graph that a tensor was computed
// with.
func growingGraphs(s *subject) (out []finding.Finding) {
	newest := s.process.HeldIn(s.process.Newest())
	if newest == nil {
		return nil
	}
	for i := range newest.Graphs {
		x := &newest.Graphs[i]
		if x.Nodes < x.ChainLength { // most of it counts for another path, which keeps it as well
			continue
		}
		files, lengths := chainLengths(s.process, x.Path)
		if !grows(lengths) {
			continue
		}
		if f := s.chain(x, lengths, outlastsSteps(s.process, files)); !named(s.leaks, x.Path, f.Severity) {
			out = append(out, f)
		}
	}
	return out
}

// chainLengths are the lengths of the graph at a path, oldest first, and the files that
// have one.
func chainLengths(p *compare.Process, path string) (files []*digest.File, lengths []int64) {
	for _, f := range p.Files {
		if h := p.HeldIn(f); h != nil && h.Bound == "" {
			if i := slices.IndexFunc(h.Graphs, func(x compare.Holder) bool { return x.Path == path }); i >= 0 {
				files, lengths = append(files, f), append(lengths, h.Graphs[i].ChainLength)
			}
		}
	}
	return files, lengths
}

// outlastsSteps reports whether steps of the program ended between the snapshots, so that
// what grew is not the graph of a single step. If no steps were seen, many snapshots over
// a long time make a single step improbable.
func outlastsSteps(p *compare.Process, files []*digest.File) bool {
	first, last := files[0], files[len(files)-1]
	if from, counted := p.About.Steps[first]; counted {
		return p.About.Steps[last]-from >= 2
	}
	for _, d := range last.Devices {
		if d.Steps.Enough() && d.Steps.From != timeline.Loops {
			return true
		}
	}
	const (
		minFiles = 6
		long     = 30 * 1000 * 1000 // µs
	)
	return len(files) >= minFiles && last.End()-first.End() >= long
}

// grows reports whether a chain became longer from file to file, and at least doubled in
// all. The graph of one step has the same length each time. With only three files, each
// has to add several nodes.
func grows(lengths []int64) bool {
	const (
		files   = 3
		several = 8
	)
	n := len(lengths)
	if n < files || lengths[n-1] < 2*lengths[0] || lengths[n-1] < 16 {
		return false
	}
	for i := range n - 1 {
		added := lengths[i+1] - lengths[i]
		if added <= 0 || n == files && added < several {
			return false
		}
	}
	return true
}

// named reports whether a finding of a severity or a worse one has a holder at a path.
func named(findings []finding.Finding, path string, severity finding.Severity) bool {
	return slices.ContainsFunc(findings, func(f finding.Finding) bool {
		e, ok := f.Evidence.(*finding.LeakEvidence)
		return ok && f.Severity != finding.Info && f.Severity.Rank() >= severity.Rank() &&
			slices.ContainsFunc(e.HeldBy, func(h finding.HeldBy) bool { return h.Kind == byAutograd && h.Path == path })
	})
}

// chain is the finding of one such graph. Its site is where the tensor at the end was
// allocated.
func (s *subject) chain(x *compare.Holder, lengths []int64, steps bool) finding.Finding {
	held := graphHolder(x, 1)
	n := len(lengths) - 1
	f := finding.Finding{
		Kind: finding.AutogradGraph, Severity: finding.Problem, Confidence: 1 - 1/float64(n+2), Process: s.process.Name,
		Basis: fmt.Sprintf("the chain grew in all of %s between snapshots", units.Plural(int64(n), "interval")),
		Title: fmt.Sprintf("%s ends a chain of %s %s that grows with every snapshot: its memory is on the host's heap",
			held.Path, units.Count(x.ChainLength), held.Node),
		Brief:    finding.Brief{Title: fmt.Sprintf("%s: a chain of %s %s grows on the host's heap", held.Path, units.Count(x.ChainLength), held.Node), Why: fmt.Sprintf("the chain grew in all of %s", units.Plural(int64(n), "interval"))},
		Detail:   []string{heldWords(&held)},
		Evidence: &finding.LeakEvidence{BytesAtCheckpoints: []int64{}, CountAtCheckpoints: lengths, HeldBy: []finding.HeldBy{held}, Intervals: n, Rounds: n},
		Remedies: []finding.Remedy{holderRemedy(&held)},
	}
	if !steps {
		f.Severity, f.Confidence = finding.Warning, verdict.Suspect
		f.Detail = append(f.Detail, "no end of a step is seen between these snapshots: if they are all of one forward pass, its graph grows until its end; record --steps names what is a step")
	}
	f.Site = s.madeAt(s.process.Newest(), x.Blocks)
	return f
}

// madeAt is where the first block that the file knows was allocated, or nil.
func (s *subject) madeAt(f *digest.File, blocks []uint64) *finding.Site {
	for _, d := range f.Devices {
		for _, l := range d.Live {
			if slices.Contains(blocks, l.Addr) {
				if site := siteOf(s.book.Stacks.Site(l.Stack)); site != nil {
					return site
				}
			}
		}
	}
	return nil
}
