package snapshots

import (
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/judge/verdict"
	"strandline/stack"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/units"
)

// leak is the finding of places that leak together, the heaviest first.
func (g *growth) leak(places []*place) finding.Finding {
	p := places[0]
	var bytes, count int64
	conf := 0.0
	trendBytes, counts := make([]int64, p.pop.Checkpoints()), make([]int64, p.pop.Checkpoints())
	for _, q := range places {
		bytes += q.bytes()
		count += q.count()
		conf = max(conf, q.verdict.Confidence)
		held := q.pop.Bytes
		if g.judged.Inside { // without what the next step frees
			held = q.pop.Final
		}
		for j, n := range held {
			trendBytes[j] += n
			counts[j] += q.pop.Count[j]
		}
	}
	first := trendBytes[0]
	frames := g.book.Stacks.Stack(p.most)
	e := &finding.LeakEvidence{
		Rounds: p.verdict.Rounds, Intervals: p.verdict.Intervals, Outlived: p.verdict.Outlived, Lost: p.verdict.Lost,
		BytesAtCheckpoints: trendBytes, CountAtCheckpoints: counts, HeldBy: g.heldBy(places),
	}
	f := finding.Finding{
		Kind: finding.Leak, Severity: finding.Problem, Confidence: conf, Basis: p.verdict.Basis(),
		Device: &g.device, Process: g.process.Name, Site: siteOf(p.site), Stack: framesOf(g.book.Stacks.Short(p.most)),
		Bytes: &bytes, Count: &count, Trend: trendBytes, Evidence: e,
	}
	if conf < verdict.Sure {
		f.Severity = finding.Warning
	}
	if p.late {
		f.Basis += "; it began after the last snapshot but one: record longer to tell it from a cache that fills"
	}
	rate := g.rate(places, bytes-first, &f, e)
	f.Title = fmt.Sprintf("%s at %s are kept and never freed: %s%s", units.Plural(count, "allocation"), short(p.site), units.Bytes(bytes), rate)
	if grown := bytes - first; 4*grown < bytes {
		f.Title = fmt.Sprintf("memory allocated at %s is kept and never freed: %s of the %s held there are new%s", short(p.site), units.Bytes(grown), units.Bytes(bytes), rate)
	}
	if f.Severity == finding.Warning {
		f.Title = "maybe a leak: " + f.Title
	}
	f.Detail = append(f.Detail, g.course(counts))
	f.Remedies = leakRemedies(p.site, frames)
	addHolders(&f, e.HeldBy)
	f.Brief.Why = f.Basis
	if len(e.HeldBy) > 0 {
		f.Brief.Fact = holderWords(&e.HeldBy[0])
	} else if g.process.About == nil { // a recording has looked for holders already
		f.Brief.Next = recordingAgain(frames)
	}
	return f
}

// optimizerState reports whether all stacks make an optimizer's state.
func (g *growth) optimizerState(ids []stack.ID) bool {
	return !slices.ContainsFunc(ids, func(id stack.ID) bool { return !hasFunction(g.book.Stacks.Stack(id), "_init_group", "init_state") })
}

// mostlyInGraphs reports whether more than half of what a place holds is in pools of CUDA
// graphs.
func (g *growth) mostlyInGraphs(p *place) bool {
	var bytes int64
	for _, id := range p.stacks {
		bytes += g.process.Newest().Device(g.device).InGraphs[id]
	}
	return 2*bytes > p.bytes()
}

// rate sets the finding's growth per step and puts it into words. Files that a person wrote show
// moments that were chosen: growth is from one to the next, wherever it was judged.
func (g *growth) rate(places []*place, grown int64, f *finding.Finding, e *finding.LeakEvidence) string {
	newest, chosen := g.process.Newest(), g.process.About == nil
	d := newest.Device(g.device)
	if g.judged.Inside {
		e.CheckpointEvents = d.Checkpoints.Events
		if chosen {
			grown = g.liveBytes(places, newest) - g.liveBytes(places, g.process.Files[0])
		}
	}
	if n := len(g.process.Files); n > 1 && (chosen || !g.judged.Inside) {
		per := grown / int64(n-1)
		f.BytesPerStep = &per
		e.Files = names(g.process)
		return fmt.Sprintf(", %s from file to file", units.SignedBytes(per)) + singleStep(e.BytesAtCheckpoints)
	}
	steps := len(d.Steps.Ends)
	per := grewInSteps(places, d.Checkpoints.Steps) / int64(steps)
	f.BytesPerStep = &per
	e.Steps = steps
	return fmt.Sprintf(", %s a step (%d steps, by %s)", units.SignedBytes(per), steps, d.Steps.From)
}

// singleStep states how much of a growth came from one checkpoint to the next, if that is most of
// it: a workspace that is allocated at the same line, say.
func singleStep(bytes []int64) string {
	var most int64
	for i := range len(bytes) - 1 {
		most = max(most, bytes[i+1]-bytes[i])
	}
	const minCheckpoints = 4 // checkpoints of which one step may be told from the others
	if n := len(bytes); n < minCheckpoints || 2*most <= bytes[n-1]-bytes[0] {
		return ""
	}
	return fmt.Sprintf(", %s of it at once", units.Bytes(most))
}

// grewInSteps is how much of what some places hold at the end was added between the first
// checkpoint and the last one that ends a step.
func grewInSteps(places []*place, last int) (bytes int64) {
	for _, p := range places {
		bytes += p.pop.Final[last] - p.pop.Final[0]
	}
	return bytes
}

// liveBytes is what the places made that is alive in a file.
func (g *growth) liveBytes(places []*place, d *digest.File) (bytes int64) {
	of := map[stack.ID]bool{}
	for _, p := range places {
		for _, id := range p.stacks {
			of[id] = true
		}
	}
	for _, l := range d.Device(g.device).Live {
		if of[l.Stack] {
			bytes += l.Bytes
		}
	}
	return bytes
}

func names(p *compare.Process) []string {
	out := make([]string, len(p.Files))
	for i, f := range p.Files {
		out[i] = f.Name
	}
	return out
}

// course lists the numbers of live allocations over time.
func (g *growth) course(live []int64) string {
	const maxShown = 16
	shown := live
	if len(live) > maxShown {
		shown = make([]int64, maxShown)
		for i := range shown {
			shown[i] = live[i*(len(live)-1)/(maxShown-1)]
		}
	}
	counts := make([]string, len(shown))
	for i, n := range shown {
		counts[i] = units.Count(n)
	}
	where := "file to file"
	if g.judged.Inside {
		where = "before the first step and after steps"
	}
	if len(live) > maxShown {
		where += fmt.Sprintf(", at %d of %s moments", maxShown, units.Count(int64(len(live))))
	}
	return fmt.Sprintf("live allocations, %s: %s", where, strings.Join(counts, ", "))
}

func leakRemedies(site stack.Site, frames []stack.Frame) []finding.Remedy {
	if site == (stack.Site{}) {
		return []finding.Remedy{finding.SettingChange(`torch.cuda.memory._record_memory_history(stacks="all")`,
			"record again with C++ stacks and all threads: where these tensors are allocated is unknown")}
	}
	out := []finding.Remedy{finding.CodeChange("drop the holder of these tensors when the step ends: a list, dict, closure, exception or attribute")}
	if hasFunction(frames, "_call_impl", "forward") {
		out = append(out, finding.CodeChange("keep x.detach().cpu() or x.item() instead of the tensor, if only the numbers are needed later"))
	} else {
		out = append(out, finding.CodeChange("keep them on the host if they are needed later: x.cpu()"))
	}
	return out
}

func hasFunction(frames []stack.Frame, names ...string) bool {
	for _, f := range frames {
		for _, n := range names {
			if f.Function == n {
				return true
			}
		}
	}
	return false
}
