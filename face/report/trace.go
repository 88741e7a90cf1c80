package report

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/store/recording"
	"strandline/judge/processes"
	"strandline/units"
)

// Trace is the document of `strandline trace`.
type Trace struct {
	recording.Document
}

// NewTrace makes the document.
func NewTrace(t *ledger.Trace, s *ledger.Sums, findings []finding.Finding, backend string, d time.Duration) *Trace {
	doc := &Trace{recording.Document{
		Schema: recording.DocumentSchema, PID: int(t.Root), Backend: backend, Duration: d.Round(time.Millisecond).Seconds(), Ended: !t.Alive(),
		RSS: s.RSS, RSSGrowth: s.Growth, Explained: s.Explained, Drops: t.Last.Lost, StackDrops: t.Last.LostSamples, Unfollowed: t.Unfollowed(),
		Growth: recording.Growth{Anonymous: s.Anon, File: s.File, Shared: s.Shared, Older: s.Older, Unnamed: s.Unnamed, Threads: s.Threads},
		Paired: t.Last.Paired, PairedBytes: t.Last.PairedBytes, Discarded: t.Ledger.Discarded,
		Ledger: recording.Ledger{Checks: t.Ledger.Corrections.Checks, Missing: t.Ledger.Corrections.Missing, Extra: t.Ledger.Corrections.Extra},
		Stacks: []recording.Stack{}, Findings: append([]finding.Finding{}, findings...),
	}}
	for _, p := range s.Processes {
		doc.Processes = append(doc.Processes, recording.Process{PID: int(p.PID), Name: p.Name, Role: p.Role, Command: p.Command, RSS: p.RSS, RSSGrowth: p.Growth})
	}
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

// Text prints the findings that ask for something, on a screen, or every detail: what grew,
// and what to know about the figures.
func (d *Trace) Text(w io.Writer, s Style) {
	if !s.Verbose {
		d.brief(w, s)
		return
	}
	d.figures(w, s)
	for i := range d.Findings {
		fmt.Fprintln(w)
		writeFinding(w, s, &d.Findings[i], d.subject(&d.Findings[i]))
	}
	fmt.Fprintln(w)
	d.processes(w)
	d.stacks(w, s, 10)
	d.gpu(w, s)
}

// brief prints the verdict on a trace.
func (d *Trace) brief(w io.Writer, s Style) {
	b := newBrief(w, s, d.Findings, d.subject)
	list := weighty(d.Findings)
	b.left = len(d.Findings) - len(list)
	if len(list) == 0 {
		b.verdict("OK", d.Headline())
		for i := range d.Findings {
			if f := &d.Findings[i]; i < maxNotes {
				b.left--
				b.row("   ", &fold{Finding: f})
			}
		}
	} else {
		b.findings(api.Word(list[0]), list, d.Headline())
	}
	for _, n := range d.used() {
		b.line("GPU", n)
	}
	b.moreLine("stacks, processes, figures")
}

// used sums up what each device of the trace holds, where it was counted.
func (d *Trace) used() (out []string) {
	if d.GPU == nil {
		return nil
	}
	for i := range d.GPU.Devices {
		v := &d.GPU.Devices[i]
		if v.Used == nil || len(v.Parts) == 0 {
			continue
		}
		a := &finding.Account{Bytes: *v.Used, Name: "used of device " + strings.Join(v.Names, ", ")}
		for k := range v.Parts {
			p := &v.Parts[k]
			a.Add(p.Bytes, cmp.Or(p.Owner, partWords[p.Part]))
		}
		if a.Rest("the rest") {
			out = append(out, api.Sum(a))
		}
	}
	return out
}

// partWords are the parts of a device's memory in two words.
var partWords = map[recording.Part]string{
	recording.PartPyTorch: "PyTorch", recording.PartTraced: "traced", recording.PartEarlier: "contexts and earlier", recording.PartUnseen: "unseen",
	recording.PartOthers: "other processes", recording.PartRemainder: "the driver's",
}

// subject returns the process that a finding is about, unless the headline names it.
func (d *Trace) subject(f *finding.Finding) string {
	if len(d.Processes) < 2 && strings.HasPrefix(f.Process+" ", fmt.Sprintf("pid %d ", d.PID)) {
		return ""
	}
	return f.Process
}

func (d *Trace) figures(w io.Writer, s Style) {
	fmt.Fprintln(w, s.bold(d.Headline()))
	for _, line := range d.notes() {
		fmt.Fprintln(w, s.dim("  "+Line(line)))
	}
}

// Headline states in a sentence how much the process grew.
func (d *Trace) Headline() string { return api.Grown(&d.Document) }

func (d *Trace) notes() (out []string) {
	if d.Ended && d.RSS > 0 {
		out = append(out, "it ended while being watched; these are the figures of the last second")
	}
	if d.RSSGrowth >= 1<<20 {
		out = append(out, fmt.Sprintf("anonymous %s, file %s, shared %s", units.SignedBytes(d.Growth.Anonymous), units.SignedBytes(d.Growth.File), units.SignedBytes(d.Growth.Shared)))
	}
	if d.Paired > 0 {
		out = append(out, fmt.Sprintf("mapped and unmapped again at once, and only counted: %s of %s", count(int(d.Paired), "mapping"), units.Bytes(int64(d.PairedBytes))))
	}
	if d.Drops > 0 {
		out = append(out, fmt.Sprintf("%s were lost, because the buffer was full; the sums were corrected from the kernel's list", count(int(d.Drops), "event")))
	}
	if d.Unfollowed > 0 {
		out = append(out, fmt.Sprintf("%s could not be followed, because 16,384 were already live; their mappings are not counted", count(int(d.Unfollowed), "process")))
	}
	if d.StackDrops > 0 {
		out = append(out, fmt.Sprintf("%s were lost", count(int(d.StackDrops), "stack")))
	}
	if l := d.Ledger; l.Missing+l.Extra > 0 {
		out = append(out, fmt.Sprintf("the kernel's list shows that %s was mapped and %s unmapped by unseen calls; the sums are corrected", units.Bytes(l.Missing), units.Bytes(l.Extra)))
	}
	return out
}

// processes prints how much each of several processes grew, and what it took from
// the GPU's driver.
func (d *Trace) processes(w io.Writer) {
	if len(d.Processes) < 2 {
		return
	}
	const maxShown = 8
	t := &table{right: map[int]bool{0: true, 1: true, 2: true}}
	t.row("grew by", "resident", "pid", "name", "command")
	for i, p := range d.Processes {
		if i == maxShown {
			t.row("", "", "", fmt.Sprintf("and %d others", len(d.Processes)-maxShown), "")
			break
		}
		name := p.Name
		if p.Role != "" {
			name += ", " + p.Role
		}
		t.row(units.SignedBytes(p.RSSGrowth), units.Bytes(p.RSS), fmt.Sprint(p.PID), Line(name), Line(cut(p.Command, 60)))
		for _, o := range p.GPU {
			t.row("", "", "", "", fmt.Sprintf("%s of %s memory, by %s", units.Bytes(o.LiveBytes), o.Memory, o.Owner))
		}
		if r := p.PyTorch; r != nil {
			t.row("", "", "", "", fmt.Sprintf("%s reserved by PyTorch (%s), %s of it since the trace began", units.Bytes(r.Bytes), Line(r.Snapshot), units.Bytes(r.Since)))
		}
	}
	t.write(w, "")
	fmt.Fprintln(w)
}

// merged returns rows of a table of stacks, with those that have the same key merged.
func merged[T any](rows []T, key func(*T) string, stackOf func(*T) *recording.Stack) (out []T) {
	at := map[string]int{}
	for _, row := range rows {
		st, k := stackOf(&row), key(&row)
		i, again := at[k]
		if !again {
			at[k] = len(out)
			st.Trend = slices.Clone(st.Trend)
			out = append(out, row)
			continue
		}
		m := stackOf(&out[i])
		m.LiveBytes += st.LiveBytes
		m.LiveCount += st.LiveCount
		switch {
		case m.ResidentBytes == nil || st.ResidentBytes == nil:
			m.ResidentBytes = nil
		default:
			m.ResidentBytes = new(*m.ResidentBytes + *st.ResidentBytes)
		}
		for k := range min(len(m.Trend), len(st.Trend)) {
			m.Trend[k] += st.Trend[k]
		}
	}
	return out
}

// mergedHost merges the stacks of one call and place.
func mergedHost(stacks []recording.Stack) []recording.Stack {
	return merged(stacks, func(st *recording.Stack) string { return st.Call + " " + placeOf(st) }, func(st *recording.Stack) *recording.Stack { return st })
}

// stacks prints the places that hold most of what was mapped.
func (d *Trace) stacks(w io.Writer, s Style, maxStacks int) {
	t := &table{right: map[int]bool{0: true, 1: true, 2: true}}
	for _, st := range mergedHost(d.Stacks) {
		if st.LiveBytes == 0 {
			continue
		}
		if len(t.rows) == 0 {
			t.row("mapped", "in memory", "pieces", "call", "", "from")
		}
		if len(t.rows) > maxStacks {
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

// placeOf returns a stack on one line: its lines of Python, otherwise its functions.
func placeOf(st *recording.Stack) string {
	var native []symbolize.Frame
	var lines []string
	for _, f := range processes.Requested(processes.Frames(st)) {
		switch {
		case f.Function == "":
		case f.Line > 0 && f.File != "":
			lines = append(lines, fmt.Sprintf("%s %s:%d", f.Function, filepath.Base(f.File), f.Line))
		default:
			native = append(native, f)
		}
	}
	names := nativeNames(native)
	if len(lines) > 0 {
		names = append(names[:min(1, len(names))], lines...)
	}
	if len(names) == 0 {
		return "(stack not captured)"
	}
	const maxFrames = 4
	if len(names) > maxFrames {
		names = append(slices.Clip(names[:maxFrames]), "…")
	}
	text := strings.Join(names, " ← ")
	if !st.Complete {
		text += " (cut)"
	}
	return text
}

// nativeNames returns the names of native frames, from the first that is not the C
// library's if there is one. Several frames in a row of one object without symbols
// have one name, except for the first.
func nativeNames(frames []symbolize.Frame) (names []string) {
	if i := slices.IndexFunc(frames, func(f symbolize.Frame) bool { return !processes.InLibrary(f) }); i > 0 {
		frames = frames[i:]
	}
	for len(frames) > 0 {
		n := 0
		if len(names) > 0 {
			n = unnamedRun(frames, func(f symbolize.Frame) (string, string) { return f.Object, f.Function })
		}
		if n < 2 {
			names, frames = append(names, frames[0].Function), frames[1:]
			continue
		}
		names, frames = append(names, unnamedFrames(n, frames[0].Object)), frames[n:]
	}
	return names
}

// unnamedRun returns how many frames, from the first on, are of one object and without
// symbols.
func unnamedRun[F any](frames []F, of func(F) (object, function string)) (n int) {
	first, _ := of(frames[0])
	for _, f := range frames {
		if object, function := of(f); object != first || object == "" || !processes.Unnamed(function) {
			break
		}
		n++
	}
	return n
}

func unnamedFrames(n int, object string) string {
	return fmt.Sprintf("… %d frames of %s without symbols", n, filepath.Base(object))
}

// NewRecorded returns the answer of `strandline diagnose` to a recording, with the
// snapshots that are beside it.
func NewRecorded(files []string, run *recording.Run) *Diagnosis {
	name := fmt.Sprintf("pid%d", run.PID)
	d := &Diagnosis{Diagnosis: api.Diagnosis{Schema: api.DiagnoseSchema, Verdict: processes.Recorded(run), Findings: append([]finding.Finding{}, run.Document.Findings...)}}
	p := api.Process{Process: &name, Files: files, Basis: []string{fmt.Sprintf("watched for %s, %s", units.Duration(time.Duration(run.Document.Duration*float64(time.Second))), count(len(run.Samples), "mark"))}}
	d.Processes, d.Traced = []api.Process{p}, run.Document.Processes
	if run.Document.GPU != nil {
		d.Devices = run.Document.GPU.Devices
	}
	return d
}
