package texts

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/judge/verdict"
	"strandline/logs"
	"strandline/logs/table"
	"strandline/trend"
	"strandline/units"
)

// Tables of memory_summary() hold totals. A total cannot distinguish memory that stays
// from memory that is allocated again, so it takes more tables than snapshots before growth is
// a problem; two are a before and an after, not a trend.
const (
	tablesForTrend   = 3
	tablesForProblem = 5
	// Memory clearly grows between two tables if it rises by a tenth, and by more than
	// the workspaces that libraries allocate at first use.
	clearGrowth = 1.1
	clearBytes  = 64 << 20
	// notable is the share of a total from which a part of it is reported.
	notable = 0.05
	// expandable is the setting that joins free pieces.
	expandable = "expandable_segments:True"
	// A rate per hour is stated if the tables span at least this long.
	shortestSpan = time.Minute
)

// tableSeries is the tables of one device while they are judged.
type tableSeries struct {
	logs.Tables
	process string
	verdict trend.Verdict // of allocated memory
	allocs  []int64       // bytes, of the tables that state it
	calm    bool          // growth is clearly more than what goes up and down
	whole   *trend.Course // of allocated memory, nil if the tables are too few
	most    *int64        // bytes that the device has, or may hold; nil if not known
}

func newSeries(p *logs.Process, t logs.Tables, limit *int64) *tableSeries {
	s := &tableSeries{Tables: t, process: strings.TrimSpace(p.Name + " " + t.Tag), most: limit}
	// A table that is cut off at either end, as by a crash, is not compared if other
	// tables are whole.
	whole := func(m logs.Table) bool { return m.Allocated.Current != nil && m.Reserved.Current != nil }
	if first := slices.IndexFunc(s.Kept, whole); first >= 0 {
		end := len(s.Kept)
		for !whole(s.Kept[end-1]) {
			end--
		}
		s.Count -= len(s.Kept) - (end - first)
		s.Kept = s.Kept[first:end]
	}
	for _, m := range s.Kept {
		if n := m.Allocated.Current; n != nil {
			s.allocs = append(s.allocs, *n)
		}
	}
	s.judge()
	s.whole = s.course(allocated)
	return s
}

// judge finds the trend of allocated memory. The part of a total that no later table
// falls below is all that can be memory that stays.
func (s *tableSeries) judge() {
	n := len(s.allocs)
	if s.verdict = (trend.Verdict{Class: trend.TooShort}); n < tablesForTrend {
		return
	}
	floor := append([]int64(nil), s.allocs...)
	var wave int64 // what goes up and down
	for j := n - 2; j >= 0; j-- {
		floor[j] = min(floor[j], floor[j+1])
		wave = max(wave, s.allocs[j]-floor[j])
	}
	step := int64(math.MaxInt64) // the smallest
	for j := 1; j < n; j++ {
		if d := floor[j] - floor[j-1]; d > 0 {
			step = min(step, d)
		}
	}
	// What lies between the first third and the last is growth, if it is more than
	// twice what went down in between.
	third := (n + 1) / 3
	s.calm = slices.Min(s.allocs[n-third:])-slices.Max(s.allocs[:third]) > 2*wave
	p := trend.NewPopulation(n)
	p.Add(trend.Span{First: 0, Last: n - 1, Bytes: floor[0]})
	const maxThings = 100 // things that an interval adds
	for j := 1; j < n; j++ {
		if d := floor[j] - floor[j-1]; d > 0 {
			for range min(d/step, maxThings) {
				p.Add(trend.Span{First: j, Last: n - 1, Bytes: d / min(d/step, maxThings)})
			}
		}
	}
	s.verdict = trend.Judge(p, trend.Past{})
	if n < tablesForProblem || !s.calm || !s.moreAllocations() {
		s.verdict.Confidence = min(s.verdict.Confidence, verdict.Sure-0.05)
	}
}

// moreAllocations reports whether the number of allocations grew; if it is not stated, it may have
// grown.
func (s *tableSeries) moreAllocations() bool {
	a, b := s.First().Allocations.Current, s.Last().Allocations.Current
	return a == nil || b == nil || *b > *a
}

// goesOn reports whether many tables show that it keeps growing, below what goes up and
// down.
func (s *tableSeries) goesOn() bool {
	const minTables, clear = 30, 0.9 // tables, and probability
	return s.whole != nil && s.whole.Leaks() && len(s.allocs) >= minTables && s.whole.Growing >= clear && s.moreAllocations()
}

// leaks reports whether the growth may be a leak. What is added less and less is not.
func (s *tableSeries) leaks() bool {
	if s.goesOn() {
		return true
	}
	if s.whole != nil && s.whole.Shape == trend.Plateau {
		return false
	}
	return s.verdict.Class == trend.Leak && s.calm && s.verdict.Confidence >= verdict.Suspect
}

// growthOf is the growth of a row from the first table to the last.
func (s *tableSeries) growthOf(row func(*table.Summary) *int64) *int64 {
	a, b := row(s.First().Summary), row(s.Last().Summary)
	if a == nil || b == nil {
		return nil
	}
	return finding.Int(*b - *a)
}

func allocated(s *table.Summary) *int64 { return s.Allocated.Current }
func reserved(s *table.Summary) *int64  { return s.Reserved.Current }

// cached is the reserved memory that is not active.
func cached(s *table.Summary) *int64 { return subtract(s.Reserved.Current, s.Allocated.Current) }

// subtract is a - b, nil if either is unknown. Figures that are cut to whole units can appear
// to be a little below zero.
func subtract(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return finding.Int(max(*a-*b, 0))
}

// releasable is what empty_cache() would return, nil if the table does not show it:
// expandable segments are counted in none of its rows.
func releasable(s *table.Summary) *int64 {
	if expandableOnly(s) {
		return nil
	}
	return subtract(subtract(s.Reserved.Current, s.Active.Current), s.NonReleasable.Current)
}

// expandableOnly reports whether all segments are expandable: there is reserved memory
// but there are no segments.
func expandableOnly(s *table.Summary) bool {
	return s.Segments.Current != nil && *s.Segments.Current == 0 && s.Reserved.Current != nil && *s.Reserved.Current > 0
}

// finding begins a finding about these tables, and its evidence.
func (s *tableSeries) finding(kind finding.Kind, title string) (finding.Finding, *finding.TableEvidence) {
	last := s.Last()
	e := &finding.TableEvidence{File: last.File, Line: last.Line, Tables: s.Count}
	if len(s.Kept) > 1 {
		first := s.First()
		e.FirstFile, e.FirstLine = first.File, first.Line
	}
	if span, ok := s.Span(); ok {
		e.Seconds = finding.Int(int64(span.Seconds()))
	}
	return finding.Finding{
		Kind: kind, Severity: finding.Info, Confidence: 1, Device: s.Device, Process: s.process, Title: title,
		Basis: "PyTorch's own figures, cut to whole units as it prints them", Evidence: e,
	}, e
}

// usage states what the newest table states.
func (s *tableSeries) usage() finding.Finding {
	m := s.Last().Summary
	f, e := s.finding(finding.Usage, summarize(m))
	e.AllocatedBytes, e.ActiveBytes, e.RequestedBytes = m.Allocated.Current, m.Active.Current, m.Requested.Current
	e.ReservedBytes, e.NonReleasableBytes, e.ReleasableBytes = m.Reserved.Current, m.NonReleasable.Current, releasable(m)
	e.PeakAllocatedBytes, e.PeakActiveBytes, e.PeakReservedBytes = m.Allocated.Peak, m.Active.Peak, m.Reserved.Peak
	e.TotalAllocatedBytes, e.TotalFreedBytes = m.Allocated.Gained, m.Allocated.Freed
	e.Allocations, e.Retries, e.OOMs = m.Allocations.Current, m.Retries, m.OOMs
	s.addUsage(&f, m)
	f.Brief = finding.Brief{
		Fact: fmt.Sprintf("%s of memory_summary() (GPU memory): %s", units.Plural(int64(len(s.Kept)), "table"), f.Title),
		Why:  fmt.Sprintf("%s; 3 are needed", units.Plural(int64(len(s.Kept)), "table")),
	}
	return f
}

// summarize states what a table states in the two rows that matter most.
func summarize(m *table.Summary) string {
	peak := func(n *int64) string {
		if n == nil {
			return ""
		}
		return ", at the peak " + units.Bytes(*n)
	}
	allocated, reserved := m.Allocated, m.Reserved
	switch {
	case allocated.Current == nil && reserved.Current == nil:
		return "the table shows neither allocated nor reserved memory: these rows are missing"
	case reserved.Current == nil:
		return fmt.Sprintf("%s is allocated%s; the row of reserved memory is missing", units.Bytes(*allocated.Current), peak(allocated.Peak))
	case allocated.Current == nil:
		return fmt.Sprintf("%s is reserved%s; the row of allocated memory is missing", units.Bytes(*reserved.Current), peak(reserved.Peak))
	}
	title := fmt.Sprintf("%s of %s reserved is allocated", units.Bytes(*allocated.Current), units.Bytes(*reserved.Current))
	if allocated.Peak != nil {
		title += "; at the peak " + units.Bytes(*allocated.Peak)
		if reserved.Peak != nil {
			title += fmt.Sprintf(", of reserved memory %s", units.Bytes(*reserved.Peak))
		}
	}
	return title
}

func (s *tableSeries) addUsage(f *finding.Finding, m *table.Summary) {
	say := func(format string, args ...any) { f.Detail = append(f.Detail, fmt.Sprintf(format, args...)) }
	switch out := releasable(m); {
	case expandableOnly(m) && m.Active.Current != nil:
		say("%s of the reserved memory is not active. The table does not show how much of its expandable segments empty_cache() would return",
			units.Bytes(*subtract(m.Reserved.Current, m.Active.Current)))
	case out != nil && float64(*out+*m.NonReleasable.Current) > notable*float64(*m.Reserved.Current):
		say("of the memory reserved but not active, empty_cache() would return %s; %s lies in pieces next to active blocks", units.Bytes(*out), units.Bytes(*m.NonReleasable.Current))
	}
	if n := subtract(m.Active.Current, m.Allocated.Current); n != nil && float64(*n) > notable*float64(*m.Active.Current) {
		say("%s is freed but waits for another stream", units.Bytes(*n))
	}
	if n := subtract(m.Active.Current, m.Requested.Current); n != nil && float64(*n) > notable*float64(*m.Active.Current) {
		say("%s of the active memory is rounding: %s was requested", units.Bytes(*n), units.Bytes(*m.Requested.Current))
	}
	if m.OOMs != nil && *m.OOMs > 0 {
		say("memory ran out %s since the process began", units.Times(*m.OOMs))
	}
	if m.Retries != nil && *m.Retries > 0 {
		say("the driver refused a segment %s since the process began, and the cache was returned to it", units.Times(*m.Retries))
	}
	if s.Earlier > 0 {
		say("%s before it are left out: a counter fell, so they are from another process, or it was reset", units.Plural(int64(s.Earlier), "table"))
	}
}

// growth judges allocated memory from table to table.
func (s *tableSeries) growth() []finding.Finding {
	grown := s.growthOf(allocated)
	if grown == nil || len(s.Kept) < 2 || *grown <= table.Grain(*allocated(s.Last().Summary)) && !s.leaks() {
		return nil
	}
	f, e := s.finding(finding.Growth, fmt.Sprintf("allocated memory grew by %s %s%s", units.Bytes(*grown), s.period(), s.rate(*grown)))
	f.Bytes, f.BytesPerStep, f.Trend = allocated(s.Last().Summary), finding.Int(*grown/int64(s.Count-1)), s.allocs
	s.addSplit(&f, e)
	f.Basis = "totals, cut to whole units as PyTorch prints them; " + s.verdict.Basis()
	switch {
	case len(s.allocs) < tablesForTrend:
		first := *allocated(s.First().Summary)
		if *grown < clearBytes || float64(first+*grown) < clearGrowth*float64(first) {
			f.Basis = "two tables do not make a trend"
			return []finding.Finding{f}
		}
		f.Confidence, f.Basis = verdict.Suspect, "two tables do not make a trend: growth from one moment to another can be warm-up, or a larger input"
		f.Severity = finding.Warning
	case s.leaks() && s.verdict.Confidence >= verdict.Sure:
		f.Confidence, f.Severity = s.verdict.Confidence, finding.Problem
		f.Title += ", and none of it is freed"
	case s.leaks() && s.goesOn():
		f.Confidence, f.Severity = s.whole.Evidence("", nil).Confidence, finding.Problem
		f.Basis = s.whole.Basis()
	case s.leaks():
		f.Confidence, f.Severity = s.verdict.Confidence, finding.Warning
	default:
		f.Confidence, f.Basis = 1, "the totals go up and down"
		switch s.verdict.Class {
		case trend.Once:
			f.Basis = "it grew in one interval only: warm-up, or something meant to stay"
		case trend.Levelled:
			f.Basis = "it grew, then stopped or slowed down"
		}
		s.addCourse(&f, e)
		return []finding.Finding{f}
	}
	f.Kind = finding.Leak
	s.addCourse(&f, e)
	if !s.moreAllocations() {
		f.Detail = append(f.Detail, "the number of allocations did not grow: they became larger, as with longer inputs, not more numerous")
	}
	f.Brief = finding.Brief{
		Title: fmt.Sprintf("allocated memory: %s a table, now %s", units.SignedBytes(*f.BytesPerStep), units.Bytes(*f.Bytes)), Why: f.Basis,
		Next: "strandline record -- python TRAIN.py",
	}
	f.Remedies = []finding.Remedy{finding.CodeChange("record snapshots, which show the holder of the memory, and diagnose them").Because("tables do not show it")}
	if f.Severity == finding.Problem { // otherwise the report ends with it
		f.Remedies[0].Setting = verdict.Recording
	}
	return []finding.Finding{f}
}

// addSplit states how the growth of reserved memory divides.
func (s *tableSeries) addSplit(f *finding.Finding, e *finding.TableEvidence) {
	grown, all, kept := s.growthOf(allocated), s.growthOf(reserved), s.growthOf(cached)
	e.AllocatedGrowthBytes, e.ReservedGrowthBytes, e.CachedGrowthBytes = grown, all, kept
	e.AllocationsGrowth = s.growthOf(func(s *table.Summary) *int64 { return s.Allocations.Current })
	if all == nil || kept == nil {
		return
	}
	f.Detail = append(f.Detail, fmt.Sprintf("reserved memory: %s, of which allocated: %s, cached: %s", units.SignedBytes(*all), units.SignedBytes(*grown), units.SignedBytes(*kept)))
	if n := e.AllocationsGrowth; n != nil {
		f.Detail = append(f.Detail, fmt.Sprintf("allocations: %s, to %s", units.SignedCount(*n), units.Count(*s.Last().Allocations.Current)))
	}
}

// cached judges reserved memory that grows while allocated memory does not.
func (s *tableSeries) cached() []finding.Finding {
	kept, all, m := s.growthOf(cached), s.growthOf(reserved), s.Last().Summary
	if kept == nil || len(s.Kept) < 2 || s.leaks() {
		return nil
	}
	free, total := *cached(m), *reserved(m)
	if 2**kept < *all {
		return nil
	}
	if *kept < shortage.MinOverhead || float64(free) < shortage.MinFreeShare*float64(total) {
		return s.cacheGrew(*kept)
	}
	f, e := s.finding(finding.Fragmentation, fmt.Sprintf("reserved memory grew by %s %s, allocated memory by %s: %s of %s reserved is a cache",
		units.Bytes(*all), s.period(), units.Bytes(max(*s.growthOf(allocated), 0)), units.Bytes(free), units.Bytes(total)))
	s.addSplit(&f, e)
	e.ReservedBytes, e.PeakReservedBytes, e.PeakActiveBytes = m.Reserved.Current, m.Reserved.Peak, m.Active.Peak
	e.ReleasableBytes, e.NonReleasableBytes = releasable(m), m.NonReleasable.Current
	over := subtract(m.Reserved.Current, m.Active.Peak)
	f.Remedies = []finding.Remedy{finding.CodeChange("call torch.cuda.empty_cache() if other processes need the memory").
		Because("it returns whole free segments, which this process would reuse")}
	if over == nil || float64(*over) < shortage.MinOverheadShare*float64(total) {
		f.Detail = append(f.Detail, "the peak of active memory explains it: it was needed at that moment, and is not waste")
		return []finding.Finding{f}
	}
	e.OverheadBytes = over
	f.Detail = append(f.Detail, fmt.Sprintf("%s more is reserved than the %s active at the peak: varying sizes leave pieces that serve no later request", units.Bytes(*over), units.Bytes(*m.Active.Peak)))
	f.Severity, f.Confidence = finding.Warning, verdict.Suspect
	f.Basis = "two tables do not make a trend"
	if n := s.rises(reserved); n >= tablesForTrend-1 {
		f.Confidence = 1 - math.Pow(0.5, float64(n))
		f.Basis = fmt.Sprintf("reserved memory rose from table to table in %d tables, and is far above the peak of active memory", n+1)
	}
	if !expandableOnly(m) {
		f.Remedies = append([]finding.Remedy{shortage.Expandable(expandable)}, f.Remedies...)
	}
	return []finding.Finding{f}
}

// cacheGrew states that reserved memory grew though allocated memory did not: PyTorch keeps
// what was freed. In more than two tables it has to grow to the end.
func (s *tableSeries) cacheGrew(kept int64) []finding.Finding {
	all := *s.growthOf(reserved)
	if kept < clearBytes || len(s.Kept) >= tablesForTrend && s.rises(reserved) == 0 {
		return nil
	}
	pool := ""
	if n := s.growthOf(func(m *table.Summary) *int64 { return m.LargePool.Current }); n != nil && 10**n >= 9*all {
		pool = " in the large pool"
	}
	f, e := s.finding(finding.Growth, fmt.Sprintf("reserved memory grew by %s%s %s, allocated memory by %s: PyTorch's cache, not tensors",
		units.Bytes(all), pool, s.period(), units.Bytes(max(*s.growthOf(allocated), 0))))
	s.addSplit(&f, e)
	f.Severity = finding.Warning
	f.Bytes, f.BytesPerStep = reserved(s.Last().Summary), finding.Int(all/int64(s.Count-1))
	f.Brief.Title = fmt.Sprintf("reserved memory: %s%s, allocated memory: %s: PyTorch's cache", units.SignedBytes(all), pool, units.SignedBytes(*s.growthOf(allocated)))
	for _, m := range s.Kept {
		if n := reserved(m.Summary); n != nil {
			f.Trend = append(f.Trend, *n)
		}
	}
	f.Remedies = []finding.Remedy{finding.CodeChange("call torch.cuda.empty_cache() if other processes need the memory").
		Because("later requests reuse the cache, so it grows less and less")}
	return []finding.Finding{f}
}

// rises is the number of intervals in which a row rose, 0 if it did not rise in every
// one.
func (s *tableSeries) rises(row func(*table.Summary) *int64) (n int) {
	for j := 1; j < len(s.Kept); j++ {
		a, b := row(s.Kept[j-1].Summary), row(s.Kept[j].Summary)
		if a == nil || b == nil || *b <= *a {
			return 0
		}
		n++
	}
	return n
}

// limit finds a process at the limit of the device: requests that failed between the
// tables, and segments that the driver refused.
func (s *tableSeries) limit() []finding.Finding {
	retries := s.growthOf(func(s *table.Summary) *int64 { return s.Retries })
	ooms := s.growthOf(func(s *table.Summary) *int64 { return s.OOMs })
	if len(s.Kept) < 2 || *orZero(retries) == 0 && *orZero(ooms) == 0 {
		return nil
	}
	var parts []string
	if n := *orZero(ooms); n > 0 {
		parts = append(parts, "memory ran out "+units.Times(n))
	}
	if n := *orZero(retries); n > 0 {
		parts = append(parts, fmt.Sprintf("the driver refused a segment %s", units.Times(n)))
	}
	f, e := s.finding(finding.Retries, fmt.Sprintf("%s %s: this process runs at the limit of the device", strings.Join(parts, ", and "), s.period()))
	f.Severity, f.Basis = finding.Warning, "PyTorch's own counters"
	e.Retries, e.OOMs = retries, ooms
	if n := *orZero(retries); n > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("%.2g refusals from table to table: each waits for the device, returns the cache and takes it again", float64(n)/float64(s.Count-1)))
	}
	f.Remedies = shortage.NeedLess()
	if !expandableOnly(s.Last().Summary) && s.unused() {
		f.Remedies = append(f.Remedies, shortage.Expandable(expandable))
	}
	return []finding.Finding{f}
}

// unused reports whether any table has reserved memory that is not active, either now or
// when both were highest: without it, there are no pieces to join.
func (s *tableSeries) unused() bool {
	much := func(reserved, active *int64) bool {
		n := subtract(reserved, active)
		return n != nil && float64(*n) > notable*float64(*reserved)
	}
	return slices.ContainsFunc(s.Kept, func(m logs.Table) bool {
		return much(m.Reserved.Current, m.Active.Current) || much(m.Reserved.Peak, m.Active.Peak)
	})
}

// period states what period the tables cover.
func (s *tableSeries) period() string {
	first, last := s.First(), s.Last()
	what := "between two tables"
	if s.Count > 2 {
		what = fmt.Sprintf("over %s tables", units.Count(int64(s.Count)))
	}
	switch {
	case first.Stamp != nil && last.Stamp != nil:
		return fmt.Sprintf("%s (%s to %s)", what, first.Stamp.Text, last.Stamp.Text)
	case first.File != last.File:
		return fmt.Sprintf("%s (%s to %s)", what, first.File, last.File)
	}
	return fmt.Sprintf("%s (line %s to line %s)", what, units.Count(first.Line), units.Count(last.Line))
}

// rate is the growth per table and, if the text has times, per hour.
func (s *tableSeries) rate(grown int64) (text string) {
	if s.Count > 2 {
		text = ": " + units.Bytes(grown/int64(s.Count-1)) + " a table"
	}
	if span, ok := s.Span(); ok && span >= shortestSpan {
		text += fmt.Sprintf(", %s an hour", units.Bytes(int64(float64(grown)/span.Hours())))
	}
	return text
}

func orZero(n *int64) *int64 {
	if n == nil {
		return new(int64)
	}
	return n
}
