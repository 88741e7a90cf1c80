// Package torch judges what PyTorch recorded: snapshots of one or several processes,
// with the tables of memory_summary() and the messages that were printed beside them.
// A text alone is judged by judge/logs.
//
// A detector is a value in the table of detectors.go: the kinds of its findings, what
// it needs, and a function from a subject, which holds the digests, to findings. The
// title, details and remedies of a kind are in the file of that kind. Leaks take two:
// growth.go finds the sites whose memory stays, by judge/trend, and leak.go writes the
// finding.
package torch

import (
	"slices"
	"sort"

	"strandline/finding"
	"strandline/torch/compare"
	"strandline/torch/digest"
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
	open   bool // something that grows may be a leak
}

// Options are what a person knows beside the files.
type Options struct {
	Capacity *int64 // bytes of memory of each device, nil if unknown
}

// Files judges the files of one or several processes.
func Files(b *digest.Book, processes []*compare.Process, o Options) Answer {
	var a Answer
	for _, s := range a.subjects(b, processes, o) {
		for i := range detectors {
			if d := &detectors[i]; d.needs(s) {
				a.Findings = append(a.Findings, d.findings(s)...)
			}
		}
	}
	several := len(a.Processes) > len(processes) // files that do not belong together are not judged OK
	sort.SliceStable(a.Findings, func(i, j int) bool { return weight(&a.Findings[i]) > weight(&a.Findings[j]) })
	a.Verdict = weightiest(growthVerdict(a.Judged, several), a.Findings)
	return a
}

// growthVerdict is what the judgements of growth come to: OK if nothing that grows may
// be a leak.
func growthVerdict(judged []Judged, doubtful bool) finding.Verdict {
	v := finding.Unknown
	for _, j := range judged {
		if j.Enough {
			v = finding.OK
		}
		doubtful = doubtful || j.open
	}
	if doubtful {
		return finding.Unknown
	}
	return v
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
