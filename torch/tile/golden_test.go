package tile

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/internal/test/synth"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden compares the bands and coarse tiles of some histories with files
// that a person has read.
func TestGolden(t *testing.T) {
	read := func(file string) *snapshot.Snapshot {
		s, err := snapshot.Open(file, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, s := range map[string]*snapshot.Snapshot{
		"image-leak": read("../../examples/image-leak/step-4.pickle"),
		"pending":    read("../snapshot/testdata/w07_streams_pools.default.pending.pickle"),
		"synthetic":  synth.Trace(1000),
	} {
		d := s.Devices()[0]
		h := NewHistory(timeline.New(s, d))
		var out strings.Builder
		for _, g := range []Grouping{ByLine, ByPurpose, ByPool} {
			b, err := NewBands(h, g)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "by %s, bottom to top\n", g)
			describe(&out, b)
			for _, kind := range []Kind{Banded, Single} {
				r := Request{Kind: kind, Axis: h.EventAxis(), Level: 8, Scale: 22}
				tile, err := h.Tile(context.Background(), b, r)
				if err != nil {
					t.Fatal(err)
				}
				tile.describe(&out)
			}
		}
		file := filepath.Join("testdata", "golden", name+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(out.String()), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || string(want) != out.String() {
			t.Errorf("%s differs (%v); if that is meant, run go test ./torch/tile -update. Got:\n%s", name, err, out.String())
		}
	}
}

// describe lists the bands, except for a long list's middle.
func describe(out *strings.Builder, b *Bands) {
	const ends = 8
	for i, x := range b.Bands {
		if i == ends && len(b.Bands) > 2*ends {
			fmt.Fprintln(out, "  …")
		}
		if i >= ends && i < len(b.Bands)-ends {
			continue
		}
		g := &b.Groups[x.Group]
		fmt.Fprintf(out, "  %3d %-7s %s %-40s peak %s, %d allocations\n", i, x.Fate, g.Key, g.Label, units.Bytes(x.Peak), x.Allocs)
	}
}

func (t *Tile) describe(out *strings.Builder) {
	for i := range t.columns {
		c := &t.columns[i]
		fmt.Fprintf(out, "  column %d: events from %d, highest at %d: %d, lowest %d, last %d, reserved %d\n", i, c.first, c.witness, c.max, c.min, c.last, c.reserved)
	}
	for _, e := range t.entries {
		fmt.Fprintf(out, "  bands %d +%d: %d\n", e.first, e.count, e.heights)
	}
	for _, r := range t.rects {
		fmt.Fprintf(out, "  columns %d–%d, from %d: %d bytes, allocation %d, band %d +%d, count %d\n", r.from, r.to-1, r.below, r.bytes, r.alloc, r.band, r.bands, r.count)
	}
}
