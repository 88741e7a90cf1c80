// Package snapshots judges what PyTorch recorded: snapshots of one or several processes, with
// the tables of memory_summary() and the messages that were printed with them. Package
// judge/texts judges a text on its own.
//
// A detector is a value in the table of detectors.go: the kinds of its findings, what
// it needs, and a function from a subject, which holds the digests, to findings. The
// title, details and remedies of a kind are in the file of that kind. Growth is judged
// first, in subject.go (deviceSubject), since other detectors need it: growth.go finds
// the sites whose memory stays, by trend (judgePlace), and leak.go writes the
// finding.
package snapshots

import (
	"slices"
	"sort"

	"strandline/finding"
	"strandline/torch/compare"
	"strandline/torch/digest"
)

// An Answer is everything that the detectors find in some files.
type Answer struct {
	Verdict  finding.Verdict
	Findings []finding.Finding
	// Processes are those that were judged. Files that were given as one process but
	// come from several runs appear as several processes.
	Processes []*compare.Process
	// Judged states, by process and device, what the judgment of growth rests on.
	Judged []Judged
}

// Judged is the basis of a judgment of growth.
type Judged struct {
	Process string
	Device  int
	// Checkpoints counts files or, if Inside is true, steps of the newest file's
	// history. If there are too few of both, it counts the steps.
	Checkpoints int
	Inside      bool
	// StepsFrom is what the steps are inferred from, in the plural; "" if none were
	// found or files were judged.
	StepsFrom string
	// Enough is false if nothing could be judged.
	Enough bool
	// Tables is how many combinations of process and device have tables of
	// memory_summary(), if the tables were judged; Checkpoints counts all of the
	// tables.
	Tables int
	open   bool // something that grows may be a leak
}

// Options are what the user knows beyond the files.
type Options struct {
	Capacity *int64 // bytes of memory of each device, nil if unknown
	Limit    *int64 // bytes that tables of memory_summary() must not reach, nil if there is none
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
	a.Verdict = worstVerdict(growthVerdict(a.Judged, several), a.Findings)
	return a
}

// growthVerdict combines the judgments of growth: OK if nothing that grows may be a leak.
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

// worstVerdict is the worst verdict among the findings that are problems: out of memory
// is worse than a leak, and a leak than fragmentation.
func worstVerdict(v finding.Verdict, findings []finding.Finding) finding.Verdict {
	verdicts := []finding.Verdict{finding.Fragmented, finding.Leaking, finding.RanOut} // lightest first
	best := -1
	for i := range findings {
		if findings[i].Severity != finding.Problem {
			continue
		}
		switch findings[i].Kind {
		case finding.Leak, finding.AutogradGraph, finding.Regrown:
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

// weight orders findings: by severity, then running out of memory first, then by what
// they cost per step, then by what they hold.
func weight(f *finding.Finding) float64 {
	w := float64(f.Severity.Rank()) * 1e30
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
