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
// with, or a tensor with its graph to those that a name keeps.
func growingGraphs(s *subject) (out []finding.Finding) {
	graphs := s.process.LastHeld(graphsOf)
	for i := range graphs {
		x := &graphs[i]
		if x.Nodes < x.ChainLength { // most of it counts for another path, which keeps it as well
			continue
		}
		files, lengths, complete := sizesOf(s.process, ofGraph(x, func(y *compare.Holder) int64 { return y.ChainLength }))
		each := false // tensors keep a graph each; those on a device are found there
		if !grows(lengths, complete) && s.process.OnHost() {
			each = true
			files, lengths, complete = sizesOf(s.process, ofGraph(x, func(y *compare.Holder) int64 { return y.Tensors }))
		}
		if !grows(lengths, complete) {
			continue
		}
		host := hostBytes(s.process, files)
		if x.Estimated && !costs(host, lengths) {
			continue
		}
		f := s.chain(x, lengths, each, lengths[len(lengths)-1] >= longChain || outlastsSteps(s.process, files))
		f.Trend = host
		if !named(s.leaks, x.Path, f.Severity) {
			out = append(out, f)
		}
	}
	return out
}

// costs reports whether main memory, where it is known, grew as a chain must have made it grow. The
// graph of one large step, which is measured in part, is another one at each look, and no longer.
func costs(host, lengths []int64) bool {
	const minNode = 64 // bytes of a node, at least
	n := len(lengths) - 1
	return host == nil || host[n]-host[0] >= minNode*(lengths[n]-lengths[0])
}

// longChain is a number of nodes in a row that no single step computes.
const longChain = 10_000

// ofGraph is the size of the graph of a holder, in one search, for [sizesOf].
func ofGraph(x *compare.Holder, size func(*compare.Holder) int64) func(*compare.Held) (int64, bool) {
	return func(h *compare.Held) (int64, bool) {
		y := compare.Find(h.Graphs, x)
		if y == nil {
			return 0, h.Bound == ""
		}
		return size(y), h.Bound == "" || y.Estimated
	}
}

func graphsOf(h *compare.Held) []compare.Holder { return h.Graphs }

// sizesOf are sizes of one thing, oldest first, and the files that hold it. They are not
// complete if a search ended early, which has found a part.
func sizesOf(p *compare.Process, size func(*compare.Held) (n int64, complete bool)) (files []*digest.File, sizes []int64, complete bool) {
	complete = true
	for _, f := range p.Files {
		if h := p.HeldIn(f); h != nil {
			if n, all := size(h); n > 0 {
				files, sizes, complete = append(files, f), append(sizes, n), complete && all
			}
		}
	}
	return files, sizes, complete
}

// hostBytes is the main memory in use at some files, nil where that is not known of all.
func hostBytes(p *compare.Process, files []*digest.File) (out []int64) {
	for _, f := range files {
		n, ok := p.About.Host[f]
		if !ok {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// growingOnHost are the findings of tensors in main memory that a name keeps.
func growingOnHost(s *subject) []finding.Finding {
	out, _ := keptOnHost(s)
	return out
}

// keptOnHost are the tensors in main memory that a name keeps more of with each snapshot; and those
// for which too few looks show that.
func keptOnHost(s *subject) (out, few []finding.Finding) {
	graphs, host := s.process.LastHeld(graphsOf), s.process.LastHeld(func(h *compare.Held) []compare.Holder { return h.Host })
	for i := range host {
		x := &host[i]
		var bytes []int64
		files, counts, complete := sizesOf(s.process, func(h *compare.Held) (int64, bool) {
			if y := compare.Find(h.Host, x); y != nil {
				return y.Count, h.Bound == ""
			}
			return 0, h.Bound == ""
		})
		for _, f := range files {
			bytes = append(bytes, compare.Find(s.process.HeldIn(f).Host, x).Bytes)
		}
		const minFiles, minGrown = minLooks + 1, 1 << 20
		n := len(files)
		enough := n >= minFiles && grows(counts, complete)
		if n < 2 || !enough && (!complete || counts[n-1] <= counts[0]) || bytes[n-1]-bytes[0] < minGrown || compare.Find(graphs, x) != nil {
			continue
		}
		held := holderOf(x, byPython, 1)
		e := &finding.LeakEvidence{BytesAtCheckpoints: bytes, CountAtCheckpoints: counts, HeldBy: []finding.HeldBy{held}, Intervals: n - 1, Rounds: n - 1}
		f := finding.Finding{
			Kind: finding.Leak, Severity: finding.Problem, Confidence: 1 - 1/float64(n+1), Process: s.process.Name,
			Basis: fmt.Sprintf("their number grew in all of %s between snapshots", units.Plural(int64(n-1), "interval")),
			Title: fmt.Sprintf("%s in main memory are kept by %s: %s", units.Plural(x.Count, "tensor"), held.Path, units.Bytes(x.Bytes)),
			Bytes: &x.Bytes, Count: &x.Count, Trend: bytes, Site: siteOfHolder(&held),
			Detail:   []string{heldWords(&held)},
			Evidence: e,
			Remedies: []finding.Remedy{holderRemedy(&held)},
		}
		f.Brief.Why = f.Basis
		if e.Steps = s.process.About.Steps[files[n-1]] - s.process.About.Steps[files[0]]; e.Steps > 0 {
			f.BytesPerStep = finding.Int((bytes[n-1] - bytes[0]) / int64(e.Steps))
		}
		if !enough {
			few = append(few, f)
			continue
		}
		out = append(out, withSteps(f, outlastsSteps(s.process, files), "no step ended between these snapshots: a table that a program fills looks the same"))
	}
	return out, few
}

// siteOfHolder is the line that puts tensors there, nil if it is unknown.
func siteOfHolder(h *finding.HeldBy) *finding.Site {
	if h.File == "" || h.Line == nil {
		return nil
	}
	return &finding.Site{File: h.File, Line: *h.Line}
}

// withSteps is a finding as it is if the ends of steps were seen, and a suspicion
// with a doubt otherwise.
func withSteps(f finding.Finding, steps bool, doubt string) finding.Finding {
	if !steps {
		f.Severity, f.Confidence = finding.Warning, verdict.Suspect
		f.Detail = append(f.Detail, doubt)
	}
	return f
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
// has to add several nodes. Parts of what there is, as large as a search came upon, have
// to become several times as large.
func grows(lengths []int64, complete bool) bool {
	const (
		files   = 3
		several = 8
	)
	times := int64(2)
	if !complete {
		times = 3
	}
	n := len(lengths)
	if n < files || lengths[n-1] < times*lengths[0] || lengths[n-1] < 16 {
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

// chain is the finding of one such graph, or of a graph for each of many tensors. Its site is
// where the tensor at the end was allocated.
func (s *subject) chain(x *compare.Holder, lengths []int64, each, steps bool) finding.Finding {
	held := graphHolder(x, 1)
	n := len(lengths) - 1
	ends := fmt.Sprintf("%s ends a chain of %s %s", held.Path, units.Count(x.ChainLength), held.Node)
	title := ends + " that grows with every snapshot: its memory is on the host's heap"
	brief := fmt.Sprintf("%s: a chain of %s %s grows on the host's heap", held.Path, units.Count(x.ChainLength), held.Node)
	basis := "the chain"
	if each {
		ends = fmt.Sprintf("%s keeps %s with the autograd graph of each", held.Path, units.Plural(x.Tensors, "tensor"))
		title, brief, basis = ends+": more with every snapshot, on the host's heap", ends, "their number"
	}
	basis = fmt.Sprintf("%s grew in all of %s", basis, units.Plural(int64(n), "interval"))
	f := finding.Finding{
		Kind: finding.AutogradGraph, Severity: finding.Problem, Confidence: 1 - 1/float64(n+2), Process: s.process.Name,
		Basis:    basis + " between snapshots",
		Title:    title,
		Brief:    finding.Brief{Title: brief, Why: basis},
		Detail:   []string{heldWords(&held)},
		Evidence: &finding.LeakEvidence{BytesAtCheckpoints: []int64{}, CountAtCheckpoints: lengths, HeldBy: []finding.HeldBy{held}, Intervals: n, Rounds: n},
		Remedies: []finding.Remedy{holderRemedy(&held)},
	}
	if f.Site = s.madeAt(s.process.Newest(), x.Blocks); f.Site == nil {
		f.Site = siteOfHolder(&held)
	}
	return withSteps(f, steps, "no end of a step is seen between these snapshots: within one forward pass, its graph grows until its end. Name the step with record --steps")
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
