package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/plan"
	"strandline/plan/model"
	"strandline/units"
)

// Checked is the document of `strandline plan --check`.
type Checked struct {
	api.Checked

	first int // the row of Off
}

// NewChecked renders a check; setup states what was planned.
func NewChecked(file string, m *model.Model, setup string, rows []plan.Checked) *Checked {
	d := &Checked{Checked: api.Checked{Schema: api.PlanSchema, File: file, Model: plannedModel(m), Setup: setup, Notes: list(m.Notes)}}
	for i := range rows {
		c := &rows[i]
		r := api.CheckedRow{Component: c.Component, Unit: "bytes", Observed: c.Observed, Off: c.Off}
		if !c.Unplanned {
			r.Planned = &[2]int64{c.Planned.Low, c.Planned.High}
		}
		if c.Tokens {
			r.Unit = "tokens"
		}
		if c.Line > 0 {
			r.Line = &c.Line
		}
		if c.Cause != "" {
			r.Cause = &c.Cause
		}
		d.Rows = append(d.Rows, r)
	}
	if i := headline(rows); i >= 0 {
		d.Off, d.first = &rows[i].Component, i
	}
	return d
}

// headline returns the row that an answer begins with, -1 where all is as planned: the
// row that differs most and does not merely follow from the others. The KV cache does, unless
// the others explain less than a tenth of it.
func headline(rows []plan.Checked) int {
	const part = 10
	pool := slices.IndexFunc(rows, func(c plan.Checked) bool { return c.Differs() && c.Component == plan.KVCache })
	other := slices.IndexFunc(rows, func(c plan.Checked) bool { return c.Differs() && !c.Tokens && c.Component != plan.KVCache })
	switch {
	case other >= 0 && (pool < 0 || part*magnitude(rows[other].Off) >= magnitude(rows[pool].Off)):
		return other
	case pool >= 0:
		return pool
	}
	return slices.IndexFunc(rows, func(c plan.Checked) bool { return c.Differs() })
}

func magnitude(n int64) int64 { return max(n, -n) }

func checkedCells(r *api.CheckedRow) (planned, observed, off string) {
	show, signed, both := units.Bytes, units.SignedBytes, sizeRange
	if r.Unit == "tokens" {
		show, signed, both = units.Count, units.SignedCount, countRange
	}
	if r.Planned == nil {
		return "unknown", show(r.Observed), "not compared"
	}
	off = "as planned"
	if r.Off != 0 {
		off = signed(r.Off)
	}
	return both(r.Planned[0], r.Planned[1]), show(r.Observed), off
}

func (d *Checked) sentence() string {
	if d.Off == nil && d.Failure != nil {
		return "what can be checked is as planned"
	}
	if d.Off == nil {
		return "everything that can be checked is as planned"
	}
	text := *d.Off + " is off"
	if several, _, _ := strings.Cut(*d.Off, " of "); strings.HasSuffix(several, "s") { // weights, tokens of it
		text = *d.Off + " are off"
	}
	if c := d.Rows[d.first].Cause; c != nil {
		text += ": " + *c
	}
	return text
}

// Text writes planned beside observed, what differs most first.
func (d *Checked) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s  against %s, %s\n%s\n\n", inputName(d.File), s.bold(Line(d.Model.Name)), modelWords(&d.Model), Line(d.Setup))
	if f := d.Failure; f != nil {
		for _, line := range wrap(fmt.Sprintf("line %s: %s", units.Count(f.Line), Line(f.Text)), s.columns()) {
			fmt.Fprintln(w, s.red(line))
		}
		fmt.Fprintln(w)
	}
	paint := s.yellow
	if d.Off == nil {
		paint = s.green
	}
	for _, line := range wrap(d.sentence(), s.columns()) {
		fmt.Fprintln(w, paint(line))
	}
	fmt.Fprintln(w)
	t := table{right: map[int]bool{1: true, 2: true, 3: true}}
	t.row("", "planned", "observed", "difference", "")
	for _, r := range d.Rows {
		planned, observed, off := checkedCells(&r)
		at := ""
		if r.Line != nil {
			at = fmt.Sprintf("line %s", units.Count(*r.Line))
		}
		t.row(r.Component, planned, observed, off, at)
	}
	t.write(w, "  ")
	var rest []string
	for i, r := range d.Rows {
		if r.Cause != nil && i != d.first {
			rest = append(rest, r.Component+": "+*r.Cause)
		}
	}
	if len(rest) > 0 {
		fmt.Fprintln(w)
	}
	for _, line := range rest {
		fmt.Fprintln(w, line)
	}
	notes(w, s, d.Notes)
}

// Markdown writes the check for a ticket.
func (d *Checked) Markdown(w io.Writer) {
	if f := d.Failure; f != nil {
		fmt.Fprintf(w, "line %d: %s\n\n", f.Line, cell(f.Text))
	}
	fmt.Fprintf(w, "**%s** against %s, %s: %s\n\n| | planned | observed | difference | likely cause |\n| --- | --: | --: | --: | --- |\n",
		cell(inputName(d.File)), cell(d.Model.Name), cell(d.Setup), cell(d.sentence()))
	for _, r := range d.Rows {
		planned, observed, off := checkedCells(&r)
		cause := ""
		if r.Cause != nil {
			cause = cell(*r.Cause)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", r.Component, planned, observed, off, cause)
	}
}
