package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"strandline/finding"
	"strandline/hostleak"
	"strandline/units"
)

// Trace is the document of `strandline trace`.
type Trace struct {
	Schema      string            `json:"schema"`
	PID         int               `json:"pid"`
	Rung        string            `json:"rung"`
	Duration    float64           `json:"duration_seconds"`
	Ended       bool              `json:"ended"`
	RSS         int64             `json:"rss_bytes"`
	RSSGrowth   int64             `json:"rss_growth_bytes"`
	Growth      TraceGrowth       `json:"growth"`
	Explained   *float64          `json:"explained_share"`
	Drops       uint64            `json:"drops"`
	StackDrops  uint64            `json:"stack_drops"`
	Paired      uint64            `json:"paired"`
	PairedBytes uint64            `json:"paired_bytes"`
	Ledger      TraceLedger       `json:"ledger"`
	Stacks      []TraceStack      `json:"stacks"`
	Findings    []finding.Finding `json:"findings"`
}

// TraceGrowth is the growth of resident memory by kind.
type TraceGrowth struct {
	Anonymous int64 `json:"anonymous_bytes"`
	File      int64 `json:"file_bytes"`
	Shared    int64 `json:"shared_bytes"`
	Older     int64 `json:"older_bytes"`
	Unnamed   int64 `json:"unnamed_bytes"`
	Threads   int64 `json:"threads"`
}

// TraceLedger says how the ledger agreed with the kernel's list of mappings.
type TraceLedger struct {
	Checks  int   `json:"checks"`
	Missing int64 `json:"missing_bytes"`
	Extra   int64 `json:"extra_bytes"`
}

// TraceStack is what the calls with one stack hold.
type TraceStack struct {
	LiveBytes     int64        `json:"live_bytes"`
	LiveCount     int64        `json:"live_count"`
	ResidentBytes *int64       `json:"resident_bytes"`
	AssumedBytes  int64        `json:"assumed_bytes"`
	MadeBytes     int64        `json:"made_bytes"`
	Calls         int64        `json:"calls"`
	Call          string       `json:"call"`
	Complete      bool         `json:"complete"`
	Trend         []int64      `json:"trend"`
	Frames        []TraceFrame `json:"frames"`
}

// TraceFrame is one level of such a stack.
type TraceFrame struct {
	Function *string `json:"function"`
	File     *string `json:"file"`
	Line     *int64  `json:"line"`
	Object   *string `json:"object"`
}

// NewTrace makes the document.
func NewTrace(t *hostleak.Trace, s *hostleak.Sums, findings []finding.Finding, rung string, d time.Duration) *Trace {
	doc := &Trace{
		Schema: "strandline.trace/1", PID: int(t.Root), Rung: rung, Duration: d.Round(time.Millisecond).Seconds(), Ended: !t.Alive(),
		RSS: s.RSS, RSSGrowth: s.Growth, Explained: s.Explained, Drops: t.Last.Lost, StackDrops: t.Last.LostSamples,
		Growth: TraceGrowth{s.Anon, s.File, s.Shared, s.Older, s.Unnamed, s.Threads},
		Paired: t.Last.Paired, PairedBytes: t.Last.PairedBytes,
		Ledger: TraceLedger{t.Ledger.Mended.Checks, t.Ledger.Mended.Missing, t.Ledger.Mended.Extra},
		Stacks: []TraceStack{}, Findings: append([]finding.Finding{}, findings...),
	}
	for i := range s.Uses {
		doc.Stacks = append(doc.Stacks, traceStack(&s.Uses[i]))
	}
	return doc
}

func traceStack(u *hostleak.Use) TraceStack {
	out := TraceStack{
		LiveBytes: u.Live, LiveCount: u.Count, AssumedBytes: u.Assumed, MadeBytes: u.Total, Calls: u.Calls,
		Call: u.Op.String(), Complete: u.Complete, Trend: append([]int64{}, u.Population.Bytes...), Frames: []TraceFrame{},
	}
	if u.Resident >= 0 {
		out.ResidentBytes = &u.Resident
	}
	for _, f := range u.Frames {
		frame := TraceFrame{Function: known(f.Function), File: known(f.File), Object: known(f.Object)}
		if f.Line > 0 {
			frame.Line = &f.Line
		}
		out.Frames = append(out.Frames, frame)
	}
	return out
}

// Text prints what grew, the findings, and what to know about the figures.
func (d *Trace) Text(w io.Writer, s Style) {
	fmt.Fprintln(w, d.headline(s))
	for _, line := range d.notes() {
		fmt.Fprintln(w, s.dim("  "+Line(line)))
	}
	for i := range d.Findings {
		fmt.Fprintln(w)
		writeFinding(w, s, &d.Findings[i])
	}
	fmt.Fprintln(w)
	d.stacks(w, s, 10)
}

func (d *Trace) headline(s Style) string {
	took := units.Duration(time.Duration(d.Duration * float64(time.Second)))
	switch {
	case d.Ended && d.RSS == 0:
		return s.bold(fmt.Sprintf("process %d ended while it was watched, after %s", d.PID, took))
	case d.RSSGrowth >= 1<<20:
		share := ""
		if d.Explained != nil {
			share = fmt.Sprintf(", %s of it explained", units.Percent(*d.Explained))
		}
		return s.bold(fmt.Sprintf("process %d grew by %s in %s%s", d.PID, units.Bytes(d.RSSGrowth), took, share))
	}
	return s.bold(fmt.Sprintf("process %d did not grow in %s (%s resident)", d.PID, took, units.Bytes(d.RSS)))
}

func (d *Trace) notes() (out []string) {
	if d.RSSGrowth >= 1<<20 {
		out = append(out, fmt.Sprintf("private %s, files %s, shared %s", units.SignedBytes(d.Growth.Anonymous), units.SignedBytes(d.Growth.File), units.SignedBytes(d.Growth.Shared)))
	}
	if d.Paired > 0 {
		out = append(out, fmt.Sprintf("%s of %s came and went without a trace", count(int(d.Paired), "mapping"), units.Bytes(int64(d.PairedBytes))))
	}
	if d.Drops > 0 {
		out = append(out, fmt.Sprintf("%s were lost, as more came than there was room for; the sums were set right by the kernel's list", count(int(d.Drops), "event")))
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
		t.row(units.Bytes(st.LiveBytes), resident, units.Count(st.LiveCount), st.Call, Sparkline(st.Trend), st.place())
	}
	t.write(w, "")
}

// place is a stack on one line: its lines of Python, or else its functions.
func (st *TraceStack) place() string {
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

// Live prints the figures so far, a screenful, and tells how many lines that are.
func (d *Trace) Live(w io.Writer, s Style) (lines int) {
	c := &lineCounter{w: w}
	fmt.Fprintln(c, d.headline(s))
	for _, line := range d.notes() {
		fmt.Fprintln(c, s.dim("  "+Line(line)))
	}
	d.stacks(c, s, 10)
	return c.lines
}

type lineCounter struct {
	w     io.Writer
	lines int
}

func (c *lineCounter) Write(b []byte) (int, error) {
	for _, x := range b {
		if x == '\n' {
			c.lines++
		}
	}
	return c.w.Write(b)
}
