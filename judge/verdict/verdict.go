// Package verdict makes one verdict of what snapshots and texts show: from the findings, the
// worst problem; from what the judgment of growth rests on, whether it was enough. It also has
// the order of findings, and the bounds of confidence that both judge by.
package verdict

import (
	"slices"
	"sort"

	"strandline/finding"
)

// Sure is the confidence from which a leak is a problem, and Suspect the confidence from
// which it is a warning.
const (
	Sure    = 0.5
	Suspect = 0.35
)

// Recording shows how to record so that strandline can judge.
const Recording = `import torch
torch.cuda.memory._record_memory_history(max_entries=1_000_000)  # first of all, before the model is created
for step in range(4):
    ...                                                          # your step
    torch.cuda.memory._dump_snapshot(f"step-{step}.pickle")`

// Judged is the basis of a judgment of growth.
type Judged struct {
	Process string
	Device  int
	OnHost  bool // the main memory of a process without a device, as which Device is snapshot.Host
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
	Open   bool // something that grows may be a leak
}

// Of sorts findings by weight, and returns the verdict on them. Doubtful files, which may not
// belong together, are not OK.
func Of(judged []Judged, doubtful bool, findings []finding.Finding) finding.Verdict {
	sort.SliceStable(findings, func(i, j int) bool { return weight(&findings[i]) > weight(&findings[j]) })
	return worst(growth(judged, doubtful), findings)
}

// growth combines the judgments of growth: OK if nothing that grows may be a leak.
func growth(judged []Judged, doubtful bool) finding.Verdict {
	v := finding.Unknown
	for _, j := range judged {
		if j.Enough {
			v = finding.OK
		}
		doubtful = doubtful || j.Open
	}
	if doubtful {
		return finding.Unknown
	}
	return v
}

// worst is the worst verdict among the findings that are problems: out of memory
// is worse than a leak, and a leak than fragmentation.
func worst(v finding.Verdict, findings []finding.Finding) finding.Verdict {
	verdicts := []finding.Verdict{finding.Fragmented, finding.Leaking, finding.RanOut} // lightest first
	best := -1
	for i := range findings {
		if findings[i].Severity != finding.Problem {
			continue
		}
		switch findings[i].Kind {
		case finding.Leak, finding.AutogradGraph, finding.Regrown, finding.Residue:
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
