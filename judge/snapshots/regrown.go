package snapshots

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"strandline/finding"
	"strandline/stack"
	"strandline/torch/purpose"
	"strandline/torch/timeline"
	"strandline/units"
)

// The assumptions about a tensor that is allocated again and again, larger each time.
const (
	// A tensor is reported if it grew by regrownLeast bytes and to regrownTwice its
	// size.
	minRegrown   = 1 << 20
	regrownTwice = 2
	// regrownSteps is how many copies there must be, and in how many steps the tensor
	// must have grown for it to be a problem.
	regrownSteps = 5
	// appended is the share of its copies that must be larger by the size of another
	// tensor for these to have been joined with it. A buffer that is replaced when it
	// becomes too small for the work looks the same, but then the work grows too.
	appended = 0.75
	// workShare is how much the work may have grown relative to the tensor, each in
	// multiples of its former size.
	workShare = 0.25
	// slower is the least ratio of the growth in the second half of a history to that
	// in the first half at which the growth goes on.
	slower = 0.5
)

// regrownAt is what one place allocates again and again.
type regrownAt struct {
	site  stack.Site
	live  []*timeline.Regrown // most bytes first
	ended int                 // tensors that were freed
	first int64               // bytes of the live ones when first seen, and now
	last  int64
}

// regrown finds tensors that are concatenated again and again.
func regrown(s *subject) (out []finding.Finding) {
	var places []*regrownAt
	at := map[stack.Site]*regrownAt{}
	for i := range s.newest.Regrown {
		r := &s.newest.Regrown[i]
		site := s.book.Stacks.Site(r.Stack)
		p := at[site]
		if p == nil {
			p = &regrownAt{site: site}
			at[site] = p
			places = append(places, p)
		}
		p.add(r)
	}
	for _, p := range places {
		if len(p.live) > 0 && p.last-p.first >= minRegrown && p.last >= regrownTwice*p.first && (p.copies() >= regrownSteps && p.joins() || p.appends() && rises(p.heldAt(s))) {
			out = append(out, p.finding(s))
		}
	}
	return out
}

// copies counts the copies of the largest tensor.
func (p *regrownAt) copies() int { return len(p.live[0].Sizes) - 1 }

// withoutRegrown is the findings without the growth of tensors that are already reported as
// allocated again and again.
func withoutRegrown(findings, anew []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f finding.Finding) bool {
		return f.Kind == finding.Growth && f.Severity == finding.Info && f.Site != nil &&
			slices.ContainsFunc(anew, func(g finding.Finding) bool { return g.Site != nil && *g.Site == *f.Site })
	})
}

func (p *regrownAt) add(r *timeline.Regrown) {
	if !r.Live {
		p.ended++
		return
	}
	p.live = append(p.live, r)
	p.first += r.Sizes[0]
	p.last += r.Sizes[len(r.Sizes)-1]
	sort.SliceStable(p.live, func(i, j int) bool { return slices.Max(p.live[i].Sizes) > slices.Max(p.live[j].Sizes) })
}

// joins reports whether the tensors grow by what is joined with them, rather than with
// the work.
func (p *regrownAt) joins() bool {
	r := p.live[0]
	n := len(r.Sizes) - 1
	third := max(1, n/3)
	grew := mean(r.Sizes[n-third+1:]) / mean(r.Sizes[:third])
	return p.appends() || r.Work > 0 && r.Work-1 <= workShare*(grew-1)
}

// appends reports whether most copies of the largest tensor are larger by the size of
// another tensor.
func (p *regrownAt) appends() bool {
	return float64(p.live[0].Joined) >= appended*float64(p.copies())
}

func mean(sizes []int64) (m float64) {
	for _, n := range sizes {
		m += float64(n) / float64(len(sizes))
	}
	return m
}

// goesOn reports whether a tensor still grows at the end of a history with the given
// number of events, and not clearly more slowly than at first.
func goesOn(r *timeline.Regrown, events int) bool {
	n := len(r.Events) - 1
	longest := 0
	for i := range n {
		longest = max(longest, r.Events[i+1]-r.Events[i])
	}
	middle := sort.SearchInts(r.Events, (r.Events[0]+events)/2)
	if middle > n {
		return false
	}
	first, second := r.Sizes[middle]-r.Sizes[0], r.Sizes[n]-r.Sizes[middle]
	return events-1-r.Events[n] <= longest && float64(second) >= slower*float64(first)
}

// stepsOf counts the steps of the history in which a tensor grew.
func stepsOf(r *timeline.Regrown, s *timeline.Steps) (n int) {
	last := -1
	for _, k := range r.Events {
		if i := sort.SearchInts(s.Ends, k); k > s.Begin && i < len(s.Ends) && i != last {
			n, last = n+1, i
		}
	}
	return n
}

// finding states what a place allocates again and again, and how serious that is.
func (p *regrownAt) finding(s *subject) finding.Finding {
	r, d, copies := p.live[0], s.newest, p.copies()
	e := &finding.RegrownEvidence{FirstBytes: p.first, FreeBytes: p.free(), Joined: r.Joined, Pieces: copies, Tensors: len(p.live), BytesAtCheckpoints: p.course()}
	f := finding.Finding{
		Kind: finding.Regrown, Severity: finding.Info, Confidence: min(1-math.Pow(0.5, float64(copies)), 0.99), Device: &s.device, Process: s.process.Name,
		Site: siteOf(p.site), Stack: framesOf(s.book.Stacks.Short(r.Stack)), Bytes: finding.Int(p.last), Count: finding.Int(int64(len(p.live))), Evidence: e,
		Basis: fmt.Sprintf("it was larger after each of %s copies, and its predecessor was freed at once", units.Count(int64(copies))),
	}
	rate := p.rate(s, &f, e)
	what := "a tensor is"
	if n := len(p.live); n > 1 {
		what = units.Plural(int64(n), "tensor") + " are"
	}
	f.Title = fmt.Sprintf("%s reallocated at %s and larger each time, from %s to %s%s", what, short(p.site), units.Bytes(p.first), units.Bytes(p.last), rate)
	held := p.heldAt(s)
	goes := goesOn(r, d.Events) || rises(held) && keepsRising(held)
	switch {
	case !goes:
		f.Title += "; it has stopped growing, or grows more slowly"
	case p.ended > 0:
		f.Title += "; others of this place were freed, like tensors of a request or an epoch"
	case p.underWay(s):
		f.Title += "; no step or request ended meanwhile, with which it may be freed"
		if !p.inForwardPass(s) {
			f.Severity, f.Confidence = finding.Warning, min(f.Confidence, undecidable)
		}
	default:
		f.Severity = finding.Problem
	}
	p.detail(s, &f)
	p.remedies(s, &f)
	return f
}

// course is what the tensors hold together at some of the copies of the largest one,
// including the last.
func (p *regrownAt) course() (bytes []int64) {
	const marks = 50
	events := p.live[0].Events
	n := min(len(events), marks)
	for i := range n {
		at := events[i*(len(events)-1)/(n-1)]
		var sum int64
		for _, r := range p.live {
			if k := sort.SearchInts(r.Events, at+1); k > 0 {
				sum += r.Sizes[k-1]
			}
		}
		bytes = append(bytes, sum)
	}
	return bytes
}

// underWay reports whether the tensors may belong to work that has not ended: that of one
// request, or of a program whose steps are unknown.
func (p *regrownAt) underWay(s *subject) bool {
	d, held := s.newest, p.heldAt(s)
	grows := len(held) >= minFiles
	for j := 1; j < len(held); j++ {
		grows = grows && held[j] > held[j-1]
	}
	switch {
	case len(held) >= minFiles && !grows:
		return true
	case d.Steps.Known() || d.Steps.From == timeline.Requests:
		return stepsOf(p.live[0], &d.Steps) < regrownSteps && (!rises(held) || p.inForwardPass(s))
	}
	return !grows || p.inForwardPass(s)
}

// inForwardPass reports whether the tensors are made in a forward pass, as the keys and values
// of a request are.
func (p *regrownAt) inForwardPass(s *subject) bool {
	return stack.InForward(s.book.Stacks.Stack(p.live[0].Stack)) || p.purpose(s) == purpose.KVCache
}

// heldAt is what the place holds in each file.
func (p *regrownAt) heldAt(s *subject) []int64 {
	var out []int64
	for _, f := range s.process.Files {
		var bytes int64
		for _, l := range f.Device(s.device).Live {
			if s.book.Stacks.Site(l.Stack) == p.site {
				bytes += l.Bytes
			}
		}
		out = append(out, bytes)
	}
	return out
}

// purpose is the purpose for which the place holds the most bytes at the end.
func (p *regrownAt) purpose(s *subject) (most purpose.Purpose) {
	var bytes int64
	for _, x := range s.newest.Purpose.End.Places {
		if x.Site == p.site && x.Bytes > bytes {
			most, bytes = x.Purpose, x.Bytes
		}
	}
	return most
}

// free is the free memory in the segments that held the copies.
func (p *regrownAt) free() (most int64) {
	for _, r := range p.live {
		most = max(most, r.Free)
	}
	return most
}

// rate sets the growth from file to file or per step and puts it into words.
func (p *regrownAt) rate(s *subject, f *finding.Finding, e *finding.RegrownEvidence) string {
	if n := len(s.process.Files); n > 1 {
		e.BytesAtCheckpoints, e.Files = p.heldAt(s), names(s.process)
		for _, file := range s.process.Files {
			e.ReservedAt = append(e.ReservedAt, file.Device(s.device).Reserved)
		}
		f.BytesPerStep = finding.Int((e.BytesAtCheckpoints[n-1] - e.BytesAtCheckpoints[0]) / int64(n-1))
		f.Trend = e.BytesAtCheckpoints
		return fmt.Sprintf(", %s from file to file", units.SignedBytes(*f.BytesPerStep))
	}
	f.Trend = e.BytesAtCheckpoints
	if stepsOf(p.live[0], &s.newest.Steps) < regrownSteps {
		return fmt.Sprintf(", %s a copy", units.SignedBytes((p.last-p.first)/int64(e.Pieces)))
	}
	steps := len(s.newest.Steps.Ends)
	f.BytesPerStep = finding.Int((p.last - p.first) / int64(steps))
	return fmt.Sprintf(", %s a step (%d steps, by %s)", units.SignedBytes(*f.BytesPerStep), steps, s.newest.Steps.From)
}

// detail states what the copies cost.
func (p *regrownAt) detail(s *subject, f *finding.Finding) {
	r, d := p.live[0], s.newest
	n, which := p.copies(), "it"
	if len(p.live) > 1 {
		which = "the largest"
	}
	f.Detail = append(f.Detail, fmt.Sprintf("%s was copied %s; while it is, both the old and the new are held (%s at the last)", which, units.Times(int64(n)), units.Bytes(r.Sizes[n]+r.Sizes[n-1])))
	if free := p.free(); free > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("%s of %s reserved is free where former copies were, and the next one is larger: it may not fit",
			units.Bytes(free), units.Bytes(d.Reserved)))
	}
	if first := s.process.Files[0].Device(s.device).Reserved; len(s.process.Files) > 1 && d.Reserved > first {
		f.Detail = append(f.Detail, fmt.Sprintf("reserved memory grew from %s to %s in these files", units.Bytes(first), units.Bytes(d.Reserved)))
	}
}

func (p *regrownAt) remedies(s *subject, f *finding.Finding) {
	f.Remedies = joinOnce(p.site)
	if !s.newest.Expandable {
		f.Remedies = append(f.Remedies, expandable(s.newest.Conf, s.newest.Trial)...)
	}
}

// joinOnce advises against copying a tensor for each part that is appended to it.
func joinOnce(site stack.Site) []finding.Remedy {
	return []finding.Remedy{
		finding.CodeChange(fmt.Sprintf("allocate the final size once before the loop and write into slices of it; %s:%d then concatenates nothing", plain(site.File), site.Line)),
		finding.CodeChange("collect the parts in a list, on the host if possible (x.cpu()), and call torch.cat once at the end. Limit the list if nothing ends it"),
	}
}
