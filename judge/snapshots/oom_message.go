package snapshots

import (
	"math"

	"strandline/internal/lazyregexp"
	"strandline/judge/texts"
	"strandline/logs/failure"
	"strandline/torch/digest"
	"strandline/torch/timeline"
)

// messagesOf finds the messages of a text about a failure that a snapshot of a process
// records: the last of them, and how many there are.
func messagesOf(t *texts.Statement, o *digest.OOM, process string, device int) (last *failure.OOM, count int) {
	for _, f := range t.OOM.Failures {
		if own, stated := rank.FindString(process), rank.FindString(f.Rank); own != "" && stated != "" && own != stated {
			continue
		}
		for _, m := range f.Messages {
			if t.Explained[m] || !sameFailure(m, o, device) {
				continue
			}
			t.Explained[m] = true
			if count++; last == nil || m.Line > last.Line {
				last = m
			}
		}
	}
	return last, count
}

// rank matches how file names and log lines name a rank.
var rank = lazyregexp.New(`rank\d+`)

// sameFailure reports whether a message is about a failure in a snapshot: on that device,
// with the same request and the same free memory, as far as the message states them.
func sameFailure(m *failure.OOM, o *digest.OOM, device int) bool {
	if m.Bare() || m.Request == nil || !o.Known.Request || m.Device != nil && *m.Device != device || texts.Contradictory(m) {
		return false
	}
	return roughlyEqual(*m.Request, timeline.DriverSize(o.Request, o.Expandable)) && (m.Free == nil || !o.Known.DeviceFree || roughlyEqual(*m.Free, o.DeviceFree))
}

// roughlyEqual reports whether two sizes are the same apart from rounding.
func roughlyEqual(a, b int64) bool {
	const rounding = 0.01
	return math.Abs(float64(a-b)) <= rounding*float64(max(a, b))
}
