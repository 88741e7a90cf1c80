package torch

import (
	"math"
	"regexp"

	judgelogs "strandline/judge/logs"
	"strandline/logs"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/timeline"
)

// A statement is what a text states of memory that ran out.
type statement struct{ judgelogs.Statement }

// statements are those of the files that are text.
func statements(processes []*compare.Process) (out []*statement) {
	for _, p := range processes {
		for _, f := range p.Files {
			if f.Text != nil && f.Text.Failed() {
				out = append(out, &statement{judgelogs.Statement{Text: f.Text, File: f.Name, Process: p.Name, Heard: map[*logs.OOM]bool{}}})
			}
		}
	}
	return out
}

// hear finds the messages of a failure that a snapshot of a process records: the
// last of them, and how many there are.
func (t *statement) hear(o *digest.OOM, process string, device int) (last *logs.OOM, count int) {
	for _, f := range t.OOM.Failures {
		if own, said := rank.FindString(process), rank.FindString(f.Rank); own != "" && said != "" && own != said {
			continue
		}
		for _, m := range f.Messages {
			if t.Heard[m] || !sameFailure(m, o, device) {
				continue
			}
			t.Heard[m] = true
			if count++; last == nil || m.Line > last.Line {
				last = m
			}
		}
	}
	return last, count
}

// rank is how files and lines of a log name one.
var rank = regexp.MustCompile(`rank\d+`)

// sameFailure reports whether a message is of a failure in a snapshot: on that
// device, with the same request and as much free, as far as they are printed.
func sameFailure(m *logs.OOM, o *digest.OOM, device int) bool {
	if m.Bare() || m.Request == nil || !o.Known.Request || m.Device != nil && *m.Device != device || judgelogs.Contradictory(m) {
		return false
	}
	return near(*m.Request, timeline.DriverSize(o.Request, o.Expandable)) && (m.Free == nil || !o.Known.DeviceFree || near(*m.Free, o.DeviceFree))
}

// near reports whether two sizes are the same but for rounding.
func near(a, b int64) bool {
	const rounding = 0.01
	return math.Abs(float64(a-b)) <= rounding*float64(max(a, b))
}
