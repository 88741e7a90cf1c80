package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"strandline/face/api"
	"strandline/finding"
	"strandline/judge/verdict"
)

// brief prints the verdict, a line for each finding that matters, what to do and why.
func (d *Diagnosis) brief(w io.Writer, s Style) {
	if d.Job != nil {
		d.job(w, s)
		if n := len(d.Findings); n > 0 {
			newBrief(w, s, nil, nil).moreLine("what each file shows")
		}
		return
	}
	b := newBrief(w, s, d.Findings, d.subject)
	list := d.weighty()
	b.left = len(d.Findings) - len(list)
	word := d.word(list)
	switch {
	case len(list) > 0 && list[0].Severity != finding.Info:
		b.findings(word, list, "")
	default:
		b.noProblem(d.calm(), api.PeakOf(d.Findings), list)
	}
	for _, p := range d.Processes {
		for _, f := range p.Partial {
			fmt.Fprintln(w, s.yellow("PARTLY READABLE")+"  "+inputName(f))
		}
	}
	if n := len(d.Notes); n > 0 {
		b.line("NOTE", "not recorded: "+Line(d.Notes[0]))
		b.left += n - 1
	}
	d.next(b, list)
}

// word is the verdict in a word: that of the worst finding.
func (d *Diagnosis) word(list []*finding.Finding) string {
	if len(list) > 0 && list[0].Severity == finding.Warning && (d.Verdict == finding.OK || d.Verdict == finding.Unknown) {
		return "WARNING"
	}
	return strings.ToUpper(string(d.Verdict))
}

// weighty are the findings that the screen shows: those that ask for something, or else
// those that could save memory.
func (d *Diagnosis) weighty() []*finding.Finding {
	if list := api.Asking(d.Findings); len(list) > 0 {
		return list
	}
	return api.Savings(d.Findings)
}

// calm is the verdict where nothing asks for something.
func (d *Diagnosis) calm() api.Card {
	files := 0
	for _, p := range d.Processes {
		files += len(p.Files)
	}
	if files == 0 && d.Verdict == finding.Unknown {
		return api.Card{Word: "UNKNOWN", Title: "nothing judged: the files are of different kinds; name one"}
	}
	return api.CalmCard(d.Verdict, api.Over(files, len(d.Processes), cmp.Or(d.source, "file")), d.Findings)
}

// noProblem prints a verdict without a finding that asks for something: what the memory is for,
// and what could be saved.
func (b *brief) noProblem(c api.Card, peak *finding.Finding, list []*finding.Finding) {
	b.verdict(c.Word, c.Title)
	if c.Fact != "" {
		b.line("READ", c.Fact)
	}
	rows := b.folds(list)
	for i, f := range rows {
		mark := fmt.Sprintf("%2d ", i+1)
		if len(rows) == 1 {
			mark = "   "
		}
		b.row(mark, f)
	}
	b.fixes(list[:min(1, len(list))])
	switch {
	case peak == nil || c.Fact != "":
	case peak.Brief.Account != nil:
		uses := *peak.Brief.Account
		label := strings.ToUpper(uses.Name)
		uses.Name = ""
		b.line(label, api.Sum(&uses))
	case peak.Brief.Why != "":
		b.line("WHY", peak.Brief.Why)
	}
}

// next prints the command that shows more, or that records what is missing, and that
// there is a long form.
func (d *Diagnosis) next(b *brief, list []*finding.Finding) {
	next := ""
	if len(list) > 0 {
		next = list[0].Brief.Next
	}
	if calm := len(list) == 0 || list[0].Severity == finding.Info; calm && d.Verdict == finding.Unknown {
		next = ""
		if h := api.HistoryOf(d.Findings); h != nil {
			next = h.Brief.Next
		}
		next = cmp.Or(next, strings.TrimSuffix(d.record, verdict.Recording), "strandline record -- python TRAIN.py")
	}
	if peak := api.PeakOf(d.Findings); next == "" && peak != nil {
		next = peak.Brief.Next
	}
	label := "NEXT"
	for _, l := range strings.Split(next, "\n") {
		if l != "" {
			b.paste(label, l)
		}
		label = ""
	}
	b.moreLine("")
}
