package tile

import (
	"context"
	"fmt"
	"slices"
)

// A rect is an allocation, or several small ones, over some columns.
type rect struct {
	from, to int   // columns
	below    int64 // bytes below it
	bytes    int64
	alloc    int // stripID where there are several
	band     int // the first, of whole bands
	count    int // allocations
	bands    int // how many whole bands it represents, if more than 1
}

// stripID replaces the number of an allocation where a rectangle is several.
const stripID = -1

// How many rectangles a tile may have, and how many allocations may be looked at
// for it, counted once for each column in which they are live.
const (
	maxRects = 4096
	maxSteps = 8 << 20
)

// An item is one allocation of a tile, or several small ones in a row that live
// in all its columns.
type item struct {
	from, to int32 // columns
	band     int32
	alloc    int32 // stripID for several
	count    int32
	bytes    int64
	rect     int32 // the open rectangle that the item has, or none
	strip    int32 // the open strip that begins behind the item, or none
}

// single fills the rectangles. It is not done if there are too many.
func (t *Tile) single(ctx context.Context, b *Bands, keep []bool) (done bool, err error) {
	if len(t.columns) == 0 {
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
	first, last := t.columns[0].witness, t.columns[len(t.columns)-1].witness
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
			x := item{from: int32(t.sortedColumn(birth)), to: int32(len(t.columns)), band: band, alloc: int32(i), count: 1,
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
	change := make([]int64, len(t.columns)+1)
	for i := 0; i < len(items); {
		band := items[i].band
		clear(change)
		for ; i < len(items) && items[i].band == band; i++ {
			change[items[i].from] += items[i].bytes
			change[items[i].to] -= items[i].bytes
		}
		var live int64
		for _, v := range change {
			if live += v; live >= t.threshold {
				small[band] = false
				break
			}
		}
	}
	return small
}

// runs gives each band the first of the small bands around it, with which it
// shares a strip; a band that is not small is alone.
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

// collapse makes one item of small neighbors that live in all columns.
func (w *stacker) collapse() {
	out := w.items[:0]
	for _, x := range w.items {
		if n := len(out); n > 0 && w.all(&x) && w.all(&out[n-1]) && w.first[x.band] == w.first[out[n-1].band] {
			out[n-1].bytes += x.bytes
			out[n-1].count += x.count
			out[n-1].alloc = stripID
			continue
		}
		out = append(out, x)
	}
	w.items = out
}

// all reports whether x is a small allocation, or several, that live in all columns.
func (w *stacker) all(x *item) bool {
	return x.from == 0 && int(x.to) == len(w.t.columns) && !w.large(x)
}

// large reports whether x is an allocation to be drawn alone.
func (w *stacker) large(x *item) bool {
	return x.alloc != stripID && x.bytes >= w.t.threshold
}

// run goes through the columns.
func (w *stacker) run(ctx context.Context) (done bool, err error) {
	born := make([][]int32, len(w.t.columns))
	for i := range w.items {
		born[w.items[i].from] = append(born[w.items[i].from], int32(i))
	}
	var live []int32
	steps := 0
	for c := range w.t.columns {
		if c%64 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		live = w.next(live, born[c], c)
		if steps += len(live); steps > maxSteps {
			return false, nil
		}
		sum := w.column(c, live)
		if sum != w.t.columns[c].max {
			return false, fmt.Errorf("the allocations at event %d sum to %d bytes, and %d are live", w.t.columns[c].witness, sum, w.t.columns[c].max)
		}
		if len(w.t.rects) > maxRects {
			return false, nil
		}
	}
	return true, nil
}

// next returns what lives in column c: of the column before what still does, and what
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
	var open rect
	flush := func() {
		if strip != nil {
			*strip = w.extend(*strip, open)
			strip = nil
		}
	}
	band, strips := int32(none), (*int32)(nil)
	for _, i := range live {
		x := &w.items[i]
		if first := w.first[x.band]; first != band {
			flush()
			band, strips = first, &w.strips[first]
		}
		if w.large(x) {
			flush()
			x.rect = w.extend(x.rect, rect{from: c, to: c + 1, below: below, bytes: x.bytes, alloc: int(x.alloc), band: int(x.band), count: 1})
			strips = &x.strip
		} else {
			if strip == nil {
				strip = strips
				open = rect{from: c, to: c + 1, below: below, alloc: stripID, band: int(band)}
			}
			open.bytes += x.bytes
			open.count += int(x.count)
			if open.alloc = stripID; open.count == 1 {
				open.alloc = int(x.alloc)
			}
			open.bands = int(x.band-band) + 1
		}
		below += x.bytes
	}
	flush()
	return below
}

// extend makes rectangle i one column wider if what follows is at the same place,
// within a quarter of a pixel, and else opens a new one.
func (w *stacker) extend(i int32, r rect) int32 {
	quarter := w.t.threshold / 8
	near := func(a, b int64) bool { return a-b <= quarter && b-a <= quarter }
	if i != none {
		old := &w.t.rects[i]
		if old.to == r.from && near(old.below, r.below) && near(old.bytes, r.bytes) && (old.alloc == r.alloc || r.count > 1 && old.count > 1) {
			old.to = r.to
			old.bands = max(old.bands, r.bands)
			return i
		}
	}
	w.t.rects = append(w.t.rects, r)
	return int32(len(w.t.rects) - 1)
}
