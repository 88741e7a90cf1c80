package engine

import (
	"cmp"
	"context"
	"slices"
	"strconv"

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
	byStep := aligned(j, files)
	doc := page.Wall{Rows: []page.WallRow{}, ByStep: byStep != nil}
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
			stretches := wholeHistory(h.Events())
			if byStep != nil {
				stretches = byStep.stretches(i, h)
			}
			if row.Course, err = d.course(q.ctx, row.Peak, stretches); err != nil {
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

// course is the highest of each of some stretches of events, in thousandths of the peak.
func (d *device) course(ctx context.Context, peak int64, stretches [][2]int) ([]int, error) {
	out := []int{}
	h := d.requested.h
	if h.Events() == 0 || peak <= 0 {
		return out, nil
	}
	level := uint(0)
	for int64(h.Events()) > tile.Buckets<<level {
		level++
	}
	t, err := h.Tile(ctx, nil, tile.Request{Kind: tile.Total, Axis: d.events, Level: level})
	if err != nil {
		return nil, err
	}
	highest := t.Highest()
	for _, s := range stretches {
		var most int64
		if s[0] < s[1] {
			most = slices.Max(highest[s[0]>>level : min((s[1]-1)>>level+1, len(highest))])
		}
		out = append(out, int(float64(most)/float64(peak)*1000+0.5))
	}
	return out, nil
}

// wholeHistory divides so many events evenly.
func wholeHistory(events int) (out [][2]int) {
	return divided(nil, 0, events, min(events, wallColumns))
}

// divided adds n parts of the events from one to another, each of at least one event if there is any.
func divided(out [][2]int, from, to, n int) [][2]int {
	for i := range n {
		at := from + (to-from)*i/n
		out = append(out, [2]int{at, max(from+(to-from)*(i+1)/n, min(at+1, to))})
	}
	return out
}

// A pointed is a device of a file, or any of them, or a file without a picture.
type pointed struct {
	f, d int
	any  bool
}

// newest are the newest files of each process, by its name, or of each rank of a job.
func (j *judgment) newest() map[string]string {
	out := map[string]string{}
	if job := j.answer.Job; job != nil {
		for i := range job.Rows {
			out[strconv.Itoa(job.Rows[i].Rank)] = job.Rows[i].Text
		}
	}
	for _, p := range j.judged() {
		out[p.name] = p.newest
	}
	return out
}

// pointedTo are the places of the first findings that point to files.
func (e *Engine) pointedTo(j *judgment) map[pointed]*int {
	out := map[pointed]*int{}
	if j == nil {
		return out
	}
	newest := j.newest()
	for i := range j.answer.Findings {
		found := &j.answer.Findings[i]
		var to pointed
		if where := e.whereIs(j, found); where != nil {
			if to = (pointed{f: where.F, any: where.D == nil}); !to.any {
				to.d = *where.D
			}
		} else {
			path, _ := Evident(found)
			if to = (pointed{f: e.indexOfPath(cmp.Or(path, newest[found.Process], found.Process)), any: true}); to.f < 0 {
				continue
			}
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
