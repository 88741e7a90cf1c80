package report

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"strandline/face/api"
)

// Against is the document of `strandline plan --against`.
type Against struct{ *api.Against }

// figures returns the rows that have an observed figure or no plan, and the reasons of
// those that have one.
func (a Against) figures() (t *table, why []string) {
	t = &table{right: map[int]bool{2: true, 3: true, 4: true}}
	t.row("row", "component", "observed", "planned", "error", "")
	for _, r := range a.Rows {
		if r.Observed == nil && r.Unplanned == nil {
			continue
		}
		mark, observed := "", ""
		if r.Observed != nil {
			observed = figure(*r.Observed)
		}
		switch {
		case r.Reason != nil:
			mark = "reason"
			why = append(why, r.ID+" "+r.Component+": "+*r.Reason)
		case r.Unplanned != nil:
			mark = "no plan"
			why = append(why, r.ID+" "+r.Component+": no plan: "+*r.Unplanned)
		case r.Inside != nil && !*r.Inside:
			mark = "outside"
		}
		t.row(r.ID, r.Component, observed, planned(r.Planned), percent(r.Error), mark)
	}
	return t, why
}

// sums returns the figures summed up by component.
func (a Against) sums() *table {
	t := &table{right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true}}
	t.row("component", "figures", "mean |error|", "worst", "with reason", "in range")
	for _, c := range a.Summary {
		in := ""
		if c.Ranges > 0 {
			in = fmt.Sprintf("%d of %d", c.Inside, c.Ranges)
		}
		t.row(c.Component, strconv.Itoa(c.Rows), percent(c.Mean), percent(c.Worst), strconv.Itoa(c.Excused), in)
	}
	return t
}

// Text writes the rows and the sums.
func (a Against) Text(w io.Writer, s Style) {
	rows, why := a.figures()
	rows.write(w, "  ")
	fmt.Fprintln(w)
	a.sums().write(w, "  ")
	if len(why) > 0 {
		fmt.Fprintln(w)
	}
	for _, line := range why {
		fmt.Fprintln(w, Line(line))
	}
}

// Markdown writes them for a ticket.
func (a Against) Markdown(w io.Writer) {
	rows, why := a.figures()
	rows.markdown(w)
	fmt.Fprintln(w)
	a.sums().markdown(w)
	if len(why) > 0 {
		fmt.Fprintln(w)
	}
	for _, line := range why {
		fmt.Fprintf(w, "- %s\n", cell(line))
	}
}

func planned(v any) string {
	switch x := v.(type) {
	case float64:
		return figure(x)
	case [2]float64:
		return figure(x[0]) + "–" + figure(x[1])
	}
	return ""
}

// figure prints a figure of a table.
func figure(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

func percent(x *float64) string {
	if x == nil {
		return ""
	}
	const half = 0.005
	if math.Abs(*x) < half { // no negative zero
		return "0.00 %"
	}
	return fmt.Sprintf("%.2f %%", *x)
}
