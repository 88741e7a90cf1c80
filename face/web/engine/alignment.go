package engine

import (
	"strandline/torch/digest"
	"strandline/torch/tile"
)

// An alignment lays the rows of the wall out by step, so that one step of all processes stands in
// one column.
type alignment struct {
	of    map[pointed]*digest.Device
	steps int  // the most of any row
	late  bool // histories have lost their beginning: they are aligned at their ends
}

// aligned is the alignment of files, nil unless the steps of all that are drawn are known.
func aligned(j *judgment, files []file) *alignment {
	if j == nil || j.answer.Snapshots == nil {
		return nil
	}
	digests := map[string]*digest.File{}
	for _, p := range j.answer.Snapshots.Processes {
		for _, f := range p.Files {
			digests[f.Name] = f
		}
	}
	out := &alignment{of: map[pointed]*digest.Device{}}
	for i, f := range files {
		for _, x := range f.devicesOf() {
			h := x.requested.h
			if h.Events() == 0 {
				continue
			}
			if digests[f.Path] == nil {
				return nil
			}
			d := digests[f.Path].Device(h.Device)
			if !d.Steps.Known() || len(d.Steps.Ends) == 0 {
				return nil
			}
			out.of[pointed{f: i, d: h.Device}] = d
			out.steps, out.late = max(out.steps, len(d.Steps.Ends)), out.late || !d.Complete
		}
	}
	if len(out.of) < 2 || out.steps >= wallColumns/2 { // of so many steps none can be told from the next
		return nil
	}
	return out
}

// stretches are the events of each column of a row: as many for each step, and for what was before
// the first.
func (a *alignment) stretches(f int, h *tile.History) (out [][2]int) {
	d := a.of[pointed{f: f, d: h.Device}]
	if d == nil {
		return nil
	}
	each := wallColumns / (a.steps + 1)
	missing := a.steps - len(d.Steps.Ends)
	if a.late {
		out = divided(out, 0, 0, each*missing)
	}
	from := 0
	for i, end := range append([]int{max(d.Steps.Begin, -1)}, d.Steps.Ends...) {
		to := min(end+1, h.Events())
		if i == len(d.Steps.Ends) {
			to = h.Events() // what came after the last step is drawn with it
		}
		out = divided(out, from, to, each)
		from = to
	}
	if !a.late {
		out = divided(out, 0, 0, each*missing)
	}
	return out
}
