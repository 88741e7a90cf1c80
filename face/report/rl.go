package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"cmp"
	"slices"
	"strandline/face/api"
	"strandline/units"
)

// RLPlan is the document of `strandline plan rl`.
type RLPlan struct{ *api.RLPlan }

// Text draws each way as a timeline: one line per phase, as long as its memory, and the
// size of the GPU as a vertical bar.
func (d RLPlan) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s\n", s.bold(Line(d.Title)))
	fmt.Fprintf(w, "%s on each GPU\n", units.Bytes(d.Total))
	for _, way := range d.Ways {
		d.way(w, s, &way)
	}
	fmt.Fprintln(w)
	t := table{right: map[int]bool{1: true}}
	for _, c := range d.Components {
		t.row(c.Name, sizeRange(c.Low, c.High), c.Source)
	}
	t.write(w, "  ")
	d.times(w, s)
	if d.Host > 0 {
		fmt.Fprintf(w, "\nways that offload need up to %s of the host's memory for each GPU\n", units.Bytes(d.Host))
	}
	notes(w, s, d.Notes)
}

func (d RLPlan) way(w io.Writer, s Style, way *api.PlannedWay) {
	fmt.Fprintf(w, "\n%s: %s", s.bold(Line(way.Name)), s.verdict(way.Verdict))
	switch {
	case way.Fraction != nil:
		fmt.Fprintf(w, "; the largest %s that fits is %.3g, %s of KV cache (%s)\n", d.Share, *way.Fraction, units.Bytes(*way.KV), Line(way.Binding))
	case d.Share != "":
		fmt.Fprintf(w, "; no %s fits (%s)\n", d.Share, Line(way.Binding))
	default:
		fmt.Fprintln(w)
	}
	longest := d.Total
	name := 0
	for _, p := range way.Phases {
		longest = max(longest, p.High)
		name = max(name, utf8.RuneCountInString(Line(p.Name)))
	}
	width := min(max(s.columns()-name-54, 20), 56)
	end := int(math.Round(float64(d.Total) / float64(longest) * float64(width)))
	for i, p := range way.Phases {
		line := []rune(bar(0, p.Low, p.High, longest, width))
		for len(line) < width+1 {
			line = append(line, ' ')
		}
		line[end] = '│'
		mark := " "
		if i == way.Highest {
			mark = "▲"
		}
		pad := strings.Repeat(" ", name-utf8.RuneCountInString(Line(p.Name)))
		size := sizeRange(p.Low, p.High)
		size = strings.Repeat(" ", max(13-utf8.RuneCountInString(size), 0)) + size
		text := fmt.Sprintf("  %s%s %s %s%s %s", Line(p.Name), pad, size, mark, string(line), madeOf(&p))
		fmt.Fprintln(w, strings.TrimRight(text, " "))
	}
	if text := wayTimes(way); text != "" {
		for _, line := range wrap(text, s.columns()-2) {
			fmt.Fprintln(w, "  "+line)
		}
	}
}

// madeOf names the largest components of a phase.
func madeOf(p *api.PlannedMoment) string {
	const maxParts = 2
	var names []string
	for _, c := range p.Parts[:min(maxParts, len(p.Parts))] {
		names = append(names, Line(c.Name))
	}
	return strings.Join(names, ", ")
}

// Markdown writes the ways as tables for a ticket.
func (d RLPlan) Markdown(w io.Writer) {
	fmt.Fprintf(w, "**%s**, %s on each GPU\n", cell(d.Title), units.Bytes(d.Total))
	for _, way := range d.Ways {
		fmt.Fprintf(w, "\n**%s**: %s", cell(way.Name), way.Verdict)
		if way.Fraction != nil {
			fmt.Fprintf(w, ", largest `%s` %.3g", d.Share, *way.Fraction)
		}
		fmt.Fprint(w, "\n\n| phase | size | most of it |\n| --- | --: | --- |\n")
		for _, p := range way.Phases {
			fmt.Fprintf(w, "| %s | %s | %s |\n", cell(p.Name), sizeRange(p.Low, p.High), cell(madeOf(&p)))
		}
		if text := wayTimes(&way); text != "" {
			fmt.Fprintf(w, "\n%s\n", cell(text))
		}
	}
}

// seconds prints a range of times.
func seconds(s [2]float64) string { return micros([2]float64{s[0] * 1e6, s[1] * 1e6}) }

// wayTimes states how long the hand-overs of a way take, and how many rollouts it holds
// at once; nothing where neither is known.
func wayTimes(way *api.PlannedWay) string {
	var out []string
	if way.AtOnce != nil {
		out = append(out, fmt.Sprintf("%s at once in the largest pool", units.Plural(*way.AtOnce, "rollout")))
	}
	if way.Seconds != nil && len(way.HandOvers) > 0 {
		longest := slices.MaxFunc(way.HandOvers, func(a, b api.PlannedHandOver) int { return cmp.Compare(a.Seconds[1], b.Seconds[1]) })
		text := fmt.Sprintf("hand-overs take %s a step", seconds(*way.Seconds))
		if len(way.HandOvers) > 1 {
			text += fmt.Sprintf(", the longest before %s: %s", Line(longest.Phase), seconds(longest.Seconds))
		}
		out = append(out, text+" ("+strings.Join(longest.Moves, "; ")+")")
	}
	return strings.Join(out, "; ")
}

// times states what the rollouts need, and with which speeds hand-overs are timed.
func (d RLPlan) times(w io.Writer, s Style) {
	if n := d.Rollouts; n != nil {
		text := fmt.Sprintf("rollouts: %s with %s each are %s for each of %s; at their longest, %s and %s tokens, they need %s of KV cache on a GPU at once (%s each), less where a group shares its prompt",
			units.Plural(n.Prompts, "prompt"), units.Plural(n.Group, "answer"), units.Plural(n.Sequences, "sequence"), units.Plural(n.Workers, "engine"),
			units.Count(n.Prompt), units.Count(n.Response), sizeRange(n.Low, n.High), units.Bytes(n.One))
		fmt.Fprintln(w)
		for _, line := range wrap(text, s.columns()) {
			fmt.Fprintln(w, line)
		}
	}
	if v := d.Speeds; v != nil {
		text := fmt.Sprintf("hand-overs: bytes by speed: %.3g GB/s to the host (--host-link; pageable memory a third of it), %.3g GB/s between GPUs (--sync-link), %.3g GB/s of disk (--disk); a new engine takes 15 to 60 s and its graphs. What frameworks do around it (process groups, pinning the host's memory, graphs that are captured again) comes on top: these are lower bounds",
			v.Host/1e9, v.Link/1e9, v.Disk/1e9)
		fmt.Fprintln(w)
		for _, line := range wrap(text, s.columns()) {
			fmt.Fprintln(w, line)
		}
	}
}
