package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"strandline/face/api"
	"strandline/plan/rl"
	"strandline/units"
)

// RLPlan is the document of `strandline plan rl`.
type RLPlan struct {
	api.RLPlan

	title, fraction string
}

// NewRLPlan renders the phases of a step. The title states what is planned, and fraction
// is the engine's name for its share.
func NewRLPlan(title, fraction string, p *rl.Phases, notes []string) *RLPlan {
	d := &RLPlan{RLPlan: api.RLPlan{Schema: api.PlanSchema, Total: p.Total, Host: p.Host(), Notes: list(notes)}, title: title, fraction: fraction}
	for _, c := range p.Components {
		d.Components = append(d.Components, api.PlannedPart{Name: c.Name, Low: c.Size.Low, High: c.Size.High, Source: c.Source})
	}
	d.rollouts(p)
	for _, o := range p.Outcomes() {
		way := api.PlannedWay{Name: o.Way, Verdict: o.Verdict, Fraction: o.Fraction, Binding: o.Binding, Highest: o.Highest}
		if o.Fraction != nil {
			way.KV = &o.KV
		}
		d.timed(&way, &o)
		for _, peak := range o.Peaks {
			ph := api.PlannedPhase{Name: peak.Phase, Low: peak.Size.Low, High: peak.Size.High, Parts: []api.PlannedPart{}}
			for _, c := range peak.Parts {
				ph.Parts = append(ph.Parts, api.PlannedPart{Name: c.Name, Low: c.Size.Low, High: c.Size.High})
			}
			way.Phases = append(way.Phases, ph)
		}
		d.Ways = append(d.Ways, way)
	}
	return d
}

// Text draws each way as a timeline: one line per phase, as long as its memory, and the
// size of the GPU as a vertical bar.
func (d *RLPlan) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s\n", s.bold(Line(d.title)))
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

func (d *RLPlan) way(w io.Writer, s Style, way *api.PlannedWay) {
	fmt.Fprintf(w, "\n%s: %s", s.bold(Line(way.Name)), s.verdict(way.Verdict))
	switch {
	case way.Fraction != nil:
		fmt.Fprintf(w, "; the largest %s that fits is %.3g, %s of KV cache (%s)\n", d.fraction, *way.Fraction, units.Bytes(*way.KV), Line(way.Binding))
	case d.fraction != "":
		fmt.Fprintf(w, "; no %s fits (%s)\n", d.fraction, Line(way.Binding))
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
func madeOf(p *api.PlannedPhase) string {
	const maxParts = 2
	var names []string
	for _, c := range p.Parts[:min(maxParts, len(p.Parts))] {
		names = append(names, Line(c.Name))
	}
	return strings.Join(names, ", ")
}

// Markdown writes the ways as tables for a ticket.
func (d *RLPlan) Markdown(w io.Writer) {
	fmt.Fprintf(w, "**%s**, %s on each GPU\n", cell(d.title), units.Bytes(d.Total))
	for _, way := range d.Ways {
		fmt.Fprintf(w, "\n**%s**: %s", cell(way.Name), way.Verdict)
		if way.Fraction != nil {
			fmt.Fprintf(w, ", largest `%s` %.3g", d.fraction, *way.Fraction)
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
