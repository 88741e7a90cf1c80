// Package torch holds the detectors: each takes what the analyses computed and
// returns findings. It knows no face.
package torch

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"

	"strandline/finding"
	judgelogs "strandline/judge/logs"
	"strandline/stack"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/units"
)

// An Answer is everything that the detectors say of some files.
type Answer struct {
	Verdict  finding.Verdict
	Findings []finding.Finding
	// Processes are those that were judged: files that were given as one process and
	// are of several runs stand in several.
	Processes []*compare.Process
	// Judged says, by process and device, what the judgement of growth rests on.
	Judged []Judged
}

// Judged is the basis of a judgement of growth.
type Judged struct {
	Process string
	Device  int
	// Files or, where Inside is true, steps of the newest file's history. Where there
	// is not enough of either, it is the steps.
	Marks  int
	Inside bool
	// StepsFrom is what the steps are inferred from, in the plural; "" where none were
	// found or files were judged.
	StepsFrom string
	// Enough is false where nothing could be judged.
	Enough bool
	// Tables is how many processes and devices there are tables of memory_summary()
	// of, where it is these that were judged; Marks counts all of them.
	Tables int
	open   bool // what grows may be a leak
}

// Options are what a person knows beside the files.
type Options struct {
	Capacity *int64 // bytes of memory of each device, nil if unknown
}

// Files judges the files of one or several processes.
func Files(b *digest.Book, processes []*compare.Process, o Options) Answer {
	a := Answer{Verdict: finding.Unknown}
	doubtful := false // what is not sure enough to be called a leak is not OK either, nor are files that do not belong together
	for _, p := range processes {
		runs := p.Split()
		a.Processes = append(a.Processes, runs...)
		if len(runs) > 1 {
			doubtful = true
			a.Findings = append(a.Findings, severalRuns(p, runs))
		}
	}
	processes = a.Processes
	texts := statements(processes)
	for _, p := range processes {
		for _, device := range p.DeviceIndices() {
			if a.device(b, p, device, o, texts) {
				doubtful = true
			}
		}
		a.Findings = append(a.Findings, pinnedRounding(p)...)
	}
	for _, p := range processes {
		found, judged := tables(p)
		if judged.Tables == 0 {
			continue
		}
		a.Findings = append(a.Findings, found...)
		a.Judged = append(a.Judged, judged)
		switch {
		case judged.open && a.Verdict == finding.OK:
			a.Verdict = finding.Unknown
		case judged.Enough && !judged.open && a.Verdict == finding.Unknown:
			a.Verdict = finding.OK
		}
	}
	if doubtful && a.Verdict == finding.OK {
		a.Verdict = finding.Unknown
	}
	for _, text := range texts {
		a.Findings = append(a.Findings, text.Judge(judgelogs.Options{Capacity: o.Capacity})...)
	}
	sort.SliceStable(a.Findings, func(i, j int) bool { return weight(&a.Findings[i]) > weight(&a.Findings[j]) })
	a.Verdict = weightiest(a.Verdict, a.Findings)
	return a
}

// device judges a device of a process, and reports whether something is held there
// that may be a leak.
func (a *Answer) device(b *digest.Book, p *compare.Process, device int, o Options, texts []*statement) (suspected bool) {
	g := newGrowth(b, p.Whole(), device)
	growth := g.findings()
	a.Findings = append(a.Findings, growth...)
	a.Judged = append(a.Judged, g.judged)
	if g.judged.Enough && a.Verdict == finding.Unknown {
		a.Verdict = finding.OK
	}
	from := len(a.Findings)
	a.Findings = append(a.Findings, fragmentation(p, device)...)
	a.Findings = append(a.Findings, postMortem(b, p, device, growth, o, texts)...)
	a.Findings = append(a.Findings, peak(p, device, growth)...)
	a.Findings = append(a.Findings, costs(b, p, device)...)
	doubt(a.Findings[from:], p.Newest().Device(device).Faults)
	a.Findings = append(a.Findings, history(p, device, g.judged)...)
	return len(g.open) > 0 || len(g.places) > 0
}

// doubt lowers the confidence of findings that rest on a file which contradicts
// itself, and quotes it.
func doubt(findings []finding.Finding, faults []string) {
	const trust = 0.5
	if len(faults) == 0 {
		return
	}
	text := "the file contradicts itself, so that figures may be wrong: " + faults[0]
	if n := len(faults) - 1; n > 0 {
		text += fmt.Sprintf(" (and %s; strandline inspect lists all)", units.Plural(int64(n), "more fault"))
	}
	for i := range findings {
		f := &findings[i]
		f.Confidence *= trust
		f.Detail = append(f.Detail, text)
	}
}

// weightiest is the verdict of the problems among the findings: out of
// memory before a leak before fragmentation.
func weightiest(v finding.Verdict, findings []finding.Finding) finding.Verdict {
	verdicts := []finding.Verdict{finding.Fragmented, finding.Leaking, finding.RanOut} // lightest first
	best := -1
	for i := range findings {
		if findings[i].Severity != finding.Problem {
			continue
		}
		switch findings[i].Kind {
		case finding.Leak, finding.AutogradGraph:
			best = max(best, slices.Index(verdicts, finding.Leaking))
		case finding.Fragmentation:
			best = max(best, slices.Index(verdicts, finding.Fragmented))
		case finding.OutOfMemory:
			best = max(best, slices.Index(verdicts, finding.RanOut))
		}
	}
	if best >= 0 {
		return verdicts[best]
	}
	return v
}

// weight orders findings: by severity, what ran out of memory first, then by
// what they cost a step, then by what they hold.
func weight(f *finding.Finding) float64 {
	w := map[finding.Severity]float64{finding.Problem: 2, finding.Warning: 1}[f.Severity] * 1e30
	if f.Kind == finding.OutOfMemory {
		w += 1e29
	}
	if f.BytesPerStep != nil {
		w += float64(*f.BytesPerStep) * 1e3
	}
	if f.Bytes != nil {
		w += float64(*f.Bytes)
	}
	return w
}

// Problems counts the findings that make a command fail.
func (a *Answer) Problems() (n int) {
	for i := range a.Findings {
		if a.Findings[i].Severity == finding.Problem {
			n++
		}
	}
	return n
}

func siteOf(s stack.Site) *finding.Site {
	if s == (stack.Site{}) {
		return nil
	}
	out := finding.Site(s)
	return &out
}

func framesOf(frames []stack.Frame) []finding.Frame {
	out := make([]finding.Frame, len(frames))
	for i, f := range frames {
		out[i] = finding.Frame(f)
	}
	return out
}

// base is a place without its folders: train.py:39.
func base(s finding.Site) string {
	return fmt.Sprintf("%s:%d", s.File[strings.LastIndexAny(s.File, `/\`)+1:], s.Line)
}

// short is a site without its folders: train.py:39 step.
func short(s stack.Site) string {
	s.File, s.Function = plain(s.File), plain(s.Function)
	if s == (stack.Site{}) {
		return "an unknown place"
	}
	file := s.File
	for i := len(file) - 1; i >= 0; i-- {
		if file[i] == '/' || file[i] == '\\' {
			file = file[i+1:]
			break
		}
	}
	return fmt.Sprintf("%s:%d %s", file, s.Line, s.Function)
}

// plain replaces what is no character to be read, as names of a file can hold
// anything.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
}
