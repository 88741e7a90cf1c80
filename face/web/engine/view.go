package engine

import (
	"context"
	"slices"

	"strandline/face/api/page"
	"strandline/torch/tile"
)

// A View is one device of a file that was read, for callers in Go that need what the page
// requests by name. Bytes are as requested.
type View struct {
	F, D int // the file and the device as questions name them
	e    *Engine
	c    *content
	d    *measured
}

// Views are the devices of all files that were read, file by file.
func (e *Engine) Views() (out []View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, f := range e.files {
		if f.content == nil {
			continue
		}
		for _, d := range f.devices {
			out = append(out, View{i, d.requested.h.Device, e, f.content, d.requested})
		}
	}
	return out
}

// Device are the facts of the device.
func (v View) Device() page.Device { return v.c.device(v.d) }

// Bands are the groups and bands of a grouping.
func (v View) Bands(g tile.Grouping) (page.Bands, error) {
	b, err := v.d.grouped(g)
	if err != nil {
		return page.Bands{}, err
	}
	return newBandsDoc(b), nil
}

// State is the allocator's state after event k, its blocks in groups.
func (v View) State(g tile.Grouping, k int) (*page.State, error) {
	b, err := v.d.grouped(g)
	if err != nil {
		return nil, err
	}
	return v.d.state(b, k), nil
}

// Peak is the highest number of bytes that were requested at once, or at the end.
func (v View) Peak() int64 { return max(v.d.h.PeakRequested.Bytes, v.d.h.EndRequested) }

// Size returns how many bytes were requested for an allocation.
func (v View) Size(alloc int) int64 { return v.d.h.Size(alloc) }

// Last are the last events that next goes to, up to most of them, the earliest first.
func (v View) Last(to string, maxValues int) (out []int, err error) {
	for k := v.d.h.Events() - 1; len(out) < maxValues && k >= 0; {
		next, err := v.d.next(k, to, true)
		if err != nil {
			return nil, err
		}
		if next == nil {
			break
		}
		k = *next
		out = append(out, k)
	}
	slices.Reverse(out)
	return out, nil
}

// Witnesses are the events whose state a picture of the whole history shows, with
// columns of 2^level events.
func (v View) Witnesses(ctx context.Context, level int) (out []int, err error) {
	for i := 0; i*tile.Buckets<<level < v.d.h.Events(); i++ {
		t, err := v.d.h.Tile(ctx, nil, tile.Request{Kind: tile.Total, Axis: v.d.events, Level: uint(level), Index: i})
		if err != nil {
			return nil, err
		}
		out = append(out, t.Witnesses()...)
	}
	return out, nil
}

// Allocs is a tile that shows allocations one by one, along events and grouped by line,
// as the page reads it, and the allocations in it: none where there are too many.
func (v View) Allocs(ctx context.Context, level, index, scale int) (body []byte, allocs []int, err error) {
	b, err := v.d.grouped(tile.ByLine)
	if err != nil {
		return nil, nil, err
	}
	t, err := v.d.h.Tile(ctx, b, tile.Request{Kind: tile.Single, Axis: v.d.events, Level: uint(level), Index: index, Scale: uint(scale)})
	if err != nil {
		return nil, nil, err
	}
	return t.Encode(b, v.c.snap.Partial != nil), t.Allocs(), nil
}

// Replay returns the replay of the history under its own settings. It fails before the
// history was replayed, and where there is none.
func (v View) Replay() (page.Replay, error) {
	x, err := v.d.replayable()
	if err != nil {
		return page.Replay{}, err
	}
	return replayOf(x), nil
}
