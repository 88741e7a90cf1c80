package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"strandline/face/api"
	"strandline/plan/observed"
)

// Against is the document of `strandline plan --against`.
type Against struct {
	api.Against
}

// NewAgainst renders a table compared with its plans.
func NewAgainst(table string, rows []observed.Compared) *Against {
	a := &Against{Against: api.Against{Schema: api.PlanSchema, Table: table, Rows: []api.AgainstRow{}, Summary: []api.AgainstSum{}}}
	for i := range rows {
		c := &rows[i]
		r := api.AgainstRow{ID: c.ID, Component: c.Component, Observed: c.Observed, Error: c.Error}
		switch {
		case c.Unplanned != "":
			r.Unplanned = &c.Unplanned
		case c.Point:
			r.Planned = c.Low
		default:
			r.Planned = [2]float64{c.Low, c.High}
			if c.Observed != nil {
				in := c.Inside()
				r.Inside = &in
			}
		}
		if c.Reason != "" {
			r.Reason = &c.Reason
		}
		a.Rows = append(a.Rows, r)
	}
	for _, name := range components(rows) {
		a.Summary = append(a.Summary, summed(name, rows))
	}
	return a
}

func components(rows []observed.Compared) (names []string) {
	for i := range rows {
		if !slices.Contains(names, rows[i].Component) {
			names = append(names, rows[i].Component)
		}
	}
	return names
}

func summed(name string, rows []observed.Compared) api.AgainstSum {
	s := api.AgainstSum{Component: name}
	sum, n := 0.0, 0
	for i := range rows {
		c := &rows[i]
		if c.Component != name || c.Observed == nil {
			continue
		}
		s.Rows++
		switch {
		case c.Unplanned != "":
			s.Unplanned++
			continue
		case !c.Point:
			s.Ranges++
			if c.Inside() {
				s.Inside++
			}
		}
		switch {
		case c.Error == nil:
		case c.Reason != "":
			s.Excused++
		default:
			e := math.Abs(*c.Error)
			sum += e
			n++
			if s.Worst == nil || e > *s.Worst {
				s.Worst = &e
			}
		}
	}
	if n > 0 {
		mean := sum / float64(n)
		s.Mean = &mean
	}
	return s
}

// figures returns the rows that have an observed figure or no plan, and the reasons of
// those that have one.
func (a *Against) figures() (t *table, why []string) {
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
func (a *Against) sums() *table {
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
func (a *Against) Text(w io.Writer, s Style) {
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
func (a *Against) Markdown(w io.Writer) {
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
