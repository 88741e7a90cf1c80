package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/units"
)

// A brief is findings on a first screen: a verdict, a line for each, what to do, why, and
// the command that shows more. Everything else is in the long form (-v).
type brief struct {
	w       io.Writer
	s       Style
	names   map[string]string               // of files, as short as they are unique
	subject func(f *finding.Finding) string // what it is about, "" if that is obvious
	left    int                             // how many only the long form prints
	kind    string                          // of these, "note" if empty
}

// newBrief prepares a screen for some findings.
func newBrief(w io.Writer, s Style, findings []finding.Finding, subject func(*finding.Finding) string) *brief {
	return &brief{w: w, s: s, names: shortest(filesOf(findings)), subject: subject}
}

// indent is the width of the labels.
const indent = 6

// line prints text after a label, or below one.
func (b *brief) line(label, text string) {
	for _, l := range wrap(text, b.s.columns()-indent) {
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
	if leaks(first) {
		rows = all
		b.verdict(word, leakTitle(list))
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
	if why := cmp.Or(whyOf(first), why); why != "" {
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
		if why := cmp.Or(whyOf(list[0]), list[0].Basis); why != "" {
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

// worstWord is the verdict of findings in a word.
func worstWord(list []*finding.Finding) string {
	switch f := list[0]; {
	case f.Severity != finding.Problem:
		return "WARNING"
	case f.Kind == finding.OutOfMemory:
		return "OOM"
	case f.Kind == finding.Fragmentation:
		return "FRAGMENTATION"
	case f.Kind == finding.AboveLimit:
		return "OVER"
	}
	return "LEAK"
}

// title is what a finding is about, in a line.
func (b *brief) title(f *finding.Finding, at bool) string {
	text := cmp.Or(f.Brief.Title, recordedTitle(f))
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
	return text + confidence(f)
}

// lineOf is the line of a text that shows a failure.
func lineOf(e *finding.OOMEvidence) string {
	if e.File == "" || e.File == "-" {
		return fmt.Sprintf("line %d of the input", e.Line)
	}
	return fmt.Sprintf("%s:%d", filepath.Base(e.File), e.Line)
}

// recordedTitle is a short title of a finding that was recorded without one, from its kind
// and figures; "" if its title is short, or they are not known.
func recordedTitle(f *finding.Finding) string {
	const maxWords = 20
	if f.Bytes == nil || f.Count == nil || f.Site == nil || len(strings.Fields(f.Title)) <= maxWords {
		return ""
	}
	return fmt.Sprintf("%s: %s in %s", f.Kind, units.Bytes(*f.Bytes), count(int(*f.Count), "piece"))
}

// confidence is that of the cause, "" if it is certain.
func confidence(f *finding.Finding) string {
	const certain = 0.995
	if f.Confidence >= certain || f.Confidence == 0 {
		return ""
	}
	return " (" + confidenceText(f.Confidence) + ")"
}

// confidenceText states a confidence.
func confidenceText(confidence float64) string { return wholePercent(confidence) + " sure" }

// wholePercent is a share in whole percent.
func wholePercent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

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
	if leaks(f.Finding) {
		text = b.place(f.Site) + "  " + amounts(f.Trend) + " " + smallCurve(f.Trend)
		if f.Count != nil {
			text += "  " + units.Plural(*f.Count, pieceOf(f.Finding))
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
		text += "  " + confidenceText(f.Confidence)
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
	case len(g.labels) == 0 && len(f.Trend) > 1 && !leaks(f) && f.Severity != finding.Info:
		b.line("", amounts(f.Trend)+" "+smallCurve(f.Trend))
	}
	via := b.via(f)
	if own := cmp.Or(f.Brief.Title, recordedTitle(f)) == "" && !leaks(f); own && f.Kind == finding.OutOfMemory && f.Site != nil { // a title without the place
		via = strings.TrimSuffix(b.place(f.Site)+" ← "+via, " ← ")
	}
	if via != "" {
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
	lines := settingLines(r.Setting)
	if len(lines) > maxLines {
		lines = nil
	}
	for _, l := range lines {
		if l != "" {
			b.paste(label, pasted(l))
			label = ""
		}
	}
	if len(lines) == 0 || r.Effect == nil {
		b.line(label, r.Text)
	}
	if r.Effect != nil {
		b.line("", replayed(f, r.Effect))
	}
}

// BriefLines are what to do about a finding, why, and the command that shows more, as the
// first screen states them.
func BriefLines(f *finding.Finding) (lines []string) {
	if len(f.Remedies) > 0 {
		r := &f.Remedies[0]
		fix := r.Text
		if r.Setting != "" && len(settingLines(r.Setting)) == 1 {
			fix = pasted(r.Setting)
		}
		if r.Effect != nil {
			fix += " (" + replayed(f, r.Effect) + ")"
		}
		lines = append(lines, "fix: "+fix)
	}
	if why := cmp.Or(whyOf(f), f.Basis); why != "" {
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

// pasted is a setting as it is pasted: a variable of the environment is exported.
func pasted(setting string) string {
	name, _, ok := strings.Cut(setting, "=")
	if ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" {
		return "export " + setting
	}
	return setting
}

// replayed is what a setting would have done.
func replayed(f *finding.Finding, e *finding.Effect) string {
	how := "replayed: "
	if !e.Exact {
		how = "replayed approximately: "
	}
	switch {
	case e.Left != nil:
		return how + "succeeds, " + units.Bytes(*e.Left) + " to spare"
	case f.Kind == finding.OutOfMemory:
		return how + "succeeds"
	}
	return fmt.Sprintf("%speak %s instead of %s", how, units.Bytes(e.PeakReserved), units.Bytes(e.PeakReserved+e.Saves))
}

// whyOf is what a judgment rests on: the account that adds up, or a sentence.
func whyOf(f *finding.Finding) string {
	if a := f.Brief.Account; a != nil {
		return sum(a)
	}
	return f.Brief.Why
}

// sum is an account in one line, in the unit of the whole, whose printed figures add up.
func sum(a *finding.Account) string {
	const maxParts = 4
	total := units.Bytes(a.Bytes)
	_, unit, _ := strings.Cut(total, " ")
	scale := math.Pow(1024, float64(strings.Index("BKMGTP", unit[:1])))
	digits := 0 // as many as the whole has
	switch x := float64(a.Bytes) / scale; {
	case unit == "B":
	case x < 10:
		digits = 2
	case x < 100:
		digits = 1
	}
	parts := slices.Clone(a.Parts)
	sorts.StableBy(parts, func(x, y finding.Part) int { // all others are one part, the last
		return cmp.Compare(btoi(x.Name == "other"), btoi(y.Name == "other"))
	})
	if len(parts) > maxParts {
		last := finding.Part{Name: "other"}
		for _, p := range parts[maxParts-1:] {
			last.Bytes += p.Bytes
		}
		parts = append(parts[:maxParts-1], last)
	}
	step := math.Pow(10, float64(digits))
	var words []string
	for i, n := range apportion(parts, a.Bytes, step/scale) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%.*f %s", digits, float64(n)/step, parts[i].Name))
		}
	}
	if a.Name != "" {
		total += " " + a.Name
	}
	return total + " = " + strings.Join(words, " + ")
}

// btoi is 1 for true.
func btoi(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// apportion rounds parts of a whole to steps so that they add up to the rounded whole: what
// rounding leaves over goes to those that lost the most by it.
func apportion(parts []finding.Part, whole int64, steps float64) []int64 {
	out := make([]int64, len(parts))
	order := make([]int, len(parts))
	left := int64(float64(whole)*steps + 0.5)
	lost := make([]float64, len(parts))
	for i, p := range parts {
		x := float64(p.Bytes) * steps
		out[i], order[i] = int64(x), i
		lost[i] = x - float64(out[i])
		left -= out[i]
	}
	sorts.StableBy(order, func(i, j int) int {
		switch {
		case lost[i] > lost[j]:
			return -1
		case lost[i] < lost[j]:
			return 1
		}
		return 0
	})
	for k := 0; left > 0 && k < len(order); k++ {
		out[order[k]]++
		left--
	}
	return out
}

// via is how the program came to a place: the callers in its own code, nearest first.
func (b *brief) via(f *finding.Finding) string {
	const maxCallers = 3
	if f.Site == nil {
		return ""
	}
	frames := f.Stack
	if i := slices.Index(frames, *f.Site); i >= 0 {
		frames = frames[i+1:]
	}
	var parts []string
	file, origin := f.Site.File, stack.Own
	if stack.OriginOf(stack.Frame(*f.Site)) == stack.Native { // a program that is not in Python
		origin = stack.Native
	}
	for _, x := range frames {
		if o := stack.OriginOf(stack.Frame(x)); o != origin || x.Function == "<module>" || x.Function == "" {
			continue
		}
		if len(parts) == maxCallers {
			parts = append(parts, "…")
			break
		}
		at := fmt.Sprintf(":%d", x.Line)
		switch {
		case x.Line == 0:
			at = ""
		case x.File != file:
			at = b.name(x.File) + at
		}
		parts = append(parts, strings.TrimSpace(at+" "+x.Function))
		file = x.File
	}
	return Line(strings.Join(parts, " ← "))
}

// place is a line of code, its file as short as it is unique.
func (b *brief) place(site *finding.Site) string {
	if site.File == "" || site.Line == 0 {
		return Line(strings.TrimSpace(b.name(site.File) + " " + site.Function))
	}
	return Line(strings.TrimSpace(fmt.Sprintf("%s:%d %s", b.name(site.File), site.Line, site.Function)))
}

func (b *brief) name(file string) string {
	if short, ok := b.names[file]; ok {
		return short
	}
	return file
}

// filesOf are the files of the frames of findings.
func filesOf(findings []finding.Finding) (files []string) {
	for i := range findings {
		f := &findings[i]
		if f.Site != nil {
			files = append(files, f.Site.File)
		}
		for _, x := range f.Stack {
			files = append(files, x.File)
		}
	}
	return files
}

// shortest are names of files, each cut at its front as long as it stays different from
// the others.
func shortest(files []string) map[string]string {
	names := map[string]string{}
	for _, file := range files {
		if file != "" {
			names[file] = file
		}
	}
	ends := map[string]int{} // how many files end so
	for file := range names {
		for at := len(file); at >= 0; {
			at = strings.LastIndexAny(file[:at], `/\`)
			ends[file[at+1:]]++
		}
	}
	for file := range names {
		for at := len(file); at >= 0; {
			at = strings.LastIndexAny(file[:at], `/\`)
			if names[file] = file[at+1:]; ends[file[at+1:]] == 1 {
				break
			}
		}
	}
	return names
}
