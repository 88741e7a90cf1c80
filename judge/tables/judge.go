// Package tables judges profiler files and texts from /proc, either one or a series for
// one process: what stays and grows, by call site if the file has stacks, otherwise by
// kind of memory. It also judges tables of levels over time (levels.go). [Judge] is the
// entry point.
package tables

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/trend"
	"strandline/units"
)

// problemConfidence is the confidence from which growth is a problem.
const problemConfidence = 0.5

// minMoments is the least number of moments that growth is judged by.
const minMoments = 3

// A Series is the files of one process, oldest first.
type Series struct {
	Process string // "" if there is one
	Files   []*profiles.File
	// By is what the order rests on, such as "the numbers in their names".
	By string
	// Limit is the highest that the levels of a table can be, in bytes; nil if the
	// caller does not know.
	Limit *int64
}

// An Answer is what was found in some series.
type Answer struct {
	Verdict  finding.Verdict
	Findings []finding.Finding // the most important first
}

// Judge judges each series separately.
func Judge(all []Series) Answer {
	a := Answer{Verdict: finding.Unknown}
	for _, s := range all {
		found, judged := judge(s)
		for i := range found {
			if found[i].Process == "" {
				found[i].Process = s.Process
			}
		}
		if judged {
			a.Verdict = finding.OK
		}
		a.Findings = append(a.Findings, found...)
	}
	sorts.StableBy(a.Findings, func(x, y finding.Finding) int {
		return cmp.Or(cmp.Compare(y.Severity.Rank(), x.Severity.Rank()), cmp.Compare(grown(&y), grown(&x)))
	})
	if len(a.Findings) > 0 {
		switch f := &a.Findings[0]; f.Severity {
		case finding.Problem:
			a.Verdict = finding.Leaking
			if f.Kind == finding.OutOfMemory {
				a.Verdict = finding.RanOut
			}
		case finding.Warning:
			if f.Kind == finding.Leak {
				a.Verdict = finding.Unknown
			}
		}
	}
	return a
}

// grown is by how many bytes the level of a finding grew, 0 if it asks for nothing.
func grown(f *finding.Finding) int64 {
	if f.Severity == finding.Info {
		return 0
	}
	n := f.Grew()
	if e, ok := f.Evidence.(*finding.LevelsEvidence); ok && reservedName.MatchString(e.Column) {
		return n / 2 // it contains allocated memory, which is to stand first
	}
	return n
}

// judge returns the findings on one series, and whether there was enough of it to judge
// growth.
func judge(s Series) (out []finding.Finding, judged bool) {
	newest := s.Files[len(s.Files)-1]
	if len(newest.Columns) > 0 {
		out, judged = courses(newest, s.Limit)
		if f, ok := usage(newest); ok && newest.Host != nil {
			f.Brief.Title = shares(newest.Host)
			readings(&f, s)
			out = append([]finding.Finding{f}, out...)
		}
		return out, judged
	}
	if f, ok := byLine(newest); ok {
		return []finding.Finding{f}, false
	}
	out = append(places(s), steps(newest)...)
	hosts := hostsOf(s.Files)
	if len(hosts) >= minCourseTexts {
		times, unit := momentsOf(s.Files)
		out = append(out, addressed(hostCourses(s.Files, hosts, times, unit, s.Limit), hosts)...)
	} else {
		out = append(out, addressed(judgeGrowth(s.Files, hosts), hosts)...)
	}
	if f, ok := failed(newest); ok {
		out = append(out, f)
	}
	if f, ok := usage(newest); ok {
		readings(&f, s)
		out = append(out, f)
	}
	return out, len(s.Files) >= minMoments && len(newest.Uses) > 0 || len(newest.Checkpoints) > minMoments && len(newest.Spans) > 0 || len(hosts) >= minMoments
}

// usage states what a file holds at its end.
func usage(f *profiles.File) (out finding.Finding, ok bool) {
	var parts []string
	var sum int64
	for _, l := range f.Levels {
		text, bytes := level(l)
		if text != "" {
			parts, sum = append(parts, text), units.Sum(sum, bytes)
		}
	}
	if f.Host != nil {
		sum = resident(f.Host)
		parts = hostParts(f.Host)
		if text := shares(f.Host); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return out, false
	}
	out = finding.Finding{
		Kind: finding.Usage, Severity: finding.Info, Confidence: 1, Bytes: &sum,
		Title:  filepath.Base(f.Name) + ": " + list(parts),
		Detail: f.Notes,
	}
	if f.Host != nil {
		out.Brief.Title = list(parts)
	}
	if place, bytes := heaviest(f); bytes > 0 {
		out.Detail = append([]string{fmt.Sprintf("most is allocated at %s: %s", at(place), units.Bytes(bytes))}, f.Notes...)
		out.Site = (*finding.Site)(&place)
	}
	return out, true
}

// level states in words what a device held, and how much is alive.
func level(l profiles.Level) (text string, bytes int64) {
	what := l.Kind + " memory"
	if l.Device != "" {
		what += " on " + l.Device
	}
	switch {
	case l.Live != nil:
		bytes, text = *l.Live, fmt.Sprintf("%s of %s", units.Bytes(*l.Live), what)
		if l.Count != nil && *l.Count > 0 {
			text += " in " + units.Plural(*l.Count, "piece")
		}
	case l.Peak == nil:
		return "", 0
	default:
		text = what
	}
	if l.Peak != nil {
		text += fmt.Sprintf(" (peak %s)", units.Bytes(*l.Peak))
	}
	return text, bytes
}

func list(parts []string) string {
	const maxListed = 4
	if n := len(parts) - maxListed; n > 0 {
		return strings.Join(parts[:maxListed], ", ") + fmt.Sprintf(" and %s more", units.Count(int64(n)))
	}
	return strings.Join(parts, ", ")
}

// at is a place in the usual notation.
func at(s finding.Site) string {
	if s.File == "" && s.Function != "" { // an operator
		return s.Function
	}
	if s.File == "" {
		return "a place that is not recorded"
	}
	return fmt.Sprintf("%s:%d %s", filepath.Base(s.File), s.Line, s.Function)
}

// index is the device number in a label such as cuda:1, nil for other labels.
func index(label string) *int {
	_, digits, ok := strings.Cut(label, ":")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return nil
	}
	return &n
}

// evidence are the numbers that a judgment of a population rests on.
func evidence(p *trend.Population, v trend.Verdict) *finding.LeakEvidence {
	return &finding.LeakEvidence{
		Rounds: v.Rounds, Intervals: v.Intervals, Outlived: v.Outlived, Lost: v.Lost,
		BytesAtCheckpoints: p.Bytes, CountAtCheckpoints: p.Count,
	}
}
