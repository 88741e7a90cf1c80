package report

import (
	"fmt"
	"io"
	"strings"

	"strandline/face/api"
	"strandline/units"
)

// Checked is the document of `strandline plan --check`.
type Checked struct{ *api.Checked }

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

func (d Checked) sentence() string {
	if d.Model == nil {
		return "the log's own figures, compared with nothing"
	}
	if d.Off == nil && d.Failure != nil {
		return "all that can be checked is as planned"
	}
	if d.Off == nil {
		return "everything that can be checked is as planned"
	}
	text := *d.Off + " is off"
	if several, _, _ := strings.Cut(*d.Off, " of "); strings.HasSuffix(several, "s") { // weights, tokens of it
		text = *d.Off + " are off"
	}
	if c := d.Rows[d.First].Cause; c != nil {
		text += ": " + *c
	}
	return text
}

// Text writes planned beside observed, what differs most first.
func (d Checked) Text(w io.Writer, s Style) {
	if !s.Verbose {
		d.brief(w, s)
		return
	}
	fmt.Fprintf(w, "%s%s\n%s\n\n", inputName(d.File), d.against(s), Line(d.Setup))
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
		if r.Cause != nil && i != d.First {
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

// against names the model, if it is known.
func (d Checked) against(s Style) string {
	if d.Model == nil {
		return ""
	}
	return "  against " + s.bold(Line(d.Model.Name)) + ", " + modelWords(d.Model)
}

// Markdown writes the check for a ticket.
func (d Checked) Markdown(w io.Writer) {
	if f := d.Failure; f != nil {
		fmt.Fprintf(w, "line %d: %s\n\n", f.Line, cell(f.Text))
	}
	fmt.Fprintf(w, "**%s**%s, %s: %s\n\n| | planned | observed | difference | likely cause |\n| --- | --: | --: | --: | --- |\n",
		cell(inputName(d.File)), cell(d.against(Style{})), cell(d.Setup), cell(d.sentence()))
	for _, r := range d.Rows {
		planned, observed, off := checkedCells(&r)
		cause := ""
		if r.Cause != nil {
			cause = cell(*r.Cause)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", r.Component, planned, observed, off, cause)
	}
}
