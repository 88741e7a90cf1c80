package report

import (
	"fmt"
	"io"
	"time"

	"strandline/internal/shell"
	"strandline/units"
)

// writeReclaim prints the policy to use, and those that are nearly as good.
func (d *Simulation) writeReclaim(w io.Writer, s Style) {
	r := d.Reclaim
	fmt.Fprintln(w)
	for _, line := range wrap(r.Text, s.columns()) {
		fmt.Fprintln(w, s.bold(line))
	}
	if r.Policy != nil {
		fmt.Fprintln(w, "  strandline record --reclaim "+shell.Word(Line(*r.Policy))+" -- CMD…")
	}
	if len(r.Tried) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := table{right: map[int]bool{1: true, 2: true, 4: true}}
	t.row("reclaim", "calls", "peak", "settles at", "est. cost")
	const maxRows = 6
	shown, last := 0, "" // the first of those with the same result
	for i := range r.Tried {
		p := &r.Tried[i]
		if shown == maxRows {
			break
		}
		peak, level := int64(0), ""
		for _, on := range p.Devices {
			if on.Reserved > peak && on.After != nil {
				level = units.Bytes(*on.After) + " to " + units.Bytes(*on.Before)
			}
			peak = max(peak, on.Reserved)
		}
		if row := fmt.Sprint(p.Calls, peak, level); row != last {
			shown++
			last = row
			t.row(p.Policy, units.Count(int64(p.Calls)), units.Bytes(peak), level, units.Duration(time.Duration(p.CostMS*float64(time.Millisecond))))
		}
	}
	t.write(w, "  ")
	if n := len(r.Tried) - shown; n > 0 {
		fmt.Fprintf(w, "  others tried: %s\n", units.Count(int64(n)))
	}
	for _, note := range r.Notes {
		printWrapped(w, s, "", "note: "+note)
	}
}
