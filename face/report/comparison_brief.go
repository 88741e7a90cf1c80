package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/torch/timeline"
	"strandline/units"
)

// maxPlaces is how many places a first screen lists.
const maxPlaces = 5

// sitesBrief prepares a screen that names places without findings.
func sitesBrief(w io.Writer, s Style, sites []api.Site) *brief {
	var files []string
	for _, x := range sites {
		if x.File != nil {
			files = append(files, *x.File)
		}
	}
	return &brief{w: w, s: s, names: api.ShortNames(files), kind: "place"}
}

// at is a place, its file as short as it is unique, or why there is none.
func (b *brief) at(x api.Site, missing timeline.Missing) string {
	if missing != "" || x.File == nil {
		return placeName(x, missing)
	}
	return b.place(&finding.Site{File: *x.File, Line: *x.Line, Function: *x.Function})
}

// atKind is a place of a kind of memory.
func (b *brief) atKind(x api.Site, missing timeline.Missing, kind string) string {
	return b.at(x, missing) + kindName(kind)
}

// numbered prints the first of some lines, and counts the others.
func (b *brief) numbered(lines []string) {
	for i, l := range lines {
		if i == maxPlaces {
			b.left += len(lines) - maxPlaces
			fmt.Fprintf(b.w, "   and %d more\n", len(lines)-maxPlaces)
			break
		}
		for k, part := range wrap(l, b.s.columns()-3) {
			mark := fmt.Sprintf("%2d ", i+1)
			if k > 0 {
				mark = "   "
			}
			fmt.Fprintln(b.w, mark+part)
		}
	}
}

// brief prints what changed, and at which places.
func (c *Comparison) brief(w io.Writer, s Style) {
	var sites []api.Site
	for i := range c.Groups {
		for _, x := range c.Groups[i].Sites {
			sites = append(sites, x.Site)
		}
	}
	if c.Runs != nil {
		for _, x := range c.Runs.Sites {
			sites = append(sites, x.Site)
		}
	}
	b := sitesBrief(w, s, sites)
	switch {
	case c.Runs != nil:
		c.runsBrief(b)
	case c.Levels != nil:
		c.levelsBrief(b)
	case len(c.Groups) == 1:
		c.groupBrief(b, &c.Groups[0])
	default:
		c.outliersBrief(b)
	}
	for _, n := range c.Notes {
		b.line("NOTE", Line(n))
	}
}

// changed is a change in a word; "" if it is within a hundredth.
func changed(from, to int64) string {
	switch small := max(from, to) / 100; {
	case to-from > small:
		return "GREW"
	case from-to > small:
		return "SHRANK"
	}
	return ""
}

// headline prints the answer of the gate if there is one, or else the change in a word.
func (c *Comparison) headline(b *brief, word, title string) {
	g := c.Gate
	if g == nil {
		b.verdict(word, title)
		return
	}
	for i, o := range g.Over {
		if i == 0 {
			b.verdict("FAILED", o)
			continue
		}
		b.line("", o)
	}
	if g.Passed {
		b.verdict("PASSED", "nothing grew by more than "+g.Limit)
	}
	for _, u := range g.Unjudged {
		b.line("NOTE", "not judged: "+Line(u))
	}
	b.line("", title)
}

// groupBrief prints the files of one process, oldest first.
func (c *Comparison) groupBrief(b *brief, g *api.Group) {
	from, to := g.Requested[0], g.Requested[len(g.Requested)-1]
	wasReserved, isReserved := g.Reserved[0], g.Reserved[len(g.Reserved)-1]
	title := fmt.Sprintf("%s requested in %s; reserved %s", course(g.Requested), count(len(g.Files), "file"), course(g.Reserved))
	if to != from {
		title = units.SignedBytes(to-from) + ": " + title
	}
	word := cmp.Or(changed(from, to), changed(wasReserved, isReserved), "SAME")
	if len(g.Files) == 1 {
		word, title = "HELD", fmt.Sprintf("%s requested, %s reserved; give more files to compare", units.Bytes(to), units.Bytes(isReserved))
	}
	if len(g.Runs) > 0 && c.Gate == nil {
		b.verdict("UNKNOWN", fmt.Sprintf("files of %s: their difference is not growth", count(len(g.Runs), "run")))
		b.line("", title)
	} else {
		c.headline(b, word, title)
	}
	var lines []string
	for _, x := range g.Sites {
		n := len(x.Bytes) - 1
		if n > 0 && x.Bytes[0] == x.Bytes[n] && x.Count[0] == x.Count[n] {
			b.left++
			continue
		}
		text := b.atKind(x.Site, x.Missing, x.Kind) + "  " + withCurve(x.Bytes)
		if x.Count[n] > 0 {
			text += " ×" + units.Count(x.Count[n])
		}
		lines = append(lines, text)
	}
	b.numbered(lines)
	if len(g.Runs) == 2 && len(g.Files) == 2 {
		b.paste("NEXT", command("compare --runs", g.Files...))
	}
	if next := command("diagnose", g.Files...); len(g.Files) > 2 && word == "GREW" && len(next) < b.s.columns()-indent {
		b.paste("NEXT", next)
	}
	b.moreLine("")
}

// course is a course in figures; one figure if nothing changes.
func course(values []int64) string {
	if last := values[len(values)-1]; units.Bytes(slices.Min(values)) == units.Bytes(slices.Max(values)) {
		return units.Bytes(last)
	}
	return api.Amounts(values)
}

// withCurve is a course in figures, and drawn if it has more than two.
func withCurve(values []int64) string {
	text := course(values)
	if len(values) > 2 {
		text += " " + smallCurve(values)
	}
	return text
}

// outliersBrief prints where one process differs from the others.
func (c *Comparison) outliersBrief(b *brief) {
	var newest []int64
	for i := range c.Groups {
		r := c.Groups[i].Requested
		newest = append(newest, r[len(r)-1])
	}
	word := "ALIKE"
	title := fmt.Sprintf("%s of %s each", count(len(c.Groups), "process"), sizeRange(slices.Min(newest), slices.Max(newest)))
	if n := len(c.Outliers); n > 0 {
		word = "DIFFER"
		title += "; " + count(n, "place") + " where one holds more"
	}
	c.headline(b, word, title)
	var lines []string
	for _, o := range c.Outliers {
		lines = append(lines, fmt.Sprintf("%s: %s  %s, the others %s", Line(o.Process), b.atKind(o.Site, o.Missing, o.Kind), units.Bytes(o.Bytes), units.Bytes(o.Median)))
	}
	b.numbered(lines)
	if len(lines) == 0 {
		b.line("", "no process holds clearly more than the others at any place")
	}
	b.moreLine("each process and its places")
}

// step is a change: its ends and the difference, or the one size.
func step(from, to int64) string {
	both := course([]int64{from, to})
	if !strings.Contains(both, "→") {
		return both
	}
	return fmt.Sprintf("%s (%s)", both, units.SignedBytes(to-from))
}

// runsBrief prints what a change of code costs at the peak, or at the end where no
// history shows a peak.
func (c *Comparison) runsBrief(b *brief) {
	r := c.Runs
	from, to, at := r.EndBefore, r.EndAfter, "end"
	peaks := r.PeakBefore != nil && r.PeakAfter != nil
	title := ""
	if peaks {
		from, to, at = *r.PeakBefore, *r.PeakAfter, "peak"
		title = fmt.Sprintf("; end %s", course([]int64{r.EndBefore, r.EndAfter}))
	}
	wasReserved, isReserved := r.Reserved.EndBefore, r.Reserved.EndAfter
	if r.Reserved.PeakBefore != nil && r.Reserved.PeakAfter != nil {
		wasReserved, isReserved = *r.Reserved.PeakBefore, *r.Reserved.PeakAfter
	}
	title = fmt.Sprintf("%s %s%s; reserved %s", at, step(from, to), title, step(wasReserved, isReserved))
	c.headline(b, cmp.Or(changed(from, to), changed(wasReserved, isReserved), "SAME"), title)
	account := &finding.Account{Bytes: max(to-from, from-to), Name: "more"}
	if from > to {
		account.Name = "less"
	}
	mixed := from == to
	for _, p := range r.Purposes {
		n := p.EndAfter - p.EndBefore
		if peaks {
			n = *p.PeakAfter - *p.PeakBefore
		}
		if from > to {
			n = -n
		}
		mixed = mixed || n < 0
		account.Add(n, p.Words)
	}
	sorts.StableBy(account.Parts, func(x, y finding.Part) int { return cmp.Compare(y.Bytes, x.Bytes) })
	var lines []string
	for _, x := range r.Sites {
		was, is := x.EndBefore, x.EndAfter
		if peaks {
			was, is = *x.PeakBefore, *x.PeakAfter
		}
		if max(is-was, was-is) <= max(from, to)/1000 { // in the long form
			b.left++
			continue
		}
		lines = append(lines, fmt.Sprintf("%s  %s", b.atKind(x.Site, x.Missing, x.Kind), step(was, is)))
	}
	b.numbered(lines)
	if !mixed && account.Rest("other") && len(account.Parts) > 0 {
		b.line("WHY", api.Sum(account))
	}
	b.moreLine("purposes")
}
