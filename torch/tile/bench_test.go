package tile

import (
	"context"
	"slices"
	"testing"

	"strandline/internal/test/synth"
	"strandline/torch/timeline"
)

// coarsest is the level at which the whole history takes about 1200 columns.
func coarsest(h *History) (level uint) {
	for h.Events()>>level > 1200 {
		level++
	}
	return level
}

func benchmarked(b *testing.B) (*timeline.Timeline, *History, *Bands) {
	b.Helper()
	t := timelineOf(b, synth.Trace(slices.Max(synth.Lengths())))
	h := NewHistory(t)
	bands, err := NewBands(h, ByLine)
	if err != nil {
		b.Fatal(err)
	}
	return t, h, bands
}

func BenchmarkHistory(b *testing.B) {
	t, _, _ := benchmarked(b)
	for b.Loop() {
		NewHistory(t)
	}
}

func BenchmarkBands(b *testing.B) {
	_, h, _ := benchmarked(b)
	for _, g := range []Grouping{ByLine, ByStack, BySize, ByPurpose} {
		b.Run(string(g), func(b *testing.B) {
			for b.Loop() {
				if _, err := NewBands(h, g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPicture draws all tiles of a picture of the whole history, and tiles
// of windows inside it.
func BenchmarkPicture(b *testing.B) {
	_, h, bands := benchmarked(b)
	top := coarsest(h)
	solo := []Key{bands.Groups[0].Key}
	for _, c := range []struct {
		name  string
		kind  Kind
		level uint
		solo  []Key
	}{
		{"totals", Total, top, nil}, {"bands", Banded, top, nil}, {"bands, 1 of 64", Banded, top - 6, nil}, {"solo", Banded, top, solo},
		{"allocations", Single, top, nil}, {"allocations, 16 events", Single, 4, nil}, {"allocations, 1 event", Single, 0, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				first := h.Events() / 2 >> c.level / Buckets
				last := first + 4
				if c.level == top {
					first, last = 0, h.Events()>>top/Buckets
				}
				for i := first; i <= last; i++ {
					t, err := h.Tile(context.Background(), bands, Request{Kind: c.kind, Axis: h.EventAxis(), Level: c.level, Index: i, Scale: 23, Solo: c.solo})
					if err != nil {
						b.Fatal(err)
					}
					t.Encode(bands, false)
				}
			}
		})
	}
}

func BenchmarkHit(b *testing.B) {
	_, h, bands := benchmarked(b)
	k := h.Events() / 3 * 2
	for b.Loop() {
		bands.Hit(k, h.Live(k)/2, nil)
	}
}
