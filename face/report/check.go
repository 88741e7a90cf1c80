package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"strandline/face/api"
	"strandline/finding"
	"strandline/units"
)

// LeakCheck is the document of `strandline check`.
type LeakCheck struct{ api.LeakCheck }

// NewLeakCheck makes the document of some runs: a leak if one leaks, above a limit if one is,
// unknown if one could not be judged.
func NewLeakCheck(runs []api.CheckRun) *LeakCheck {
	d := &LeakCheck{api.LeakCheck{Schema: api.CheckSchema, Verdict: finding.OK, Findings: []finding.Finding{}, Runs: runs}}
	rank := map[finding.Verdict]int{finding.OK: 0, finding.Unknown: 1, finding.Over: 2, finding.Leaking: 3}
	for i := range runs {
		r := &runs[i]
		d.Findings = append(d.Findings, r.Findings...)
		if rank[r.Verdict] > rank[d.Verdict] {
			d.Verdict, d.Growth = r.Verdict, r.Growth
		}
	}
	if d.Growth == nil && len(runs) > 0 {
		d.Growth = runs[0].Growth
	}
	return d
}

// Cured adds what a remedy did. The verdict is then that of the run with it, the last;
// unknown if nothing is known of the one without it.
func (d *LeakCheck) Cured(c *api.CheckCure) {
	without, with := &d.Runs[0], &d.Runs[len(d.Runs)-1]
	d.Cure, d.Verdict, d.Growth = c, with.Verdict, with.Growth
	if without.Verdict == finding.Unknown && with.Verdict == finding.OK {
		d.Verdict = finding.Unknown
	}
}

// CureText states what a remedy did, and how sure that is.
func CureText(c *api.CheckCure) string {
	if c.Confidence > 0 {
		return fmt.Sprintf("%s (confidence %s)", c.Text, units.Percent(c.Confidence))
	}
	return c.Text
}

// Text prints the verdict of each run and its findings; of several first a table.
func (d *LeakCheck) Text(w io.Writer, s Style) {
	if len(d.Runs) > 1 {
		t := &table{}
		t.row("", "verdict", "growth", "peak")
		for i := range d.Runs {
			r := &d.Runs[i]
			verdict := strings.ToUpper(string(r.Verdict))
			if r.Failed != "" {
				verdict = "FAILED"
			}
			t.row(Line(r.Name), verdict, RunGrowth(r), Peak(r.Peak))
		}
		t.write(w, "")
		fmt.Fprintln(w)
	}
	if c := d.Cure; c != nil {
		fmt.Fprintf(w, "%s\n\n", s.bold(Line(CureText(c))))
	}
	for i := range d.Runs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		writeRun(w, s, &d.Runs[i])
	}
}

// runWord is the verdict on a run in a word, and in a few.
func runWord(r *api.CheckRun) (word, text string) {
	blamed := r.OutOfMemory && (r.Verdict == finding.Leaking || r.Verdict == finding.Over)
	switch {
	case r.Interrupted:
		return "INTERRUPTED", "measured until then"
	case r.Failed != "" && !blamed:
		return "FAILED", "the command failed by itself, so nothing is proved"
	}
	return strings.ToUpper(string(r.Verdict)), map[finding.Verdict]string{
		finding.OK: "no leak", finding.Unknown: "cannot be judged", finding.Leaking: "memory keeps growing", finding.Over: "above the limit",
	}[r.Verdict]
}

// runSubject is the process of a finding, "" if its title names it.
func runSubject(f *finding.Finding) string {
	if strings.Contains(f.Title, f.Process) {
		return ""
	}
	return f.Process
}

// briefRun prints the verdict with the worst finding, what ran, and what is missing.
func briefRun(w io.Writer, s Style, r *api.CheckRun) {
	b := newBrief(w, s, r.Findings, runSubject)
	list := weighty(r.Findings)
	word, text := runWord(r)
	name := ""
	if r.Name != "" {
		name = r.Name + ": "
	}
	if judged := word == "LEAK" || word == "OVER"; judged && len(list) > 0 && name == "" {
		b.findings(word, list, list[0].Basis)
	} else {
		b.verdict(word, name+text)
		for _, m := range r.Missing {
			if word != "FAILED" {
				b.line("", m)
			}
		}
		if word != "FAILED" {
			b.list(r.Findings)
		}
	}
	b.line("RUN", RunBasis(r))
	b.notes(r.Notes)
	b.moreLine("")
}

func writeRun(w io.Writer, s Style, r *api.CheckRun) {
	if !s.Verbose {
		briefRun(w, s, r)
		return
	}
	name := ""
	if r.Name != "" {
		name = r.Name + ": "
	}
	word, text := runWord(r)
	failed := word == "FAILED"
	fmt.Fprintln(w, Line(name)+verdictInk(s, word)+s.bold(": "+text))
	fmt.Fprintln(w, s.dim("  "+Line(RunBasis(r))))
	for _, m := range r.Missing {
		if !failed {
			printWrapped(w, s, "  ", m)
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if failed && f.Evidence == nil && f.Severity == finding.Info { // what too little was measured of
			continue
		}
		fmt.Fprintln(w)
		if f.Severity == finding.Info {
			writeNote(w, s, f, "")
			continue
		}
		writeFinding(w, s, f, runSubject(f))
	}
	writeNotes(w, s, "note", r.Notes)
}

// RunGrowth is the growth of a run for a person, "" if it is not known. Of a run that does
// not leak, a line through the teeth of a saw says nothing.
func RunGrowth(r *api.CheckRun) string {
	switch g := r.Growth; {
	case g == nil:
		return ""
	case r.Verdict == finding.OK && g.Low <= 0:
		return "none"
	case g.BytesPerStep != nil:
		return fmt.Sprintf("%s a step (%s to %s)", units.SignedBytes(*g.BytesPerStep), units.SignedBytes(g.Low), units.SignedBytes(g.High))
	default:
		return fmt.Sprintf("%s a second (%s to %s)", units.SignedBytes(*g.BytesPerSecond), units.SignedBytes(g.Low), units.SignedBytes(g.High))
	}
}

// Peak is what was held at most, by metric, "" if that is not known.
func Peak(p api.CheckPeak) string {
	var parts []string
	if p.HostBytes != nil {
		parts = append(parts, "host "+units.Bytes(*p.HostBytes))
	}
	if p.DeviceBytes != nil {
		parts = append(parts, "device "+units.Bytes(*p.DeviceBytes))
	}
	return strings.Join(parts, ", ")
}

// RunName is the command of a run in a line.
func RunName(r *api.CheckRun) string {
	text := strings.Join(strings.Fields(strings.Join(r.Command, " ")), " ")
	if len([]rune(text)) > 80 {
		text = string([]rune(text)[:79]) + "…"
	}
	return text
}

// RunBasis states what ran, for how long, and with how many steps.
func RunBasis(r *api.CheckRun) string {
	text := RunName(r)
	text += fmt.Sprintf(": %s, %s", ended(r), units.Duration(time.Duration(r.Seconds*float64(time.Second))))
	if r.Steps > 0 {
		text += fmt.Sprintf(", %s (%s)", count(r.Steps, "step"), r.StepsFrom)
	} else {
		text += ", judged over time: no steps were seen"
	}
	if p := Peak(r.Peak); p != "" {
		text += ", peak: " + p
	}
	return text
}

func ended(r *api.CheckRun) string {
	switch {
	case r.Failed != "":
		return r.Failed
	case r.Interrupted:
		return "interrupted"
	case r.Stopped:
		return "stopped"
	}
	return fmt.Sprintf("exit status %d", r.ExitStatus)
}

// RunProgress states how far the evidence is while a command runs.
func RunProgress(r *api.CheckRun) string {
	text := "no steps"
	if r.Steps > 0 {
		text = count(r.Steps, "step")
	}
	if g := RunGrowth(r); g != "" {
		text += ", " + g
	}
	return text
}
