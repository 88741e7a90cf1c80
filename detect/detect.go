// Package detect holds the detectors: each takes what the analyses computed and
// returns findings. It knows no face.
package detect

import (
	"fmt"
	"sort"

	"strandline/compare"
	"strandline/finding"
	"strandline/stack"
)

// A Verdict is the weightiest thing that was found, in a word.
type Verdict string

// The verdicts. Unknown is the answer where the files hold too little to judge.
const (
	OK      Verdict = "ok"
	Leaking Verdict = "leak"
	Unknown Verdict = "unknown"
)

// An Answer is everything that the detectors say of some files.
type Answer struct {
	Verdict  Verdict
	Findings []finding.Finding
	// Judged says, by process and device, what the judgement of growth rests on.
	Judged []Judged
}

// Judged is the basis of a judgement of growth.
type Judged struct {
	Process string
	Device  int
	// Files or, where Inside is true, parts of the newest file's history.
	Marks  int
	Inside bool
	// Enough is false where nothing could be judged.
	Enough bool
}

// Files judges the files of one or several processes.
func Files(b *compare.Book, processes []*compare.Process) Answer {
	a := Answer{Verdict: Unknown}
	for _, p := range processes {
		for _, device := range p.DeviceIndices() {
			g := newGrowth(b, p, device)
			a.Findings = append(a.Findings, g.findings()...)
			a.Judged = append(a.Judged, g.judged)
			if g.judged.Enough && a.Verdict == Unknown {
				a.Verdict = OK
			}
			a.Findings = append(a.Findings, outOfMemory(p, device)...)
			a.Findings = append(a.Findings, history(p, device, g.judged)...)
		}
	}
	sort.SliceStable(a.Findings, func(i, j int) bool { return weight(&a.Findings[i]) > weight(&a.Findings[j]) })
	for i := range a.Findings {
		if f := &a.Findings[i]; f.Severity == finding.Problem && (f.Kind == finding.Leak || f.Kind == finding.AutogradGraph) {
			a.Verdict = Leaking
		}
	}
	return a
}

// weight orders findings: by severity, then by what they cost a step, then by
// what they hold.
func weight(f *finding.Finding) float64 {
	w := map[finding.Severity]float64{finding.Problem: 2, finding.Warning: 1}[f.Severity] * 1e30
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

// short is a site without its folders: train.py:39 step.
func short(s stack.Site) string {
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

func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
