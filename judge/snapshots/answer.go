// Package snapshots judges what PyTorch recorded: snapshots of one or several processes.
// Package judge/texts judges what was printed.
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

	"strandline/finding"
	"strandline/judge/texts"
	"strandline/judge/verdict"
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
	Judged []verdict.Judged
	// Kept are tensors in main memory that a name kept more of at a few looks: too few for a
	// finding, and enough to say what makes the process grow if it surely does.
	Kept []finding.Finding
	// Doubtful marks files of one process that do not belong together.
	Doubtful bool
}

// Options are what is known beyond the files.
type Options struct {
	Capacity *int64 // bytes of memory of each device, nil if unknown
	// Texts state failures, which may be those in the files: these are marked as explained.
	Texts []*texts.Statement
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
		if recordedGraphs(s) {
			_, few := keptOnHost(s)
			a.Kept = append(a.Kept, few...)
		}
	}
	for i := range a.Judged {
		j := &a.Judged[i]
		j.Open = j.Open || j.OnHost && slices.ContainsFunc(a.Findings, func(f finding.Finding) bool {
			return f.Severity == finding.Warning && (f.Kind == finding.Leak || f.Kind == finding.AutogradGraph) && f.Process == j.Process
		})
	}
	a.Doubtful = len(a.Processes) > len(processes)
	a.Verdict = verdict.Of(a.Judged, a.Doubtful, a.Findings)
	return a
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
