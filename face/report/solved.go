package report

import (
	"fmt"
	"io"
	"strconv"

	"strandline/face/api"
	"strandline/units"
)

// Solved is the document of `strandline plan --solve`.
type Solved struct{ *api.Solved }

// questions is what is asked for, in words.
var questions = map[string]string{
	"context": "longest context that fits", "requests": "requests of the whole context at once", "fraction": "largest memory fraction that fits",
	"gpus": "fewest GPUs", "batch": "largest batch that fits", "seq": "longest sequence that fits",
}

// Text writes the answers, the best first.
func (d Solved) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s  %s\n%s\n\n", s.bold(Line(d.Model.Name)), modelWords(&d.Model), Line(d.Setup))
	t := table{right: map[int]bool{1: true}}
	t.row("set-up", questions[d.Question], "what binds")
	for _, a := range d.Answers {
		value := "none fits"
		if a.Value != nil {
			value = answer(*a.Value)
		}
		t.row(a.Setup, value, a.Binding)
	}
	t.write(w, "  ")
}

// answer prints a count, or a fraction.
func answer(x float64) string {
	if x < 1 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return units.Count(int64(x))
}

// Markdown writes the answers for a ticket.
func (d Solved) Markdown(w io.Writer) {
	fmt.Fprintf(w, "**%s** (%s), %s\n\n| set-up | %s | what binds |\n| --- | --: | --- |\n", cell(d.Model.Name), modelWords(&d.Model), cell(d.Setup), questions[d.Question])
	for _, a := range d.Answers {
		value := "none fits"
		if a.Value != nil {
			value = answer(*a.Value)
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", cell(a.Setup), value, cell(a.Binding))
	}
}
