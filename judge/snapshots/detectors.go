package snapshots

import (
	"fmt"

	"strandline/finding"
	"strandline/torch/snapshot"
	"strandline/units"
)

// A detector finds one kind of thing that is wrong, or good to know.
type detector struct {
	kinds []finding.Kind      // of its findings
	needs func(*subject) bool // whether a subject holds what the detector judges
	// figures is true if the findings rest on figures that are wrong if a file
	// contradicts itself.
	figures bool
	find    func(*subject) []finding.Finding
}

// detectors are all of them. Findings of equal weight are reported in this order.
//
// To add one:
//
//   - add its kind to package finding (finding.go), and its evidence, a struct with JSON
//     tags, to finding/evidence_torch.go and the table of evidence.go;
//   - add a file here with its function, which takes what it judges from the subject
//     (subject.go; package digest computes it, once per file), and an entry to this table;
//   - describe the kind and its evidence in docs/json.md, and add a line to CHANGELOG.md;
//   - add a snapshot on which it must find something, and one on which it must not, to
//     testdata and its test.
var detectors = []detector{
	{kinds: kinds(finding.History), needs: severalRunsGiven, find: func(s *subject) []finding.Finding {
		return []finding.Finding{severalRuns(s.process, s.runs)}
	}},

	// One device of a process, or its pinned host memory.
	{kinds: kinds(finding.Leak, finding.AutogradGraph, finding.Growth), needs: aDevice, find: func(s *subject) []finding.Finding { return withoutRegrown(s.leaks, s.anew) }},
	{kinds: kinds(finding.Regrown), needs: aDevice, figures: true, find: func(s *subject) []finding.Finding { return s.anew }},
	{kinds: kinds(finding.Fragmentation), needs: soundSegments, figures: true, find: fragmentation},
	{kinds: kinds(finding.OutOfMemory), needs: aFailure, figures: true, find: outOfMemory},
	{kinds: kinds(finding.Peak), needs: events, figures: true, find: peak},
	{kinds: kinds(finding.Usage), needs: noEvents, figures: true, find: usage},
	{kinds: kinds(finding.Spike), needs: realDevice, figures: true, find: spike},
	{kinds: kinds(finding.AutocastCache), needs: realDevice, figures: true, find: autocast},
	{kinds: kinds(finding.Copies), needs: realDevice, figures: true, find: copies},
	{kinds: kinds(finding.Waiting), needs: realDevice, figures: true, find: waiting},
	{kinds: kinds(finding.PrivatePools), needs: soundSegments, figures: true, find: private},
	{kinds: kinds(finding.Rounding), needs: soundSegments, figures: true, find: rounding},
	{kinds: kinds(finding.History), needs: realDevice, find: history},
	{kinds: kinds(finding.History), needs: sharedBeside, find: undumped},
	{kinds: kinds(finding.Pinned), needs: pinnedMemory, figures: true, find: pinnedRounding},

	// A process.
	{kinds: kinds(finding.AutogradGraph), needs: recordedGraphs, find: growingGraphs},
	{kinds: kinds(finding.Leak), needs: recordedGraphs, find: growingOnHost},
	{kinds: kinds(finding.History), needs: unknownParts, find: unknown},
}

func kinds(list ...finding.Kind) []finding.Kind { return list }

// What detectors need.
func severalRunsGiven(s *subject) bool { return len(s.runs) > 1 }
func aDevice(s *subject) bool          { return s.newest != nil }
func events(s *subject) bool           { return aDevice(s) && s.newest.Events > 0 }
func noEvents(s *subject) bool         { return aDevice(s) && s.newest.Events == 0 }
func realDevice(s *subject) bool       { return aDevice(s) && s.device != snapshot.Host }
func sharedBeside(s *subject) bool     { return realDevice(s) && s.process.About != nil }
func soundSegments(s *subject) bool    { return realDevice(s) && !s.newest.Unsound }
func aFailure(s *subject) bool         { return s.failure != nil }
func pinnedMemory(s *subject) bool     { return aDevice(s) && s.device == snapshot.Host }
func unknownParts(s *subject) bool {
	return s.newest == nil && s.runs == nil && len(s.process.Newest().Unknown) > 0
}
func recordedGraphs(s *subject) bool {
	return s.newest == nil && s.process != nil && s.process.About != nil && s.book != nil
}

// findings are those of a subject.
func (d *detector) findings(s *subject) []finding.Finding {
	out := d.find(s)
	if d.figures {
		doubt(out, s.newest.Faults)
	}
	return out
}

// doubt lowers the confidence of findings that rest on a file which contradicts itself,
// and quotes the contradictions.
func doubt(findings []finding.Finding, faults []string) {
	const trust = 0.5
	if len(faults) == 0 {
		return
	}
	text := "the file contradicts itself, so figures may be wrong: " + faults[0]
	if n := len(faults) - 1; n > 0 {
		text += fmt.Sprintf(" (and %s; strandline inspect lists all)", units.Plural(int64(n), "more fault"))
	}
	for i := range findings {
		f := &findings[i]
		f.Confidence *= trust
		f.Detail = append(f.Detail, text)
	}
}
