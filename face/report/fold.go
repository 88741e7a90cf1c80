package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/lazyregexp"
)

// A fold is findings that are one: the same growth, at the same pace, of devices, ranks or
// columns that differ by a number.
type fold struct {
	*finding.Finding // the first
	all              []*finding.Finding
	labels           []string // what tells them apart, such as "device 3"; empty if it is one
}

// folds groups findings that are alike, in their order.
func (b *brief) folds(list []*finding.Finding) (out []*fold) {
	byKey := map[string]*fold{}
	for _, f := range list {
		key := b.likeness(f)
		if first := byKey[key]; key != "" && first != nil && inStep(first.Finding, f) {
			first.all = append(first.all, f)
			continue
		}
		g := &fold{Finding: f, all: []*finding.Finding{f}}
		if key != "" && byKey[key] == nil {
			byKey[key] = g
		}
		out = append(out, g)
	}
	for _, g := range out {
		g.name(b)
	}
	return out
}

// number is a size, a share or a number, alone or in a name.
var number = lazyregexp.New(`[\d.,]*\d(?: ?[KMGTP]i?B| ?B\b| ?%)?`)

// likeness is what findings have in common that are alike: their words without numbers.
func (b *brief) likeness(f *finding.Finding) string {
	if grown(f) == 0 || f.Kind == finding.OutOfMemory {
		return ""
	}
	place := ""
	if f.Site != nil {
		place = fmt.Sprint(*f.Site)
	}
	return fmt.Sprint(f.Kind, f.Severity, place, number.ReplaceAllString(b.head(f), "#"))
}

// head is the title of a finding with its subject, without its place and confidence. A place
// that leaks has no words of its own.
func (b *brief) head(f *finding.Finding) string {
	text := cmp.Or(api.ShortTitle(f), f.Title)
	if api.Keeps(f) {
		text = ""
	}
	if s := b.subject(f); s != "" {
		text = strings.TrimSuffix(s+": "+text, ": ")
	}
	return text
}

// grown is by how many bytes the memory of a finding grew, 0 if that is not known.
func grown(f *finding.Finding) int64 {
	if len(f.Trend) > 1 {
		return max(0, f.Grew())
	}
	if f.BytesPerStep != nil {
		return max(0, *f.BytesPerStep)
	}
	return 0
}

// inStep reports whether two findings grew by about as much.
func inStep(a, b *finding.Finding) bool {
	const tolerance = 0.2
	x, y := float64(grown(a)), float64(grown(b))
	return max(x, y)-min(x, y) <= tolerance*max(x, y)
}

// name finds the words that tell the findings of a fold apart.
func (g *fold) name(b *brief) {
	if len(g.all) == 1 {
		return
	}
	words := make([][]string, len(g.all))
	for i, f := range g.all {
		words[i] = strings.Fields(b.head(f))
		if len(words[i]) != len(words[0]) {
			return
		}
	}
	first, last := -1, -1
	for at := range words[0] {
		differ := slices.ContainsFunc(words, func(w []string) bool { return w[at] != words[0][at] })
		if size := at+1 < len(words[0]) && unit(words[0][at+1]); differ && !size {
			if first < 0 {
				first = at
			}
			last = at
		}
	}
	if first < 0 {
		return
	}
	if _, err := strconv.Atoi(strings.Trim(words[0][first], ":,")); err == nil && first > 0 {
		first-- // the word before a number
	}
	for _, w := range words {
		g.labels = append(g.labels, strings.Trim(strings.Join(w[first:last+1], " "), ":,"))
	}
}

// unit reports whether a word is a unit of sizes.
func unit(word string) bool {
	switch strings.Trim(word, ",;:") {
	case "B", "KiB", "MiB", "GiB", "TiB":
		return true
	}
	return false
}

// together names all findings of a fold: "device 0 to 7", "device 0, 6", "gpu0_used to gpu7_used".
func (g *fold) together() string {
	const maxListed = 3
	n := len(g.labels) - 1
	head, _, numbered := lastNumber(g.labels[0])
	var listed []string
	consecutive := true
	for i, l := range g.labels {
		h, x, ok := lastNumber(l)
		numbered = numbered && ok && h == head
		_, before, _ := lastNumber(g.labels[max(0, i-1)])
		consecutive = consecutive && (i == 0 || x == before+1)
		listed = append(listed, strconv.Itoa(x))
	}
	switch {
	case numbered && consecutive && n > 1:
		return fmt.Sprintf("%s%s to %s", head, listed[0], listed[n])
	case numbered && n < maxListed:
		return head + strings.Join(listed, ", ")
	case n < maxListed:
		return strings.Join(g.labels, ", ")
	}
	return fmt.Sprintf("%s and %d more", g.labels[0], n)
}

// lastNumber cuts the number off the end of a label.
func lastNumber(label string) (head string, n int, ok bool) {
	head = strings.TrimRight(label, "0123456789")
	n, err := strconv.Atoi(label[len(head):])
	return head, n, err == nil
}

// title is the title of a fold: that of its first finding, for all of them.
func (g *fold) title(b *brief, at bool) string {
	text := b.title(g.Finding, at)
	if len(g.labels) == 0 {
		return text
	}
	return strings.Replace(text, g.labels[0], g.together()+", in step", 1)
}

// members prints a line for each finding of a fold.
func (g *fold) members(w io.Writer) {
	if len(g.labels) == 0 {
		return
	}
	width := 0
	for _, l := range g.labels {
		width = max(width, len(l))
	}
	for i, f := range g.all {
		course := ""
		if len(f.Trend) > 1 {
			course = api.Amounts(f.Trend) + " " + smallCurve(f.Trend)
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("      %-*s  %s", width, Line(g.labels[i]), course), " "))
	}
}

// smallCurve is a small curve of a course.
func smallCurve(values []int64) string {
	const maxShown = 12
	return sparkline(thinned(values, maxShown))
}
