package tile

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"strandline/torch/timeline"
)

// Buckets is how many columns a tile has at most.
const Buckets = 256

// A Kind states what a tile draws.
type Kind uint8

// The kinds of tile.
const (
	Total  Kind = iota // what is live in all
	Banded             // bands
	Single             // allocations
)

// A Request asks for a tile.
type Request struct {
	Kind  Kind
	Axis  *Axis
	Level uint // a bucket is 2^Level places wide
	Index int  // of the tile: its first bucket is Buckets·Index
	// Scale is the base-2 logarithm of the bytes that a pixel represents.
	Scale uint
	// Solo are the groups to draw, nil for all.
	Solo []Key
}

// The highest level and scale.
const (
	MaxLevel = 52
	MaxScale = 48
)

// A Tile is a piece of a picture.
type Tile struct {
	Request
	first     int64 // number of the first bucket
	columns   []column
	end       int   // the event after the last
	threshold int64 // bytes below which things were merged
	// Crowded marks a tile of bands that was asked to show allocations, of which
	// there are too many.
	crowded bool
	entries []entry
	rects   []rect
}

// A column is what a bucket holds: live bytes and reserved ones.
type column struct {
	first    int // event; the bucket ends where the next begins
	witness  int // event with the highest total, whose state is drawn
	max, min int64
	last     int64
	reserved int64 // highest
}

// An entry is a band, or a run of small ones, in all columns.
type entry struct {
	first, count int // bands
	heights      []int64
}

// Tile computes a tile. Bands may be nil for a tile of totals without solo.
func (h *History) Tile(ctx context.Context, b *Bands, r Request) (*Tile, error) {
	t := &Tile{Request: r, first: int64(r.Index) * Buckets, threshold: 2 << r.Scale}
	h.columns(t)
	if b == nil {
		return t, nil
	}
	keep := b.solo(r.Solo)
	if keep != nil {
		t.soloColumns(b, keep)
	}
	if r.Kind == Total {
		return t, nil
	}
	if r.Kind == Single {
		done, err := t.single(ctx, b, keep)
		if done || err != nil {
			return t, err
		}
		t.Kind, t.crowded, t.rects = Banded, true, nil
	}
	return t, t.banded(ctx, b, keep)
}

// Highest returns the most bytes that are live in each column.
func (t *Tile) Highest() []int64 {
	out := make([]int64, len(t.columns))
	for i := range t.columns {
		out[i] = t.columns[i].max
	}
	return out
}

// columns finds the buckets of a tile and their totals.
func (h *History) columns(t *Tile) {
	last := t.Axis.Span >> t.Level // the last bucket
	n := int(min(last-t.first+1, Buckets))
	t.end = h.Events()
	if n <= 0 || h.Events() == 0 {
		return
	}
	t.columns = make([]column, n)
	to := t.Axis.event(t.first << t.Level)
	for i := range t.columns {
		from := to
		to = h.Events()
		if bucket := t.first + int64(i); bucket < last {
			to = t.Axis.event((bucket + 1) << t.Level)
		}
		t.columns[i] = h.column(from, to)
	}
	t.end = to
}

// column is the bucket of the events from … to-1. An empty one shows what was
// before.
func (h *History) column(from, to int) column {
	if from == to {
		live := h.Live(from - 1)
		return column{first: from, witness: from - 1, max: live, min: live, last: live, reserved: h.Reserved(from - 1)}
	}
	at := h.high.best(from, to)
	return column{first: from, witness: at, max: h.Live(at), min: h.Live(h.low.best(from, to)), last: h.Live(to - 1),
		reserved: h.taken.highest(from, to)}
}

// solo returns which bands are of the groups, nil if all are.
func (b *Bands) solo(keys []Key) []bool {
	if len(keys) == 0 {
		return nil
	}
	keep := make([]bool, len(b.Bands))
	for i := range b.Bands {
		keep[i] = slices.Contains(keys, b.Groups[b.Bands[i].Group].Key)
	}
	return keep
}

// Witnesses are the events whose state the columns draw.
func (t *Tile) Witnesses() []int {
	out := make([]int, len(t.columns))
	for i := range t.columns {
		out[i] = t.columns[i].witness
	}
	return out
}

// Allocs are the allocations that the tile draws one by one.
func (t *Tile) Allocs() (out []int) {
	for i := range t.rects {
		if a := t.rects[i].alloc; a != stripID {
			out = append(out, a)
		}
	}
	return out
}

// soloColumns counts only the bands to keep: no pyramid knows their extremes.
func (t *Tile) soloColumns(b *Bands, keep []bool) {
	if len(t.columns) == 0 {
		return
	}
	first := t.columns[0].first
	var live int64
	for i, v := range b.at(first - 1) {
		if keep[i] {
			live += v
		}
	}
	for i := range t.columns {
		c := &t.columns[i]
		end := t.endOf(i)
		c.witness, c.max, c.min = c.first, math.MinInt64, math.MaxInt64
		see := func(k int) {
			if live > c.max {
				c.max, c.witness = live, k
			}
			c.min = min(c.min, live)
		}
		seen := c.first // the next event whose state counts
		b.h.changes(c.first, end, func(k int, alloc int32, bytes int64) {
			if keep[b.of[alloc]] {
				if k > seen {
					see(seen)
				}
				live += bytes
				seen = k
			}
		})
		if c.first == end {
			seen = end - 1
		}
		see(seen)
		c.last = live
	}
}

// endOf is the event after the last of column i.
func (t *Tile) endOf(i int) int {
	if i+1 < len(t.columns) {
		return t.columns[i+1].first
	}
	return t.end
}

// maxEntries is how many bands and strips a tile may have.
const maxEntries = 64

// banded fills the entries.
func (t *Tile) banded(ctx context.Context, b *Bands, keep []bool) error {
	n, m := len(t.columns), len(b.Bands)
	if n == 0 {
		return nil
	}
	heights := make([]int64, n*m) // by band, then by column
	highest := make([]int64, m)
	c := b.cursor(t.columns[0].witness)
	for i := range t.columns {
		if i%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		c.move(t.columns[i].witness)
		var sum int64
		for band, v := range c.now {
			if keep == nil || keep[band] {
				heights[band*n+i] = v
				highest[band] = max(highest[band], v)
				sum += v
			}
		}
		if sum != t.columns[i].max {
			return fmt.Errorf("the bands at event %d sum to %d bytes, and %d are live", t.columns[i].witness, sum, t.columns[i].max)
		}
	}
	entries := b.entries(highest, t.threshold)
	for len(entries) > maxEntries && t.threshold < math.MaxInt64/2 {
		t.threshold *= 2
		entries = b.entries(highest, t.threshold)
	}
	for i := range entries {
		e := &entries[i]
		e.heights = heights[e.first*n : (e.first+1)*n]
		for band := e.first + 1; band < e.first+e.count; band++ {
			for k, v := range heights[band*n : (band+1)*n] {
				e.heights[k] += v
			}
		}
	}
	t.entries = entries
	return nil
}

// entries are the bands that reach the threshold, and runs of those between that
// do not. No run crosses from one fate to another.
func (b *Bands) entries(highest []int64, threshold int64) (out []entry) {
	open := false
	for i, v := range highest {
		small := v < threshold
		if small && open && b.Bands[i].Fate == b.Bands[i-1].Fate {
			out[len(out)-1].count++
			continue
		}
		out = append(out, entry{first: i, count: 1})
		open = small
	}
	return out
}

// Hit is the allocation that is drawn at a height after an event.
type Hit struct {
	Alloc int
	Band  int
	Below int64 // bytes below it
}

// Hit finds the allocation at height y, in bytes, after event k.
func (b *Bands) Hit(k int, y int64, solo []Key) (Hit, bool) {
	keep := b.solo(solo)
	below := int64(0)
	for band, v := range b.at(k) {
		if keep != nil && !keep[band] {
			continue
		}
		if y >= below+v || y < below {
			below += v
			continue
		}
		hit := Hit{Alloc: none, Band: band, Below: below}
		b.h.EachLive(k, func(i int) bool {
			if int(b.of[i]) != band {
				return true
			}
			if hit.Below+b.h.Size(i) > y {
				hit.Alloc = i
				return false
			}
			hit.Below += b.h.Size(i)
			return true
		})
		return hit, hit.Alloc != none
	}
	return Hit{}, false
}

// NextPeak is the next event after k at which live memory is highest in a burst:
// a share of the history's peak above the lowest points around it. With back it
// is the one before. It is timeline.Never if there is none.
func (h *History) NextPeak(k int, back bool) int {
	const share = 100
	minBytes := max(h.Peak().Bytes/share, 1)
	step := 1
	if back {
		step = -1
	}
	low, at := h.Live(k), timeline.Never
	for i := k + step; i >= 0 && i < h.Events(); i += step {
		v := h.Live(i)
		switch {
		case at == timeline.Never:
			low = min(low, v)
			if v >= low+minBytes {
				at = i
			}
		case v > h.Live(at) || back && v == h.Live(at):
			at = i
		case v <= h.Live(at)-minBytes:
			return at
		}
	}
	return at
}

// sortedColumn is the first column whose witness is event k or later.
func (t *Tile) sortedColumn(k int) int {
	return sort.Search(len(t.columns), func(i int) bool { return t.columns[i].witness >= k })
}
