package report

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/units"
)

// A brief is findings on a first screen: a verdict, a line for each, what to do, why, and
// the command that shows more. Everything else is in the long form (-v).
type brief struct {
	w       io.Writer
	s       Style
	names   api.Names                       // of files, as short as they are unique
	subject func(f *finding.Finding) string // what it is about, "" if that is obvious
	left    int                             // how many only the long form prints
	kind    string                          // of these, "note" if empty
}

// newBrief prepares a screen for some findings.
func newBrief(w io.Writer, s Style, findings []finding.Finding, subject func(*finding.Finding) string) *brief {
	return &brief{w: w, s: s, names: api.NamesOf(findings), subject: subject}
}

// indent is the width of the labels.
const indent = 6

// line prints text after a label, or below one.
func (b *brief) line(label, text string) {
	if len(label) >= indent {
		label += " "
	}
	for _, l := range wrap(text, b.s.columns()-max(indent, len(label))) {
		fmt.Fprintln(b.w, strings.TrimRight(b.s.bold(fmt.Sprintf("%-*s", indent, label))+l, " "))
		label = ""
	}
}

// verdict prints the first line.
func (b *brief) verdict(word, title string) { b.verdictAt(word, title, nil) }

// verdictAt prints the first line, which names a place.
func (b *brief) verdictAt(word, title string, site *finding.Site) {
	pad := strings.Repeat(" ", max(2, indent-len(word)))
	for i, l := range wrap(title, b.s.columns()-len(word)-len(pad)) {
		if i == 0 {
			fmt.Fprintln(b.w, verdictInk(b.s, word)+pad+b.s.bold(b.linked(l, site)))
			continue
		}
		fmt.Fprintln(b.w, strings.Repeat(" ", indent)+b.s.bold(b.linked(l, site)))
	}
}

// verdictInk is the word in the color of what it asks for.
func verdictInk(s Style, word string) string {
	switch word {
	case "OK", "PASSED", "FITS", "SAME", "ALIKE", "KEEP", "SHRANK", "PAUSED", "RESUMED", "HELD", "LIVE", "ALLOC", "PEAK":
		return s.green(word)
	case "UNKNOWN", "WARNING", "INTERRUPTED", "GREW", "DIFFER":
		return s.yellow(word)
	}
	return s.red(word)
}

// findings prints findings, the weightiest first, under a verdict in a word. The first
// one is the verdict's title, unless all of the same weight are lines that leak. Why is what
// they rest on, where the first does not state it.
func (b *brief) findings(word string, list []*finding.Finding, why string) {
	const maxRows = 5
	first := list[0]
	all := b.folds(list)
	rows := all[1:]
	if api.Keeps(first) {
		rows = all
		b.verdict(word, api.KeepsTitle(list))
	} else {
		b.verdictAt(word, all[0].title(b, true), first.Site)
		b.facts(all[0])
	}
	for i, f := range rows {
		if i == maxRows {
			b.left += len(rows) - maxRows
			fmt.Fprintf(b.w, "   and %d more\n", len(rows)-maxRows)
			break
		}
		mark := fmt.Sprintf("%2d ", i+1)
		if len(rows) == 1 {
			mark = "   "
		}
		b.row(mark, f)
	}
	b.fixes(list)
	if why := cmp.Or(api.WhyOf(first), why); why != "" {
		b.line("WHY", why)
	}
}

// list prints findings below a verdict that is printed already: a line for each that asks
// for something, or for some notes where none does, then what to do and why.
func (b *brief) list(findings []finding.Finding) {
	list := weighty(findings)
	for i := range findings {
		if len(list) == 0 && i < maxNotes {
			b.row("  ", &fold{Finding: &findings[i]})
		}
	}
	for _, f := range b.folds(list) {
		b.row("  ", f)
	}
	if b.fixes(list); len(list) > 0 {
		if why := cmp.Or(api.WhyOf(list[0]), list[0].Basis); why != "" {
			b.line("WHY", why)
		}
		if next := list[0].Brief.Next; next != "" {
			b.paste("NEXT", next)
		}
	}
}

// moreLine states what the long form prints.
func (b *brief) moreLine(what string) {
	switch {
	case what != "" && b.left > 0:
		what = "-v: " + what + ", " + count(b.left, "more "+cmp.Or(b.kind, "note"))
	case what != "":
		what = "-v: " + what
	case b.left > 1 || b.left == 1 && b.kind != "":
		what = "-v"
	default:
		return
	}
	b.line("MORE", what)
}

// maxNotes is how many notes a screen shows where nothing asks for something.
const maxNotes = 3

// weighty are the findings that ask for something, problems first.
func weighty(findings []finding.Finding) (list []*finding.Finding) {
	for i := range findings {
		if findings[i].Severity != finding.Info {
			list = append(list, &findings[i])
		}
	}
	sorts.StableBy(list, func(a, b *finding.Finding) int { return b.Severity.Rank() - a.Severity.Rank() })
	return list
}

// title is what a finding is about, in a line.
func (b *brief) title(f *finding.Finding, at bool) string {
	text := api.ShortTitle(f)
	switch {
	case text == "":
		text = f.Title
	case f.Site != nil && at:
		text += " at " + b.place(f.Site)
	case f.Site != nil:
		text = b.place(f.Site) + "  " + text
	}
	if s := b.subject(f); s != "" {
		text = s + ": " + text
	}
	if e, ok := f.Evidence.(*finding.OOMEvidence); ok && e.Line > 0 && f.Site == nil { // of a text
		text += ", " + lineOf(e)
	}
	if sure := api.Unsure(f); sure != "" {
		text += " (" + sure + ")"
	}
	return text
}

// lineOf is the line of a text that shows a failure.
func lineOf(e *finding.OOMEvidence) string {
	if e.File == "" || e.File == "-" {
		return fmt.Sprintf("line %d of the input", e.Line)
	}
	return fmt.Sprintf("%s:%d", filepath.Base(e.File), e.Line)
}

// linked is a line in which a place opens its file.
func (b *brief) linked(line string, site *finding.Site) string {
	if site == nil || !b.s.Links {
		return line
	}
	place := b.place(site)
	return strings.Replace(line, place, b.s.link(site.File, place), 1)
}

// row prints a finding in a line, and how the program came there.
func (b *brief) row(mark string, f *fold) {
	text := f.title(b, false)
	if api.Keeps(f.Finding) {
		text = b.place(f.Site) + "  " + api.Amounts(f.Trend) + " " + smallCurve(f.Trend)
		if f.Count != nil {
			text += "  " + units.Plural(*f.Count, api.Piece(f.Finding))
			if n := len(f.Sites); n > 1 {
				text += fmt.Sprintf(" of %d lines", n)
			} else {
				text += " kept"
			}
		}
		switch s := b.subject(f.Finding); {
		case len(f.labels) > 0:
			text = f.together() + ", in step: " + text
		case s != "":
			text = s + ": " + text
		}
		text += "  " + api.Sure(f.Confidence)
	}
	for _, l := range wrap(text, b.s.columns()-len(mark)) {
		fmt.Fprintln(b.w, mark+b.linked(l, f.Site))
		mark = strings.Repeat(" ", len(mark))
	}
	b.facts(f)
}

// facts prints the figures that decide, and the callers.
func (b *brief) facts(g *fold) {
	f := g.Finding
	if f.Brief.Fact != "" {
		b.line("", f.Brief.Fact)
	}
	switch g.members(b.w); {
	case len(g.labels) == 0 && len(f.Trend) > 1 && !api.Keeps(f) && f.Severity != finding.Info:
		b.line("", api.Amounts(f.Trend)+" "+smallCurve(f.Trend))
	}
	if via := b.via(f); via != "" {
		fmt.Fprintln(b.w, b.s.dim("   via "+via))
	}
}

// fixes prints what to do about each finding that asks for something, the same only once.
func (b *brief) fixes(list []*finding.Finding) {
	const maxFixes = 3
	var said []string
	for i, f := range list {
		if len(f.Remedies) == 0 || i > 0 && f.Severity != list[0].Severity {
			continue
		}
		r := &f.Remedies[0]
		key := r.Setting + r.Text
		if b.left += len(f.Remedies) - 1; slices.Contains(said, key) {
			continue
		}
		if said = append(said, key); len(said) > maxFixes {
			b.left++
			continue
		}
		b.fix(f, r)
	}
}

// fix prints a remedy: what to paste, or what to change, and its computed effect.
func (b *brief) fix(f *finding.Finding, r *finding.Remedy) {
	label := "FIX"
	const maxLines = 3 // a longer one is in the long form
	lines := api.SettingLines(r.Setting)
	if len(lines) > maxLines {
		lines = nil
	}
	for _, l := range lines {
		if l != "" {
			b.paste(label, api.Pasted(l))
			label = ""
		}
	}
	if len(lines) == 0 || r.Effect == nil {
		b.line(label, r.Text)
	}
	if r.Effect != nil {
		b.line("", api.EffectText(f, r.Effect))
	}
}

// BriefLines are what to do about a finding, why, and the command that shows more, as the
// first screen states them.
func BriefLines(f *finding.Finding) (lines []string) {
	if len(f.Remedies) > 0 {
		r := &f.Remedies[0]
		fix := r.Text
		if r.Setting != "" && len(api.SettingLines(r.Setting)) == 1 {
			fix = api.Pasted(r.Setting)
		}
		if r.Effect != nil {
			fix += " (" + api.EffectText(f, r.Effect) + ")"
		}
		lines = append(lines, "fix: "+fix)
	}
	if why := cmp.Or(api.WhyOf(f), f.Basis); why != "" {
		lines = append(lines, "why: "+why)
	}
	if f.Brief.Next != "" {
		lines = append(lines, "next: "+f.Brief.Next)
	}
	return lines
}

// paste prints what a person copies, in a line of its own.
func (b *brief) paste(label, text string) {
	fmt.Fprintln(b.w, b.s.bold(fmt.Sprintf("%-*s", indent, label))+Line(text))
}

// via are the callers, nearest first.
func (b *brief) via(f *finding.Finding) string { return Line(b.names.Via(f)) }

// place is a line of code.
func (b *brief) place(site *finding.Site) string { return Line(b.names.Place(site)) }
