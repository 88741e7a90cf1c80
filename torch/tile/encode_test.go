package tile

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"strandline/internal/test/synth"
)

// TestEncoding reads a tile as the page does.
func TestEncoding(t *testing.T) {
	h := NewHistory(timelineOf(t, synth.Trace(3000)))
	b, err := NewBands(h, ByLine)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []Kind{Total, Banded, Single} {
		tile, err := h.Tile(context.Background(), b, Request{Kind: kind, Axis: h.EventAxis(), Level: 3, Index: 1, Scale: 22})
		if err != nil {
			t.Fatal(err)
		}
		r := reader{buf: tile.Encode(b, true)}
		if string(r.take(4)) != "SLT1" || r.buf[4] != byte(kind) || r.buf[6] != 3 || r.buf[7] != 22 {
			t.Fatalf("header % x", r.buf[:8])
		}
		r.at = 8
		n, m := int(r.u32()), int(r.u32())
		if first := r.f64(); n != len(tile.columns) || first != 256 || r.u32() != flagPartial {
			t.Fatalf("%d columns from %v", n, first)
		}
		r.at = 64
		for _, want := range [][]float64{
			columnAt(tile, func(c *column) int { return c.witness }), columnAt(tile, func(c *column) int { return c.first }), {float64(tile.end)},
		} {
			if got := r.array(len(want), func() float64 { return float64(r.u32()) }); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		for _, want := range [][]float64{
			columnAt(tile, func(c *column) int64 { return c.max }), columnAt(tile, func(c *column) int64 { return c.min }),
			columnAt(tile, func(c *column) int64 { return c.last }), columnAt(tile, func(c *column) int64 { return c.reserved }),
		} {
			if got := r.array(n, r.f64); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		var sizes []func() float64
		f32 := func() float64 { return float64(math.Float32frombits(r.u32())) }
		u32 := func() float64 { return float64(r.u32()) }
		u16 := func() float64 { return float64(binary.LittleEndian.Uint16(r.take(2))) }
		switch kind {
		case Banded:
			if ids := r.array(m, u32); len(ids) == 0 || m != len(tile.entries) {
				t.Fatal("no entries")
			}
			r.array(m, u32)
			heights := r.array(m*n, f32)
			if got, want := heights[n], float64(float32(tile.entries[1].heights[0])); got != want {
				t.Errorf("height %v, want %v", got, want)
			}
		case Single:
			sizes = []func() float64{u16, u16, r.f64, f32, u32, u32, u32, u16}
			for _, read := range sizes {
				if got := r.array(m, read); len(got) == 0 || m != len(tile.rects) {
					t.Fatal("no rectangles")
				}
			}
		}
		if r.at != len(r.buf) {
			t.Errorf("%d bytes are left of %d", len(r.buf)-r.at, len(r.buf))
		}
	}
}

func columnAt[N int | int64](tile *Tile, f func(*column) N) (out []float64) {
	for i := range tile.columns {
		out = append(out, float64(f(&tile.columns[i])))
	}
	return out
}

type reader struct {
	buf []byte
	at  int
}

func (r *reader) take(n int) []byte { r.at += n; return r.buf[r.at-n : r.at] }

func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }

func (r *reader) f64() float64 { return math.Float64frombits(binary.LittleEndian.Uint64(r.take(8))) }

func (r *reader) array(n int, f func() float64) (out []float64) {
	for range n {
		out = append(out, f())
	}
	r.at = (r.at + 7) / 8 * 8
	return out
}
