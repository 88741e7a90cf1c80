package report

import (
	"fmt"
	"io"

	"strandline/face/api"
	"strandline/units"
)

// Textbook is the document of `strandline plan --method textbook`.
type Textbook struct{ *api.Textbook }

// figures are the formulas and the plan side by side.
func (b Textbook) figures() *table {
	names := map[string]string{"weights_bytes": "weights, all GPUs", "bytes_per_token": "KV cache of a token, all GPUs", "activation_bytes": "activations, each GPU", "tokens": "tokens that fit"}
	t := &table{right: map[int]bool{1: true, 2: true, 3: true}}
	t.row("", "textbook", "this plan", "factor")
	for _, r := range b.Rows {
		show := units.Bytes
		if r.Component == "tokens" {
			show = units.Count
		}
		factor := ""
		if r.Planned > 0 {
			factor = fmt.Sprintf("%.3g", float64(r.Textbook)/float64(r.Planned))
		}
		t.row(names[r.Component], show(r.Textbook), show(r.Planned), factor)
	}
	return t
}

// Text writes the figures side by side.
func (b Textbook) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s  %s\n\n", s.bold(Line(b.Model.Name)), modelWords(&b.Model))
	b.figures().write(w, "  ")
	fmt.Fprintln(w)
	notes(w, s, b.Why)
}

// Markdown writes them for a ticket.
func (b Textbook) Markdown(w io.Writer) {
	fmt.Fprintf(w, "**%s** (%s)\n\n", cell(b.Model.Name), modelWords(&b.Model))
	b.figures().markdown(w)
	fmt.Fprintln(w)
	for _, why := range b.Why {
		fmt.Fprintf(w, "- %s\n", cell(why))
	}
}
