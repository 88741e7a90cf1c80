package snapshots

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"strandline/finding"
	"strandline/judge/verdict"
	"strandline/stack"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/purpose"
	"strandline/torch/timeline"
	"strandline/trend"
	"strandline/units"
)

// growth judges what one device of one process holds, place by place. Several files are
// judged at the moments when they were taken; one or two files are judged at the ends of
// the steps in the newest file's history.
type growth struct {
	book    *digest.Book
	process *compare.Process
	device  int
	judged  verdict.Judged

	places  []*place // that leak
	others  []*place // sites that were judged otherwise
	open    []*place // that grow in a history which cannot show what it is
	garbage []*place // that grow until Python's collector runs
}

// A place is a site, or one stack of a site whose other stacks behave well.
type place struct {
	site    stack.Site
	stacks  []stack.ID
	most    stack.ID // the stack that most of its growth comes from
	pop     *trend.Population
	verdict trend.Verdict
	late    bool // it began after the last file but one, and steps since then show it
}

// A series is what a judgment of growth rests on: what each stack held at some
// checkpoints, the last of them the end of the newest file.
type series struct {
	pops map[stack.ID]*trend.Population
	// checkpoints is how many of them growth is judged at; another one may follow.
	checkpoints int
	// past is what is known of some stacks beyond the checkpoints; pop is their sum.
	past func(ids []stack.ID, pop *trend.Population) trend.Past
	skip func(stack.ID) bool // stacks that cannot be judged; nil if there are none
}

func newGrowth(b *digest.Book, p *compare.Process, device int) *growth {
	g := &growth{book: b, process: p, device: device, judged: verdict.Judged{Process: p.Name, Device: device}}
	newest := p.Newest().Device(device)
	checkpoints := p.Checkpoints(device)
	steps, known := p.StepsSeen(device)
	switch {
	case len(checkpoints) >= minFiles && (!known || steps >= timeline.MinSteps) && !p.CoarserThanSteps(device, checkpoints):
		g.judged.Checkpoints, g.judged.Enough = len(checkpoints), true
		g.judgeSites(filesSeries(p, device, checkpoints))
	case hasSteps(newest):
		g.judged.Checkpoints, g.judged.Inside, g.judged.Enough = len(newest.Steps.Ends), true, true
		g.judged.StepsFrom = newest.Steps.From
		g.judgeSites(g.insideSeries(newest))
	case !newest.Steps.Enough():
		g.judged.Checkpoints, g.judged.StepsFrom = len(newest.Steps.Ends), newest.Steps.From
	}
	g.places = g.withoutGarbage(g.places)
	return g
}

// hasSteps reports whether growth can be judged by the steps of a history: they are enough, and
// most do not capture a CUDA graph, as for each batch size.
func hasSteps(d *digest.Device) bool {
	return d.Steps.Enough() && 2*d.Captures < len(d.Steps.Ends)
}

// minFiles is the least number of files by which growth is judged.
const minFiles = 3

// brief is the share of the typical interval between two files within which temporaries
// are gone. One working set in twenty loses something so young, and nothing older.
const brief = 0.25

// filesSeries is what a process held on a device when its files were taken.
func filesSeries(p *compare.Process, device int, checkpoints []int) series {
	interval, deaths := p.Interval(device), p.Deaths(device)
	ages := ages(p.Files[checkpoints[0]].Device(device), interval)
	work, covered := p.Work(device, checkpoints), p.Covered(device, checkpoints[0])
	return series{
		pops: chains(p, device, checkpoints), checkpoints: len(checkpoints),
		past: func(ids []stack.ID, _ *trend.Population) trend.Past {
			out := trend.Past{Work: work}
			var longer int64
			for _, id := range ids {
				if l := deaths[id]; l != nil {
					out.Freed += l.Over(interval)
					longer += l.Over(int(brief * float64(interval)))
					out.Brief += l.All()
				}
				out.Outlived = max(out.Outlived, ages[id])
			}
			if longer > 0 || !covered {
				out.Brief = 0
			}
			return out
		},
	}
}

// insideSeries is what a device held before the first step of a history and at the
// ends of steps.
func (g *growth) insideSeries(d *digest.Device) series {
	judged := d.Checkpoints.Steps + 1
	s := series{pops: d.Inside, checkpoints: judged, past: func(_ []stack.ID, pop *trend.Population) (out trend.Past) {
		for j := judged; j < pop.Checkpoints(); j++ {
			out.Freed += pop.SettledLost[j] // after the last step
		}
		return out
	}}
	switch d.Steps.From {
	case timeline.Requests:
		s.skip = g.setsUp
	case timeline.Passes:
		s.skip = func(id stack.ID) bool { return g.setsUp(id) || g.inForwardPass(id) }
	case timeline.Loops: // what a program that calls no module keeps returning to can be its set-up
		s.skip = func(stack.ID) bool { return true }
	}
	return s
}

// chains are the populations of a process's files at checkpoints, by stack.
func chains(p *compare.Process, device int, checkpoints []int) map[stack.ID]*trend.Population {
	out := map[stack.ID]*trend.Population{}
	for _, c := range p.Chains(device) {
		first := sort.SearchInts(checkpoints, c.First)
		last := sort.SearchInts(checkpoints, c.Last+1) - 1
		if first > last {
			continue
		}
		pop := out[c.Stack]
		if pop == nil {
			pop = trend.NewPopulation(len(checkpoints))
			out[c.Stack] = pop
		}
		pop.Add(trend.Span{First: first, Last: last, Bytes: c.Bytes})
	}
	return out
}

// ages counts, by stack, how many intervals the things alive in a file had outlived by
// then, counting each age once.
func ages(d *digest.Device, interval int) map[stack.ID]int64 {
	out := map[stack.ID]int64{}
	if interval <= 0 {
		return out
	}
	type batch struct {
		stack stack.ID
		age   int
	}
	seen := map[batch]bool{}
	for _, l := range d.Live {
		if b := (batch{l.Stack, l.Age / interval}); !seen[b] {
			seen[b] = true
			out[l.Stack] += int64(b.age)
		}
	}
	return out
}

// judgeSites judges each site and, if a site as a whole does not leak, each of its stacks: one
// line, such as a helper that makes all tensors, can serve many callers. Stacks that
// cannot be judged are open if they would count as leaks.
func (g *growth) judgeSites(s series) {
	sites, skipped := g.groupBySite(s)
	for site, ids := range sites {
		if site == (stack.Site{}) { // no place in common: each stack separately
			for _, id := range ids {
				g.places = appendLeak(g.places, g.judgePlace(s, site, []stack.ID{id}))
			}
			continue
		}
		before := len(g.places)
		whole := g.judgePlace(s, site, ids)
		g.places = appendLeak(g.places, whole)
		if len(g.places) == before && len(ids) > 1 {
			for _, id := range ids {
				g.places = appendLeak(g.places, g.judgePlace(s, site, []stack.ID{id}))
			}
		}
		if len(g.places) == before {
			g.others = append(g.others, whole)
		}
	}
	for site, ids := range skipped {
		if site != (stack.Site{}) {
			g.open = appendLeak(g.open, g.judgePlace(s, site, ids))
		}
	}
	for _, list := range [][]*place{g.places, g.others, g.open} {
		sort.Slice(list, func(i, j int) bool {
			a, b := list[i], list[j]
			if x, y := a.bytes(), b.bytes(); x != y {
				return x > y
			}
			return cmp.Or(cmp.Compare(compare.SiteName(a.site), compare.SiteName(b.site)), slices.Compare(a.stacks, b.stacks)) < 0
		})
	}
}

// groupBySite groups the stacks of a series by site, with those that cannot be judged in a
// separate map.
func (g *growth) groupBySite(s series) (sites, skipped map[stack.Site][]stack.ID) {
	sites, skipped = map[stack.Site][]stack.ID{}, map[stack.Site][]stack.ID{}
	for id := range s.pops {
		to, site := sites, g.book.Stacks.Site(id)
		if s.skip != nil && s.skip(id) {
			to = skipped
		}
		to[site] = append(to[site], id)
	}
	for _, all := range []map[stack.Site][]stack.ID{sites, skipped} {
		for _, ids := range all {
			slices.Sort(ids)
		}
	}
	return sites, skipped
}

// judgePlace judges some stacks together.
func (g *growth) judgePlace(s series, site stack.Site, ids []stack.ID) *place {
	p := &place{site: site, stacks: ids, pop: trend.NewPopulation(s.pops[ids[0]].Checkpoints())}
	most := int64(-1)
	for _, id := range ids {
		pop := s.pops[id]
		p.pop.Merge(pop)
		if grown := pop.Count[p.last()] - pop.Count[0]; grown > most {
			p.most, most = id, grown
		}
	}
	p.verdict = trend.Judge(p.pop.Until(s.checkpoints), s.past(ids, p.pop))
	v := &p.verdict
	if n := p.last(); v.Class == trend.Once && !g.judged.Inside && p.pop.Count[n] > p.pop.Count[n-1] {
		g.judgeLate(p)
	}
	if v.Class != trend.Leak {
		return p
	}
	if g.workspaces(site) >= p.count()-p.pop.Count[0] { // one for each stream, as each is first used
		v.Class, v.Confidence = trend.Once, 0
		return p
	}
	if g.judged.Inside && v.Rounds == v.Intervals { // each step keeps something
		v.Confidence = max(v.Confidence, verdict.Suspect)
	}
	// An optimizer's state is bounded by the parameters, though groups of them may be
	// unfrozen one by one; memory that CUDA graphs captured is kept for them; and if
	// the line is unknown, the stacks may belong to several places.
	if g.optimizerState(ids) || g.mostlyInGraphs(p) || site == (stack.Site{}) {
		v.Confidence = min(v.Confidence, verdict.Sure-0.05)
	}
	return p
}

// judgeLate judges a place that grew since the last file but one by the steps of the newest
// history since then: additions at many of them were not made once. That they go on, or stop as
// those of a cache do, no file shows yet.
func (g *growth) judgeLate(p *place) {
	newest, files := g.process.Newest().Device(g.device), g.process.Checkpoints(g.device)
	since := g.process.Since(g.device, files[len(files)-2])
	if since < 0 || !hasSteps(newest) {
		return
	}
	s := g.insideSeries(newest)
	pop := trend.NewPopulation(len(newest.Checkpoints.Events))
	for _, id := range p.stacks {
		if in := s.pops[id]; in != nil && (s.skip == nil || !s.skip(id)) {
			pop.Merge(in)
		}
	}
	first := min(sort.SearchInts(newest.Checkpoints.Events, since-1), s.checkpoints)
	v := trend.Judge(pop.Until(s.checkpoints).From(first), s.past(p.stacks, pop))
	if v.Class == trend.Leak && v.Confidence >= verdict.Suspect {
		p.verdict, p.late = v, true
		p.verdict.Confidence = min(v.Confidence, verdict.Sure-0.05)
	}
}

// workspaces counts the cuBLAS workspaces of a site that are alive at the end of the
// newest file.
func (g *growth) workspaces(site stack.Site) (n int64) {
	for _, x := range g.process.Newest().Device(g.device).Purpose.End.Places {
		if x.Site == site && x.Purpose == purpose.Workspaces {
			n += int64(x.Count)
		}
	}
	return n
}

// inForwardPass reports whether a stack is in a forward pass that may save what it makes for a
// backward pass, or for the next pass of the same request.
func (g *growth) inForwardPass(id stack.ID) bool {
	frames := g.book.Stacks.Stack(id)
	return stack.InForward(frames) && !stack.WithoutGradients(frames)
}

// appendLeak adds a place if it may leak.
func appendLeak(list []*place, p *place) []*place {
	if p.verdict.Class == trend.Leak && p.verdict.Confidence >= verdict.Suspect {
		return append(list, p)
	}
	return list
}

// setsUp reports whether a stack makes weights or optimizer state. What a program repeats
// while it sets up, weight by weight, is not a step.
func (g *growth) setsUp(id stack.ID) bool {
	for _, f := range g.book.Stacks.Stack(id) {
		switch f.Function {
		case "_apply", "load_state_dict", "_load_from_state_dict", "from_pretrained", "load_weights", "load_model", "reset_parameters",
			"_init_group", "_get_state", "init_state":
			return true
		case "__init__":
			if strings.Contains(f.File, "nn") && stack.OriginOf(f) == stack.Torch {
				return true
			}
		}
	}
	return false
}

func (p *place) last() int    { return p.pop.Checkpoints() - 1 }
func (p *place) bytes() int64 { return p.pop.Bytes[p.last()] }
func (p *place) count() int64 { return p.pop.Count[p.last()] }

// findings turns what leaks into findings: one for all places of a kept graph, and one
// for every other place.
func (g *growth) findings() (out []finding.Finding) {
	rest := g.places
	for len(rest) > 0 {
		var together []*place
		together, rest = g.lockstep(rest)
		if graph := g.graph(together); graph != nil {
			out = append(out, *graph)
			continue
		}
		for _, p := range together {
			f := g.leak([]*place{p})
			g.toGraphLeak(p, &f)
			out = append(out, f)
		}
	}
	return slices.Concat(out, g.cycles(), g.reportGrown(), g.undecided())
}

// undecided is the finding of what grows inside one history that cannot distinguish work
// in progress from a leak.
func (g *growth) undecided() []finding.Finding {
	if len(g.open) == 0 {
		return nil
	}
	f := g.leak(g.open)
	f.Kind, f.Severity = finding.Growth, finding.Warning
	f.Title = fmt.Sprintf("%s in %s at %s grow in this history: ", units.Bytes(*f.Bytes), units.Plural(*f.Count, "allocation"), units.Plural(int64(len(g.open)), "place"))
	f.Remedies = []finding.Remedy{finding.CodeChange("dump after each of three steps or requests, and diagnose the files together")}
	f.Brief.Title = fmt.Sprintf("may be a leak: %s in %s", units.Bytes(*f.Bytes), units.Plural(*f.Count, "allocation"))
	f.Confidence = min(f.Confidence, undecidable)
	f.Basis += "; but work in progress looks the same"
	if held := g.purposesOf(g.open); passes(held) >= explained {
		f.Severity = finding.Info
		f.Title += madeOf(held) + "; one history cannot show whether it is freed again"
	} else {
		f.Title += "set-up, work in progress, or a leak; one history cannot show which"
	}
	return []finding.Finding{f}
}

// What grows in a history that cannot show what it is, is a leak in one of two cases at
// most, and it is not a reason to warn if its purposes explain nearly all of it.
const (
	undecidable = 0.5
	explained   = 0.9
)

// purposesOf is what some places hold at the end, by purpose.
func (g *growth) purposesOf(places []*place) []use {
	of := map[stack.Site]bool{}
	for _, p := range places {
		of[p.site] = true
	}
	var m purpose.Moment
	for _, x := range g.process.Newest().Device(g.device).Purpose.End.Places {
		if of[x.Site] {
			m.Places = append(m.Places, x)
		}
	}
	return holdingsOf(&m, nil, true).uses()
}

// passes is the share of some memory that has a purpose other than outliving its step.
func passes(held []use) float64 {
	var n int64
	for _, u := range held {
		if !u.unknown() && u.name != purpose.Other.Words() {
			n += u.bytes
		}
	}
	return share(n, bytesOf(held))
}

// reportGrown finds places that hold clearly more than before but do not leak, and states why
// they do not. Inside one history the first checkpoint comes before the warm-up, so
// everything has grown and nothing is reported.
func (g *growth) reportGrown() (out []finding.Finding) {
	if g.judged.Inside {
		return nil
	}
	const maxShown = 3
	minBytes := max(1<<20, g.process.Newest().Device(g.device).Requested/20)
	for _, p := range g.others {
		first, last := p.pop.Bytes[0], p.bytes()
		if last-first < minBytes || last < first+first/5 || len(out) == maxShown {
			continue
		}
		f := g.leak([]*place{p})
		f.Kind, f.Severity, f.Remedies = finding.Growth, finding.Info, nil
		f.Confidence, f.Basis = p.notLeakConfidence(), "the share of the allocations made there that were seen to be freed; 1 if no more are added"
		f.Title = fmt.Sprintf("%s grew from %s to %s, which is not judged a leak: %s", short(p.site), units.Bytes(first), units.Bytes(last), p.explain())
		f.Stack = nil
		f.Brief = finding.Brief{Title: fmt.Sprintf("%s → %s, no leak: %s", units.Bytes(first), units.Bytes(last), p.explain())}
		out = append(out, f)
	}
	return out
}

// notLeakConfidence is the confidence that a place that grew does not leak.
func (p *place) notLeakConfidence() float64 {
	if p.verdict.Class != trend.Turnover {
		return 1
	}
	var lost int64
	for j := range p.pop.Count {
		lost += p.pop.Lost(j)
	}
	lost = max(lost, p.verdict.Lost)
	return float64(lost) / float64(max(1, lost+p.count()))
}

// explain states what kind of growth a place shows if it is not judged to be a leak.
func (p *place) explain() string {
	switch p.verdict.Class {
	case trend.Once:
		return "it was allocated once and stayed, as warm-up and deliberate copies do"
	case trend.Levelled:
		return "it has stopped growing"
	case trend.Turnover:
		if n := p.last(); p.pop.Count[0] > 0 && p.pop.Count[0] == p.pop.Count[n] {
			return "it is reallocated each time, and larger: more work, or something that is concatenated step by step"
		}
		if slices.IsSorted(p.pop.Count) && p.pop.Count[0] < p.count() {
			return "most allocations there are freed again, yet more is held each time; check whether that continues"
		}
		return "allocations there are freed again"
	}
	return "there is too little of it to call it one"
}

// lockstep separates the first of the places and those that grow with it, which add the
// same multiple of its additions at each checkpoint, from the rest.
func (g *growth) lockstep(places []*place) (together, rest []*place) {
	first := places[0]
	for _, p := range places {
		if p.site != (stack.Site{}) && sameSteps(first.pop, p.pop) {
			together = append(together, p)
		} else {
			rest = append(rest, p)
		}
	}
	if len(together) == 0 {
		return places[:1], places[1:]
	}
	return together, rest
}

// sameSteps reports whether b's growth is the same multiple of a's between all checkpoints,
// apart from one thing at either end of an interval.
func sameSteps(a, b *trend.Population) bool {
	n := a.Checkpoints() - 1
	da, db := a.Count[n]-a.Count[0], b.Count[n]-b.Count[0]
	if da <= 0 || db <= 0 {
		return false
	}
	ratio := float64(db) / float64(da)
	if ratio > 8 || ratio < 1.0/8 {
		return false
	}
	for j := 1; j <= n; j++ {
		x, y := float64(a.Count[j]-a.Count[j-1])*ratio, float64(b.Count[j]-b.Count[j-1])
		if diff := x - y; diff > 1+ratio || diff < -1-ratio {
			return false
		}
	}
	return true
}
