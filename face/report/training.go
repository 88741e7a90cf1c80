package report

import (
	"fmt"
	"io"

	"strandline/face/api"
	"strandline/units"
)

// TrainPlan is the document of `strandline plan train`.
type TrainPlan struct{ *api.TrainPlan }

func (d TrainPlan) sentence() string {
	return fmt.Sprintf("a peak of %s, and %s outside PyTorch, of %s", sizeRange(d.Peak.Low, d.Peak.High), sizeRange(d.Outside.Low, d.Outside.High), units.Bytes(d.GPU.Total))
}

// Text writes the plan for a person: the largest moment as bars, all as a table.
func (d TrainPlan) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s  %s\n%s on %d × %s%s\n\n", s.bold(Line(d.Model.Name)), modelWords(&d.Model), d.Trainer, d.GPUs, d.GPU.Name, d.Setup)
	fmt.Fprintf(w, "%s: %s\n\n", s.verdict(d.Verdict), d.sentence())
	moment := d.Moments[d.Largest]
	fmt.Fprintf(w, "active at the largest moment, %s\n", moment.Name)
	parts(w, s, moment.Parts, d.GPU.Total, "")
	fmt.Fprintln(w)
	t := table{right: map[int]bool{1: true}}
	t.row("moment", "active", "most of it")
	for _, m := range d.Moments {
		heaviest := api.PlannedPart{}
		for _, p := range m.Parts {
			if p.Low+p.High > heaviest.Low+heaviest.High {
				heaviest = p
			}
		}
		t.row(m.Name, sizeRange(m.Low, m.High), heaviest.Name)
	}
	t.write(w, "  ")
	if d.Host > 0 {
		fmt.Fprintf(w, "\nin the host's memory: %s for each GPU\n", units.Bytes(d.Host))
	}
	notes(w, s, d.Notes)
}

// Markdown writes the plan for a ticket.
func (d TrainPlan) Markdown(w io.Writer) {
	fmt.Fprintf(w, "**%s** (%s), %s on %d × %s%s: **%s**, %s.\n\n", cell(d.Model.Name), modelWords(&d.Model), d.Trainer, d.GPUs, d.GPU.Name, d.Setup, d.Verdict, d.sentence())
	fmt.Fprintf(w, "| at the largest moment, %s | size |\n| --- | --: |\n", d.Moments[d.Largest].Name)
	for _, p := range d.Moments[d.Largest].Parts {
		fmt.Fprintf(w, "| %s | %s |\n", p.Name, sizeRange(p.Low, p.High))
	}
	for _, n := range d.Notes {
		fmt.Fprintf(w, "\n- %s", cell(n))
	}
	fmt.Fprintln(w)
}
