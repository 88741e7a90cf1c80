package jobs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"strandline/internal/secret"
	"strandline/internal/sorts"
	"strandline/logs/ranks"
)

// A Role is what a rank did when the job ended.
type Role string

// The roles.
const (
	FellFirst Role = "first"
	Failed    Role = "failed"   // by itself, after the first
	Followed  Role = "followed" // it lost a peer, waited in vain, or was ended
	Silent    Role = "silent"   // its texts do not tell
)

// A Row is the end of a rank.
type Row struct {
	Rank    int
	Node    string
	Role    Role
	End     string  // in a word: out-of-memory, lost-peer, signal 9; "" if unknown
	Seconds float64 // after the first end of any rank, by the job's clock; NaN if unknown
	Step    int64   // the last one that it names; -1
	Peak    float64 // bytes that it is seen to hold at most; 0 if its texts do not tell
	Text    string  // the name of the text that shows it
	Line    int64
	Quote   string
}

// ends are the words for what ended a rank.
var ends = map[ranks.Kind]string{
	ranks.RanOut: "out-of-memory", ranks.Host: "host-memory", ranks.Device: "broken-gpu", ranks.Disk: "full-disk", ranks.Raised: "exception",
	ranks.Lost: "lost-peer", ranks.Waited: "timed-out", ranks.Stopped: "stopped", ranks.Driver: "reported",
}

// maxRows bounds the rows of a job: a text can name any number of ranks.
const maxRows = 8192

// rows are the ends of the ranks: the first one first, then by time. Beyond maxRows, silent
// ranks are left out before others.
func (j *job) rows(v *Job) []Row {
	out := make([]Row, 0, j.world)
	began := math.NaN()
	for n := range j.world {
		w := Row{Rank: n, Node: j.nodeOf(n).name(), Role: Silent, Seconds: math.NaN(), Step: -1}
		if r := j.ranks[n]; r != nil {
			w.fill(r)
		}
		switch {
		case v.Cause == None:
			w.Role, w.End = Silent, ""
		case n == v.First.Rank, v.First.Rank < 0 && v.Cause == TooLarge && w.End == ends[ranks.RanOut], v.First.Rank < 0 && v.Cause == HostMemory && w.Node != "" && w.Node == v.First.Node:
			w.Role = FellFirst
		}
		if at := w.Seconds; w.Role != Silent && !math.IsNaN(at) && !(at > began) {
			began = at
		}
		out = append(out, w)
	}
	for i := range out {
		out[i].Seconds -= began
	}
	sorts.StableBy(out, func(a, b Row) int {
		return cmp.Or(sorts.Bool(a.Role != FellFirst, b.Role != FellFirst), sorts.Bool(math.IsNaN(a.Seconds), math.IsNaN(b.Seconds)), cmp.Compare(a.Seconds, b.Seconds))
	})
	if len(out) > maxRows {
		out = slices.DeleteFunc(out, func(w Row) bool { return w.Role == Silent })
		out = out[:min(len(out), maxRows)]
	}
	return out
}

// fill takes what the texts of a rank tell of its end.
func (w *Row) fill(r *rank) {
	w.Peak = peakOf(r)
	for _, v := range r.voices {
		w.Step = max(w.Step, v.Step)
		if w.Text == "" || v.Step >= 0 {
			w.Text = v.text.Name
		}
	}
	switch {
	case r.fall != nil:
		if w.End, w.Role = ends[r.fall.Kind], Followed; r.fall.Kind.Own() {
			w.Role = Failed
		}
		w.Seconds, w.Text, w.Line, w.Quote = r.fall.at, r.fall.text.Name, r.fall.Line, r.fall.Quote
	case r.killed != nil:
		w.End, w.Role, w.Seconds = "killed", Failed, r.killed.at
		w.Line, w.Text, w.Quote = r.killed.Line, r.killed.text.Name, r.killed.Quote
	case r.exit != nil && r.exit.Code != 0:
		w.Role, w.Seconds, w.Quote = Followed, r.exit.at, r.exit.Message
		if w.End = fmt.Sprintf("exit %d", r.exit.Code); r.exit.Code < 0 {
			w.End = fmt.Sprintf("signal %d", -r.exit.Code)
		}
	}
	w.Quote = secret.Text(strings.ToValidUTF8(w.Quote, "?"))
}
