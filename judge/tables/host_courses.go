package tables

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/trend"
	"strandline/units"
)

// minCourseTexts is the least number of texts that are judged as a table of levels is.
const minCourseTexts = 13

// momentsOf are the times of the texts of a series; without any, they are counted in
// unit.
func momentsOf(files []*profiles.File) (times []float64, unit string) {
	n := 0
	for _, f := range files {
		if f.Host == nil {
			continue
		}
		n += len(f.Earlier) + 1
		times = append(times, f.Moments...)
	}
	if len(times) == n {
		return times, ""
	}
	times = make([]float64, n)
	for i := range times {
		times[i] = float64(i)
	}
	return times, "text"
}

// A hostCourse is how one kind of memory goes on over a series of texts.
type hostCourse struct {
	class
	trend.Course
	levels []float64
}

// courseOf judges a kind of memory; ok is false if not every text states it.
func (c class) courseOf(hosts []*profiles.Host, times []float64, unit string) (out hostCourse, ok bool) {
	out = hostCourse{class: c, levels: make([]float64, len(hosts))}
	for i, h := range hosts {
		n := c.of(h)
		if n == nil {
			return out, false
		}
		out.levels[i] = float64(*n)
	}
	out.Course = trend.JudgeLevels(times, out.levels)
	out.Unit = unit
	return out, true
}

// notable reports whether a level changes enough to be mentioned.
func (c *hostCourse) notable() bool {
	low, high := slices.Min(c.levels), slices.Max(c.levels)
	return high-low >= minGrowth && high-low >= minShare*low
}

// hostCourses judges each kind of memory in a long series of texts, as a column of a table
// is judged. limit is the most that a process may hold, in bytes; nil if that is not known.
func hostCourses(files []*profiles.File, hosts []*profiles.Host, times []float64, unit string, limit *int64) (out []finding.Finding) {
	first, last := hosts[0], hosts[len(hosts)-1]
	total := class{kind: finding.Unexplained, what: "resident memory", of: residentOf, severity: finding.Problem, remedy: saveSmaps}
	if residentOf(last) == nil {
		total.what, total.of, total.remedy = "memory in use on the machine", inUse, findProcess
		limit = cmp.Or(limit, last.Total)
	}
	whole, known := total.courseOf(hosts, times, unit)
	rest := growth(total.of(first), total.of(last))
	tables := rest / 64 // page tables come with the memory
	classes := classesOf(files, hosts)
	if of := parted(first, last); of(last) != nil {
		classes = append(classes, copyOnWrite(of))
	}
	for _, c := range classes {
		course, ok := c.courseOf(hosts, times, unit)
		switch {
		case !ok || !course.notable():
			continue
		case course.Leaks() && c.kind == finding.KernelMemory && growth(c.of(first), c.of(last)) <= tables:
			continue
		case course.Leaks():
			rest -= growth(c.of(first), c.of(last))
		case c.severity == finding.Info: // pages of files come and go
			continue
		}
		f := course.finding(limit, &whole)
		if course.Leaks() {
			f.Detail = append(f.Detail, unsaid(c.kind, first, last, growth(c.of(first), c.of(last)))...)
		}
		out = append(out, f)
	}
	explained := 2*rest < growth(total.of(first), total.of(last))
	if known && (len(out) == 0 || whole.Leaks() && !explained) {
		out = append(out, whole.finding(limit, &whole))
	}
	sorts.StableBy(out, func(a, b finding.Finding) int { return cmp.Compare(orNone(b.Bytes), orNone(a.Bytes)) })
	return out
}

func orNone(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// residentOf is the resident memory of a process or cgroup.
func residentOf(h *profiles.Host) *int64 {
	if h.RSS != nil || h.Total != nil {
		return h.RSS
	}
	return h.Anonymous
}

// finding states the course of one kind of memory. The limit is that of all of it
// together, so when it is reached follows from the whole, where that grows.
func (c *hostCourse) finding(limit *int64, whole *hostCourse) finding.Finding {
	e := c.Evidence(c.what, nil)
	f := finding.Finding{
		Kind: finding.Usage, Severity: finding.Info, Confidence: e.Confidence, Bytes: e.LevelBytes, Evidence: e, Trend: trend.Thinned(c.levels),
		Title: strings.TrimSuffix(c.what, ",") + ": " + c.Words(), Basis: c.Basis(),
	}
	if limit != nil {
		judged := whole
		if !whole.Leaks() {
			judged = c
		}
		left := judged.Evidence(c.what, limit)
		e.LimitBytes, e.SecondsToLimit, e.StepsToLimit = left.LimitBytes, left.SecondsToLimit, left.StepsToLimit
		if text := judged.Reaches(left, "the limit of "+units.Bytes(*limit)); text != "" && (c.Leaks() || judged == c) {
			f.Detail = append(f.Detail, text)
			f.Severity = finding.Warning // if it is above the limit
		}
	}
	if !c.Leaks() {
		return f
	}
	f.Kind, f.Severity = c.kind, c.severity
	grown := int64(math.Round(c.levels[len(c.levels)-1] - c.levels[0]))
	f.Bytes = &grown
	if c.remedy != "" {
		f.Remedies = []finding.Remedy{finding.CodeChange(c.remedy)}
	} else {
		f.Detail = append(f.Detail, "the kernel reclaims file pages when memory is short")
	}
	return f
}

// HostBasis states what a judgment of texts rests on: "60 texts of free over 59 min".
func HostBasis(s Series) string {
	times, unit := momentsOf(s.Files)
	text := units.Plural(int64(len(times)), "text")
	if f := s.Files[0].Format; f != "" {
		text += " of " + f
	}
	if unit != "" || len(times) < 2 {
		return text
	}
	return fmt.Sprintf("%s over %s", text, units.Seconds(slices.Max(times)-times[0]))
}
