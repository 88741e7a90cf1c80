package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/shell"
	"strandline/judge/diagnosis"
	"strandline/judge/snapshots"
	"strandline/judge/verdict"
	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/units"
)

// Diagnosis is the document of `strandline diagnose`.
type Diagnosis struct {
	api.Diagnosis

	record string // how to record what can be judged; empty: by PyTorch
	source string // what is counted as files; "file" if it is empty
}

// NewDiagnosis makes the document of snapshots and texts.
func NewDiagnosis(a *diagnosis.Answer) *Diagnosis {
	d := &Diagnosis{Diagnosis: api.Diagnosis{Schema: api.DiagnoseSchema, Verdict: a.Verdict, Findings: a.Findings}}
	if d.Findings == nil {
		d.Findings = []finding.Finding{}
	}
	add := func(p api.Process, name string, judged []verdict.Judged) {
		for _, j := range judged {
			if j.Process == name {
				p.Basis = append(p.Basis, basis(j, len(p.Files)))
			}
		}
		d.Processes = append(d.Processes, p)
	}
	for i, p := range a.Snapshots.Processes {
		if i == 0 {
			d.record = snapshots.RecordingOf(p)
		}
		out := api.Process{Process: named(p.Name), Basis: []string{}}
		if a := p.About; a != nil {
			out.PID, out.Rank, out.Role, out.Command = &a.PID, a.Rank, a.Role, a.Command
		}
		for _, f := range p.Files {
			out.Files = append(out.Files, f.Name)
			if f.Partial != nil {
				out.Partial = append(out.Partial, f.Name)
			}
		}
		add(out, p.Name, a.Snapshots.Judged)
	}
	for _, p := range a.Texts.Processes {
		out := api.Process{Process: named(p.Name), Basis: []string{}}
		for _, f := range p.Files {
			out.Files, out.Texts = append(out.Files, f.Name), append(out.Texts, f.Name)
			if f.Failed() {
				out.Basis = append(out.Basis, "the figures of an error message, without a snapshot")
			}
			if n := f.Mixed; n > 0 {
				out.Basis = append(out.Basis, fmt.Sprintf("left out: %s, whose lines are mixed with other messages", count(n, "table")))
			}
			if f.Partial {
				out.Partial = append(out.Partial, f.Name)
			}
		}
		add(out, p.Name, a.Texts.Judged)
	}
	for i := range a.Paused {
		p := &a.Paused[i]
		d.Processes = append(d.Processes, api.Process{
			Process: &p.Name, PID: &p.PID, Rank: p.Rank, Files: []string{p.File}, Texts: []string{p.File},
			Basis: []string{fmt.Sprintf("a log of %s and resumes", count(p.Steps, "pause"))},
		})
	}
	return d
}

func named(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// basis states what a judgment of a process of so many files rests on.
func basis(j verdict.Judged, files int) string {
	name := snapshot.DeviceName(j.Device)
	if j.OnHost {
		name = "main memory"
	}
	switch {
	case j.Tables > 0:
		return tablesBasis(j)
	case !j.Enough:
		return fmt.Sprintf("%s: too little to judge growth", name)
	case j.Inside:
		return fmt.Sprintf("%s: judged over %s of the newest file's history, by %s", name, count(j.Checkpoints, "step"), j.StepsFrom)
	}
	if j.Checkpoints < files {
		others := "the others"
		if files-j.Checkpoints == 1 {
			others = "the other"
		}
		return fmt.Sprintf("%s: judged over %s of %s; from %s to the next hardly anything happened",
			name, units.Count(int64(j.Checkpoints)), count(files, "file"), others)
	}
	return fmt.Sprintf("%s: judged over %s", name, count(j.Checkpoints, "file"))
}

// tablesBasis states what a judgment of tables rests on.
func tablesBasis(j verdict.Judged) string {
	text := "the totals of " + count(j.Checkpoints, "table") + " of memory_summary()"
	if j.Tables > 1 {
		text += fmt.Sprintf(", of %s devices or processes", units.Count(int64(j.Tables)))
	}
	if !j.Enough {
		text += ": too few to judge growth"
	}
	return text
}

// Text prints the verdict and what to do, on a screen, or every detail.
func (d *Diagnosis) Text(w io.Writer, s Style) {
	if s.Verbose {
		d.long(w, s)
	} else {
		d.brief(w, s)
	}
}

// long prints the verdict, the findings by weight, and how to look further.
func (d *Diagnosis) long(w io.Writer, s Style) {
	if d.Job != nil {
		d.job(w, s)
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, d.headline(s))
	for _, line := range d.basis() {
		fmt.Fprintln(w, s.dim("  "+Line(line)))
	}
	for _, line := range d.commands() {
		fmt.Fprintln(w, s.dim("  "+Line(line)))
	}
	for _, p := range d.Processes {
		for _, f := range p.Partial {
			fmt.Fprintln(w, "  "+s.yellow("only partly readable:")+" "+inputName(f))
		}
	}
	writeNotes(w, s, "not recorded", d.Notes)
	const maxNotes = 5
	notes := 0
	for i := range d.Findings {
		f := &d.Findings[i]
		if api.Dwarfed(d.Findings, i) {
			continue
		}
		if f.Severity != finding.Info {
			fmt.Fprintln(w)
			writeFinding(w, s, f, d.subject(f))
			continue
		}
		if notes++; notes == 1 {
			fmt.Fprintln(w)
		}
		if notes <= maxNotes {
			writeNote(w, s, f, d.subject(f))
		}
	}
	if notes > maxNotes {
		fmt.Fprintf(w, "  and %s (--json lists all)\n", count(notes-maxNotes, "more note"))
	}
	fmt.Fprintln(w)
	d.footer(w, s)
}

// writeNotes prints sentences about what was read, and counts those beyond the first ones.
func writeNotes(w io.Writer, s Style, kind string, notes []string) {
	const maxNotes = 12
	for _, n := range notes[:min(len(notes), maxNotes)] {
		printWrapped(w, s, "  ", kind+": "+Line(n))
	}
	if more := len(notes) - maxNotes; more > 0 {
		fmt.Fprintf(w, "  and %s (--json lists all)\n", count(more, "more note"))
	}
}

// writeNote prints a finding that needs no action: its title; for a peak and for a
// table also what they consist of, and for savings also how to get them.
func writeNote(w io.Writer, s Style, f *finding.Finding, subject string) {
	writeTitle(w, s, f, subject, s.dim("·"))
	if len(f.Trend) > 1 {
		fmt.Fprintln(w, "  "+sparkline(f.Trend))
	}
	held := api.PerProcess(f.Kind)
	if !held && f.Kind != finding.Usage {
		return
	}
	more := f.Detail
	if held && len(f.Remedies) > 0 {
		more = append(slices.Clip(more), "to do: "+f.Remedies[0].Text)
	}
	for _, d := range more {
		for _, l := range wrap(d, s.columns()-4) {
			fmt.Fprintln(w, "   ", l)
		}
	}
}

// subject returns what a finding is about where that is not obvious: the process if
// there are several, and the device unless there is only device 0.
func (d *Diagnosis) subject(f *finding.Finding) string {
	var parts []string
	if f.Process != "" {
		parts = append(parts, f.Process)
	}
	e, ok := f.Evidence.(*finding.OOMEvidence)
	others := ok && e.Failures != nil // it is about other devices, too
	if f.Device != nil && (*f.Device != 0 || others || d.devices(f.Process) > 1) {
		parts = append(parts, snapshot.DeviceName(*f.Device))
	}
	return strings.Join(parts, ", ")
}

// devices counts the devices that the findings on a process are about.
func (d *Diagnosis) devices(process string) int {
	seen := map[int]bool{}
	for i := range d.Findings {
		if f := &d.Findings[i]; f.Process == process && f.Device != nil {
			seen[*f.Device] = true
		}
	}
	return len(seen)
}

// writeTitle prints a finding's title after a symbol.
func writeTitle(w io.Writer, s Style, f *finding.Finding, subject, mark string) {
	title := f.Title
	if subject != "" {
		title = subject + ": " + title
	}
	for i, l := range wrap(title, s.columns()-2) {
		if f.Severity != finding.Info {
			l = s.bold(l)
		}
		if i > 0 {
			mark = " "
		}
		fmt.Fprintln(w, mark, l)
	}
}

// basis states what was judged; processes with the same basis share a line.
func (d *Diagnosis) basis() (lines []string) {
	of := map[string]int{}
	for _, p := range d.Processes {
		for _, b := range p.Basis {
			if of[b]++; of[b] == 1 {
				lines = append(lines, b)
			}
		}
	}
	for i, b := range lines {
		if n := of[b]; len(d.Processes) > 1 {
			lines[i] = fmt.Sprintf("%s (%s)", b, count(n, "process"))
		}
	}
	return lines
}

// commands states which command each recorded process ran, where there are only a few.
func (d *Diagnosis) commands() (lines []string) {
	const maxCommands = 8
	for _, p := range d.Processes {
		if p.PID == nil || p.Process == nil || p.Command == "" {
			continue
		}
		if len(lines) == maxCommands {
			return append(lines, "and others (--json lists all)")
		}
		lines = append(lines, *p.Process+": "+cut(p.Command, 120))
	}
	return lines
}

// cut returns text of at most so many characters.
func cut(text string, maxLen int) string {
	if r := []rune(text); len(r) > maxLen {
		return string(r[:maxLen-1]) + "…"
	}
	return text
}

func (d *Diagnosis) headline(s Style) string {
	files := 0
	for _, p := range d.Processes {
		files += len(p.Files)
	}
	over := count(files, cmp.Or(d.source, "file"))
	if n := len(d.Processes); n > 1 {
		over += " of " + count(n, "process")
	}
	problems, warnings, what := 0, 0, ": nothing leaks"
	for i := range d.Findings {
		switch f := &d.Findings[i]; f.Severity {
		case finding.Problem:
			problems++
		case finding.Warning:
			warnings++
			if f.Kind == finding.Leak || f.Kind == finding.AutogradGraph {
				what = ": no certain leak"
			}
		}
	}
	if warnings > 0 {
		what += ", " + count(warnings, "warning")
	}
	switch d.Verdict {
	case finding.OK:
		return s.green("OK") + s.bold(what) + " in " + over
	case finding.Unknown:
		return s.yellow("UNKNOWN") + s.bold(": too little recorded to judge") + " " + over
	}
	return s.red(strings.ToUpper(string(d.Verdict))) + s.bold(": "+count(problems, "problem")) + " in " + over
}

func count(n int, one string) string { return units.Plural(int64(n), one) }

func writeFinding(w io.Writer, s Style, f *finding.Finding, subject string) {
	mark := s.red("✗")
	switch f.Severity {
	case finding.Warning:
		mark = s.yellow("!")
	case finding.Info:
		mark = s.dim("·")
	}
	writeTitle(w, s, f, subject, mark)
	line := func(label, text string) {
		fmt.Fprintf(w, "  %s %s\n", s.dim(fmt.Sprintf("%-12s", label)), text)
	}
	say := func(label, text string) {
		for _, l := range wrap(text, s.columns()-len("  allocated at ")) {
			line(label, l)
			label = ""
		}
	}
	if len(f.Trend) > 1 {
		n := len(f.Trend)
		line("live", fmt.Sprintf("%s  %s → %s", sparkline(f.Trend), units.Bytes(f.Trend[0]), units.Bytes(f.Trend[n-1])))
	}
	for _, d := range f.Detail {
		say("", d)
	}
	switch {
	case f.Site == nil:
	case f.EnlargedHeap():
		line("enlarged at", frameName(stack.Frame(*f.Site)))
	default:
		line("allocated at", frameName(stack.Frame(*f.Site)))
	}
	writeStack(line, f)
	confidence := units.Percent(f.Confidence)
	if f.Basis != "" {
		confidence += ": " + f.Basis
	}
	say("confidence", confidence)
	for i, r := range f.Remedies {
		label := "fix"
		if i > 0 {
			label = "or"
		}
		say(label, r.Text)
		if r.Detail != "" {
			say("", r.Detail)
		}
		if r.Setting != "" {
			for _, l := range api.SettingLines(r.Setting) {
				line("", Line(l))
			}
		}
	}
}

// writeStack prints the readable frames, innermost first.
func writeStack(line func(label, text string), f *finding.Finding) {
	frames := make([]stack.Frame, len(f.Stack))
	for i, x := range f.Stack {
		frames[i] = stack.Frame(x)
	}
	frames = stack.Readable(frames)
	label := "stack"
	if f.Site != nil && stack.OriginOf(stack.Frame(*f.Site)) == stack.Native { // an allocator's are before it
		frames = frames[max(0, slices.Index(frames, stack.Frame(*f.Site))):]
	}
	if f.Site != nil && len(frames) > 0 && frames[0] == stack.Frame(*f.Site) {
		frames, label = frames[1:], "called from"
	}
	const maxFrames = 12
	for i := 0; len(frames) > 0; i++ {
		if i == maxFrames {
			line("", fmt.Sprintf("… and %s (--json lists all)", count(len(frames), "more frame")))
			break
		}
		n := unnamedRun(frames, func(x stack.Frame) (string, string) { return x.File, x.Function })
		text := unnamedFrames(n, frames[0].File)
		if n < 2 {
			n, text = 1, frameName(frames[0])
		}
		line(label, text)
		frames, label = frames[n:], ""
	}
}

func (d *Diagnosis) footer(w io.Writer, s Style) {
	newest := d.newest()
	if d.Verdict == finding.Unknown {
		fmt.Fprintln(w, "To make a recording that can be judged:")
		for _, l := range strings.Split(cmp.Or(d.record, verdict.Recording), "\n") {
			fmt.Fprintln(w, "  "+l)
		}
		fmt.Fprintln(w)
	}
	if newest == "" || newest == "-" {
		return // there is nothing to look into, or it cannot be read twice
	}
	fmt.Fprintln(w, s.dim("look further:"), "strandline compare FILE…  ·  strandline inspect "+shell.File(Line(newest))+" --at EVENT")
}

// newest returns the file to look into: the newest of the process of the most severe
// finding, or of the first process; "" if that is not a snapshot.
func (d *Diagnosis) newest() string {
	if len(d.Processes) == 0 {
		return "" // a job, of which no text states that memory ran out
	}
	p := d.Processes[0]
	for _, q := range d.Processes {
		if q.Process != nil && len(d.Findings) > 0 && d.Findings[0].Process == *q.Process {
			p = q
		}
	}
	if len(p.Texts) > 0 {
		return ""
	}
	return p.Files[len(p.Files)-1]
}
