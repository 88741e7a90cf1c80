package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"strandline/finding"
	"strandline/host/ledger"
	"strandline/host/recording"
	judgehost "strandline/judge/host"
	"strandline/units"
)

// Trace is the document of `strandline trace`.
type Trace struct {
	recording.Document
}

// NewTrace makes the document.
func NewTrace(t *ledger.Trace, s *ledger.Sums, findings []finding.Finding, rung string, d time.Duration) *Trace {
	doc := &Trace{recording.Document{
		Schema: "strandline.trace/1", PID: int(t.Root), Rung: rung, Duration: d.Round(time.Millisecond).Seconds(), Ended: !t.Alive(),
		RSS: s.RSS, RSSGrowth: s.Growth, Explained: s.Explained, Drops: t.Last.Lost, StackDrops: t.Last.LostSamples, Unfollowed: t.Unfollowed(),
		Growth: recording.Growth{Anonymous: s.Anon, File: s.File, Shared: s.Shared, Older: s.Older, Unnamed: s.Unnamed, Threads: s.Threads},
		Paired: t.Last.Paired, PairedBytes: t.Last.PairedBytes, Discarded: t.Ledger.Discarded,
		Ledger: recording.Ledger{Checks: t.Ledger.Corrections.Checks, Missing: t.Ledger.Corrections.Missing, Extra: t.Ledger.Corrections.Extra},
		Stacks: []recording.Stack{}, Findings: append([]finding.Finding{}, findings...),
	}}
	for i := range s.Uses {
		doc.Stacks = append(doc.Stacks, traceStack(&s.Uses[i]))
	}
	return doc
}

func traceStack(u *ledger.Use) recording.Stack {
	out := recording.Stack{
		ID: u.ID, LiveBytes: u.Live, LiveCount: u.Count, AssumedBytes: u.Inferred, MadeBytes: u.Total, Calls: u.Calls,
		Call: u.Op.String(), Complete: u.Complete, Trend: append([]int64{}, u.Population.Bytes...), Frames: []recording.Frame{},
	}
	if u.Resident >= 0 {
		out.ResidentBytes = &u.Resident
	}
	for _, f := range u.Frames {
		frame := recording.Frame{Function: known(f.Function), File: known(f.File), Object: known(f.Object)}
		if f.Line > 0 {
			frame.Line = &f.Line
		}
		out.Frames = append(out.Frames, frame)
	}
	return out
}

// Text prints what grew, the findings, and what to know about the figures.
func (d *Trace) Text(w io.Writer, s Style) {
	d.figures(w, s)
	for i := range d.Findings {
		fmt.Fprintln(w)
		writeFinding(w, s, &d.Findings[i], "")
	}
	fmt.Fprintln(w)
	d.stacks(w, s, 10)
	d.gpu(w, s)
}

func (d *Trace) figures(w io.Writer, s Style) {
	fmt.Fprintln(w, s.bold(d.Headline()))
	for _, line := range d.notes() {
		fmt.Fprintln(w, s.dim("  "+Line(line)))
	}
}

// Headline is how much the process grew, in a sentence.
func (d *Trace) Headline() string {
	took := units.Duration(time.Duration(d.Duration * float64(time.Second)))
	switch {
	case d.Ended && d.RSS == 0:
		return fmt.Sprintf("process %d ended while it was watched, after %s", d.PID, took)
	case d.RSSGrowth >= 1<<20:
		share := ""
		if d.Explained != nil {
			share = fmt.Sprintf(", %s of it explained", units.Percent(*d.Explained))
		}
		return fmt.Sprintf("process %d grew by %s in %s%s", d.PID, units.Bytes(d.RSSGrowth), took, share)
	}
	return fmt.Sprintf("process %d did not grow in %s (%s resident)", d.PID, took, units.Bytes(d.RSS))
}

func (d *Trace) notes() (out []string) {
	if d.Ended && d.RSS > 0 {
		out = append(out, "it ended while it was watched; these are the figures of the last second")
	}
	if d.RSSGrowth >= 1<<20 {
		out = append(out, fmt.Sprintf("private %s, files %s, shared %s", units.SignedBytes(d.Growth.Anonymous), units.SignedBytes(d.Growth.File), units.SignedBytes(d.Growth.Shared)))
	}
	if d.Paired > 0 {
		out = append(out, fmt.Sprintf("%s of %s came and went without a trace", count(int(d.Paired), "mapping"), units.Bytes(int64(d.PairedBytes))))
	}
	if d.Drops > 0 {
		out = append(out, fmt.Sprintf("%s were lost, as more came than there was room for; the sums were set right by the kernel's list", count(int(d.Drops), "event")))
	}
	if d.Unfollowed > 0 {
		out = append(out, fmt.Sprintf("%s could not be followed, as 16,384 lived already; what they map is in no figure", count(int(d.Unfollowed), "process")))
	}
	if d.StackDrops > 0 {
		out = append(out, fmt.Sprintf("%s were lost", count(int(d.StackDrops), "stack")))
	}
	if l := d.Ledger; l.Missing+l.Extra > 0 {
		out = append(out, fmt.Sprintf("by the kernel's list %s were mapped unseen and %s were gone; the sums are set right", units.Bytes(l.Missing), units.Bytes(l.Extra)))
	}
	return out
}

// stacks prints the places that hold most of what was mapped.
func (d *Trace) stacks(w io.Writer, s Style, most int) {
	t := &table{right: map[int]bool{0: true, 1: true, 2: true}}
	for _, st := range d.Stacks {
		if st.LiveBytes == 0 {
			continue
		}
		if len(t.rows) == 0 {
			t.row("mapped", "in memory", "pieces", "call", "", "from")
		}
		if len(t.rows) > most {
			break
		}
		resident := "?"
		if st.ResidentBytes != nil {
			resident = units.Bytes(*st.ResidentBytes)
		}
		t.row(units.Bytes(st.LiveBytes), resident, units.Count(st.LiveCount), st.Call, sparkline(st.Trend), placeOf(&st))
	}
	t.write(w, "")
}

// placeOf is a stack on one line: its lines of Python, or else its functions.
func placeOf(st *recording.Stack) string {
	var names, lines []string
	for _, f := range st.Frames {
		switch {
		case f.Function == nil:
		case f.Line != nil && f.File != nil:
			lines = append(lines, fmt.Sprintf("%s %s:%d", *f.Function, filepath.Base(*f.File), *f.Line))
		default:
			names = append(names, *f.Function)
		}
	}
	if len(lines) > 0 {
		names = append(names[:min(1, len(names))], lines...)
	}
	if len(names) == 0 {
		return "(stack not copied)"
	}
	const few = 4
	if len(names) > few {
		names = append(slices.Clip(names[:few]), "…")
	}
	text := names[0]
	for _, n := range names[1:] {
		text += " ← " + n
	}
	if !st.Complete {
		text += " (cut)"
	}
	return text
}

// NewRecorded is the answer of `strandline diagnose` to a recording, with the
// snapshots that stand beside it.
func NewRecorded(files []string, run *recording.Run) *Diagnosis {
	name := fmt.Sprintf("pid%d", run.PID)
	d := &Diagnosis{Schema: "strandline.diagnose/1", Verdict: judgehost.Recorded(run), Findings: append([]finding.Finding{}, run.Document.Findings...)}
	p := Process{Process: &name, Files: files, Basis: []string{fmt.Sprintf("watched for %s, %s", units.Duration(time.Duration(run.Document.Duration*float64(time.Second))), count(len(run.Samples), "mark"))}}
	d.Processes = []Process{p}
	if run.Document.GPU != nil {
		d.Devices = run.Document.GPU.Devices
	}
	return d
}
