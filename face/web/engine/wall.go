package engine

import (
	"context"

	"strandline/face/api/page"
	"strandline/torch/snapshot"
	"strandline/torch/tile"
)

// wallColumns is the most columns of a row of the wall.
const wallColumns = 96

// wall is an overview of all files that were read so far.
func (q *question) wall() (any, error) {
	e := q.e
	e.mu.Lock()
	files := make([]file, 0, len(e.files))
	for _, f := range e.files {
		files = append(files, file{Source: f.Source, state: f.state, content: f.content})
	}
	j := e.judgment
	e.mu.Unlock()
	at := e.pointedTo(j)
	doc := page.Wall{Rows: []page.WallRow{}}
	for i, f := range files {
		switch {
		case f.state == judged:
			doc.Rows = append(doc.Rows, page.WallRow{F: i, Course: []int{}, Finding: worst(at, i, snapshot.Host)})
		case f.content == nil:
			continue
		}
		for _, d := range f.devicesOf() {
			h := d.requested.h
			row := page.WallRow{F: i, D: &h.Device, Peak: max(h.PeakRequested.Bytes, h.EndRequested), End: h.EndRequested, Finding: worst(at, i, h.Device)}
			var err error
			if row.Course, err = d.course(q.ctx, row.Peak); err != nil {
				return nil, err
			}
			doc.Rows = append(doc.Rows, row)
		}
	}
	return doc, nil
}

func (f *file) devicesOf() []*device {
	if f.content == nil {
		return nil
	}
	return f.devices
}

// course is the highest of each stretch of events, in thousandths of the peak.
func (d *device) course(ctx context.Context, peak int64) ([]int, error) {
	out := []int{}
	h := d.requested.h
	if h.Events() == 0 || peak <= 0 {
		return out, nil
	}
	level := uint(0)
	for int64(h.Events())>>level > wallColumns {
		level++
	}
	t, err := h.Tile(ctx, nil, tile.Request{Kind: tile.Total, Axis: d.events, Level: level})
	if err != nil {
		return nil, err
	}
	for _, bytes := range t.Highest() {
		out = append(out, int(float64(bytes)/float64(peak)*1000+0.5))
	}
	return out, nil
}

// A pointed is a device of a file, or any of them, or a file without a picture.
type pointed struct {
	f, d int
	any  bool
}

// pointedTo are the places of the first findings that point to files.
func (e *Engine) pointedTo(j *judgment) map[pointed]*int {
	out := map[pointed]*int{}
	if j == nil {
		return out
	}
	byPath := map[string]int{}
	for i, f := range e.files {
		byPath[f.Path] = i
	}
	for i := range j.answer.Findings {
		found := &j.answer.Findings[i]
		var to pointed
		if where := e.whereIs(j, found); where != nil {
			if to = (pointed{f: where.F, any: where.D == nil}); !to.any {
				to.d = *where.D
			}
		} else if f, ok := byPath[found.Process]; ok {
			to = pointed{f: f, any: true}
		}
		if out[to] == nil {
			out[to] = &i
		}
	}
	return out
}

// worst is the place of the first finding that points to a device of a file, nil if there is
// none.
func worst(at map[pointed]*int, f, d int) *int {
	any, own := at[pointed{f: f, any: true}], at[pointed{f: f, d: d}]
	if own == nil || any != nil && *any < *own {
		return any
	}
	return own
}
