package snapshots

import (
	"cmp"
	"fmt"

	"strandline/finding"
	"strandline/judge/verdict"
	"strandline/torch/compare"
	"strandline/units"
)

// RecordingOf shows how to record a process so that strandline can judge: as it was
// recorded, where strandline did that.
func RecordingOf(p *compare.Process) string {
	if p.About != nil {
		return cmp.Or(p.About.Again, verdict.Recording)
	}
	return verdict.Recording
}

// history states what the recording leaves unknown.
func history(s *subject) (out []finding.Finding) {
	p, device, judged := s.process, s.device, s.judged
	d := s.newest
	entries := "max_entries"
	if p.About != nil {
		entries = "--entries"
	}
	add := func(severity finding.Severity, short, next, title string, evidence *finding.HistoryEvidence, detail ...string) {
		out = append(out, finding.Finding{
			Kind: finding.History, Severity: severity, Confidence: 1, Title: title, Detail: detail, Device: &device,
			Brief: finding.Brief{Title: short, Next: next}, Process: p.Name, Evidence: evidence,
			Remedies: []finding.Remedy{{Kind: "code", Text: "record from the first allocation, with stacks", Setting: RecordingOf(p)}},
		})
	}
	if !judged.Enough && d.Requested > 0 {
		add(finding.Info, fmt.Sprintf("growth not judged: %s, %s; 3 of either are needed",
			units.Plural(int64(len(p.Files)), "file"), units.Plural(int64(judged.Checkpoints), "step")), s.recordAgain(), fmt.Sprintf("too little is recorded to judge growth: %s and %s%s",
			units.Plural(int64(len(p.Files)), "file"), units.Plural(int64(d.Events), "event"), stepsFound(judged)),
			&finding.HistoryEvidence{FileCount: len(p.Files), Events: &d.Events, Steps: &judged.Checkpoints},
			"three files of one process are needed, or one file with a history of three steps")
	}
	if d.RingFull {
		add(finding.Info, fmt.Sprintf("the ring of %s events overflowed", units.Count(int64(d.Events))), "", fmt.Sprintf("the ring of %s events overflowed: the events before are lost", units.Count(int64(d.Events))),
			&finding.HistoryEvidence{Events: &d.Events}, "a larger "+entries+" keeps more")
	}
	if d.UnknownBytes > d.Requested/100 && d.HasHistory {
		what := "it was allocated before the recording began"
		if d.Complete {
			what = "the recording has no stacks"
		}
		add(finding.Info, fmt.Sprintf("%s of %s has no known place", units.Bytes(d.UnknownBytes), units.Bytes(d.Requested)), "", fmt.Sprintf("the place that allocated %s of %s is unknown: %s", units.Bytes(d.UnknownBytes), units.Bytes(d.Requested), what),
			&finding.HistoryEvidence{UnknownBytes: d.UnknownBytes, UnknownCount: &d.UnknownCount, RequestedBytes: &d.Requested})
	}
	return out
}

// minUndumped is the least memory of a device, in bytes and as a share of what is in use, that is
// said to be in no snapshot: contexts and workspaces of libraries take less.
const (
	minUndumped      = 2 << 30
	minUndumpedShare = 0.1
)

// undumped states how much of a device is in no snapshot that was given: leaks there are
// not seen.
func undumped(s *subject) []finding.Finding {
	b := s.process.About.Beside[s.device]
	var named []string
	var rest int64
	for _, o := range b.Others {
		named = append(named, fmt.Sprintf("%s holds %s", o.Process, units.Bytes(o.Bytes)))
		rest += o.Bytes
	}
	rest = max(rest, b.Used-b.Dumped)
	if len(named) == 0 && (rest < minUndumped || float64(rest) < minUndumpedShare*float64(b.Used)) {
		return nil
	}
	name := s.process.Name
	if name == "" {
		name = "one process"
	}
	text := fmt.Sprintf("only %s was dumped: others hold %s of device %d", name, units.Bytes(rest), s.device)
	f := finding.Finding{
		Kind: finding.History, Severity: finding.Warning, Confidence: 1, Process: s.process.Name, Device: &s.device, Title: text, Detail: named,
		Brief: finding.Brief{Title: text}, Evidence: &finding.HistoryEvidence{UnknownBytes: rest},
		Remedies: []finding.Remedy{finding.CodeChange("judge the whole recording, with the snapshots of all processes")},
	}
	if len(named) == 0 {
		f.Detail = []string{"other processes, CUDA contexts, and libraries that allocate outside PyTorch"}
		f.Remedies = []finding.Remedy{{Kind: "code", Text: "list the processes of the device", Setting: "strandline watch"}}
	}
	return []finding.Finding{f}
}

// unknown names parts of the newest file that are not known: figures may be wrong.
func unknown(s *subject) []finding.Finding {
	parts := s.process.Newest().Unknown
	text := "unverified: " + parts[0]
	if n := len(parts) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return []finding.Finding{{
		Kind: finding.History, Severity: finding.Warning, Confidence: 1, Process: s.process.Name, Title: text, Detail: parts[1:],
		Brief: finding.Brief{Title: text}, Evidence: &finding.HistoryEvidence{Unknown: parts},
	}}
}

// recordAgain is how to record the program so that it can be judged: as it was recorded,
// where strandline did that; "" if no stack names the program.
func (s *subject) recordAgain() string {
	if a := s.process.About; a != nil {
		if a.Outside && s.judged.StepsFrom == "" && s.newest.Events > 0 { // a longer recording has no steps either
			return fmt.Sprintf("sudo strandline trace --gpu --pid %d --duration 60s\n# follows the memory of the device and of the host over time, without steps", a.PID)
		}
		return a.Again
	}
	for _, l := range s.newest.Live {
		if c := recordingAgain(s.book.Stacks.Stack(l.Stack)); c != "" {
			return c
		}
	}
	return ""
}

// stepsFound states which steps were found in a history that has too few of them.
func stepsFound(j verdict.Judged) string {
	if j.StepsFrom == "" {
		return ", in which no step was found"
	}
	return fmt.Sprintf(" of %s, by %s", units.Plural(int64(j.Checkpoints), "step"), j.StepsFrom)
}
