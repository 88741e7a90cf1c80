package tile

import (
	"context"
	"fmt"
	"slices"
)

// A Rect is an allocation, or several small ones, over some columns.
type Rect struct {
	From, To int   // columns
	Below    int64 // bytes below it
	Bytes    int64
	Alloc    int // Strip where there are several
	Band     int // the first, of whole bands
	Count    int // allocations
	Bands    int // how many whole bands it stands for, if more than 1
}

// Strip stands in the place of an allocation where a rectangle is several.
const Strip = -1

// How many rectangles a tile may have, and how many allocations may be looked at
// for it, counted once for each column in which they are live.
const (
	mostRects = 4096
	mostSteps = 8 << 20
)

// An item is one allocation of a tile, or several small ones in a row that live
// in all its columns.
type item struct {
	from, to int32 // columns
	band     int32
	alloc    int32 // Strip for several
	count    int32
	bytes    int64
	rect     int32 // the open rectangle that the item has, or none
	strip    int32 // the open strip that begins behind the item, or none
}

// single fills the rectangles. It is not done if there are too many.
func (t *Tile) single(ctx context.Context, b *Bands, keep []bool) (done bool, err error) {
	if len(t.Columns) == 0 {
		return true, nil
	}
	items := t.items(b, keep)
	w := stacker{t: t, items: items, first: b.runs(t.smallBands(b, items)), strips: make32(len(b.Bands))}
	w.collapse()
	return w.run(ctx)
}

// items are the allocations that live at some witness, by band and birth.
func (t *Tile) items(b *Bands, keep []bool) []item {
	h := b.h
	first, last := t.Columns[0].Witness, t.Columns[len(t.Columns)-1].Witness
	counts := make([]int, len(b.Bands)+1)
	var found []item
	for block, end := range h.lastDeath {
		from := block * blockLen
		if int(end) <= first {
			continue
		}
		if h.Birth(from) > last {
			break
		}
		for i := from; i < min(from+blockLen, len(h.Allocs)); i++ {
			band, birth, death := b.of[i], h.Birth(i), h.Death(i)
			if birth > last {
				break
			}
			if keep != nil && !keep[band] || death >= 0 && death <= first {
				continue
			}
			x := item{from: int32(t.sortedColumn(birth)), to: int32(len(t.Columns)), band: band, alloc: int32(i), count: 1,
				bytes: h.Size(i), rect: none, strip: none}
			if death >= 0 {
				x.to = int32(t.sortedColumn(death))
			}
			if x.from < x.to {
				found = append(found, x)
				counts[band+1]++
			}
		}
	}
	for i := range b.Bands {
		counts[i+1] += counts[i]
	}
	sorted := make([]item, len(found))
	for _, x := range found {
		sorted[counts[x.band]] = x
		counts[x.band]++
	}
	return sorted
}

// smallBands are the bands that stay below the threshold in all columns.
func (t *Tile) smallBands(b *Bands, items []item) []bool {
	small := make([]bool, len(b.Bands))
	for i := range small {
		small[i] = true
	}
	change := make([]int64, len(t.Columns)+1)
	for i := 0; i < len(items); {
		band := items[i].band
		clear(change)
		for ; i < len(items) && items[i].band == band; i++ {
			change[items[i].from] += items[i].bytes
			change[items[i].to] -= items[i].bytes
		}
		var live int64
		for _, v := range change {
			if live += v; live >= t.Threshold {
				small[band] = false
				break
			}
		}
	}
	return small
}

// runs gives each band the first of the small bands around it, with which it
// shares a strip; a band that is not small stands alone.
func (b *Bands) runs(small []bool) []int32 {
	first := make([]int32, len(small))
	for i := range first {
		first[i] = int32(i)
		if i > 0 && small[i] && small[i-1] && b.Bands[i].Fate == b.Bands[i-1].Fate {
			first[i] = first[i-1]
		}
	}
	return first
}

// stacker lays items on each other, column by column.
type stacker struct {
	t      *Tile
	items  []item  // in the order of the stack
	first  []int32 // of the bands that share a strip, by band
	strips []int32 // the open strip at the bottom of a band, or none
}

// collapse makes one item of small neighbours that live in all columns.
func (w *stacker) collapse() {
	out := w.items[:0]
	for _, x := range w.items {
		if n := len(out); n > 0 && w.all(&x) && w.all(&out[n-1]) && w.first[x.band] == w.first[out[n-1].band] {
			out[n-1].bytes += x.bytes
			out[n-1].count += x.count
			out[n-1].alloc = Strip
			continue
		}
		out = append(out, x)
	}
	w.items = out
}

// all reports whether x is a small allocation, or several, that live in all columns.
func (w *stacker) all(x *item) bool {
	return x.from == 0 && int(x.to) == len(w.t.Columns) && !w.large(x)
}

// large reports whether x is an allocation to be drawn alone.
func (w *stacker) large(x *item) bool {
	return x.alloc != Strip && x.bytes >= w.t.Threshold
}

// run goes through the columns.
func (w *stacker) run(ctx context.Context) (done bool, err error) {
	born := make([][]int32, len(w.t.Columns))
	for i := range w.items {
		born[w.items[i].from] = append(born[w.items[i].from], int32(i))
	}
	var live []int32
	steps := 0
	for c := range w.t.Columns {
		if c%64 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		live = w.next(live, born[c], c)
		if steps += len(live); steps > mostSteps {
			return false, nil
		}
		sum := w.column(c, live)
		if sum != w.t.Columns[c].Max {
			return false, fmt.Errorf("the allocations at event %d sum to %d bytes, and %d are live", w.t.Columns[c].Witness, sum, w.t.Columns[c].Max)
		}
		if len(w.t.Rects) > mostRects {
			return false, nil
		}
	}
	return true, nil
}

// next is what lives in column c: of the column before what still does, and what
// is born.
func (w *stacker) next(live, born []int32, c int) []int32 {
	live = slices.DeleteFunc(live, func(i int32) bool { return int(w.items[i].to) <= c })
	if len(born) == 0 {
		return live
	}
	live = append(live, born...)
	slices.Sort(live)
	return live
}

// column stacks what lives in column c and returns its height.
func (w *stacker) column(c int, live []int32) (below int64) {
	var strip *int32 // where the strip under way is kept
	var open Rect
	flush := func() {
		if strip != nil {
			*strip = w.extend(*strip, open)
			strip = nil
		}
	}
	band, behind := int32(none), (*int32)(nil)
	for _, i := range live {
		x := &w.items[i]
		if first := w.first[x.band]; first != band {
			flush()
			band, behind = first, &w.strips[first]
		}
		if w.large(x) {
			flush()
			x.rect = w.extend(x.rect, Rect{From: c, To: c + 1, Below: below, Bytes: x.bytes, Alloc: int(x.alloc), Band: int(x.band), Count: 1})
			behind = &x.strip
		} else {
			if strip == nil {
				strip = behind
				open = Rect{From: c, To: c + 1, Below: below, Alloc: Strip, Band: int(band)}
			}
			open.Bytes += x.bytes
			open.Count += int(x.count)
			if open.Alloc = Strip; open.Count == 1 {
				open.Alloc = int(x.alloc)
			}
			open.Bands = int(x.band-band) + 1
		}
		below += x.bytes
	}
	flush()
	return below
}

// extend makes rectangle i one column wider if what follows is at the same place,
// within a quarter of a pixel, and else opens a new one.
func (w *stacker) extend(i int32, r Rect) int32 {
	quarter := w.t.Threshold / 8
	near := func(a, b int64) bool { return a-b <= quarter && b-a <= quarter }
	if i != none {
		old := &w.t.Rects[i]
		if old.To == r.From && near(old.Below, r.Below) && near(old.Bytes, r.Bytes) && (old.Alloc == r.Alloc || r.Count > 1 && old.Count > 1) {
			old.To = r.To
			old.Bands = max(old.Bands, r.Bands)
			return i
		}
	}
	w.t.Rects = append(w.t.Rects, r)
	return int32(len(w.t.Rects) - 1)
}
