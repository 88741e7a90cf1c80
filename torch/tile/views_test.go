package tile

import (
	"context"
	"slices"
	"strings"
	"testing"

	"strandline/internal/test/synth"
	"strandline/stack"
	"strandline/torch/purpose"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// TestSolo draws a few groups as if the others did not exist.
func TestSolo(t *testing.T) {
	for name, h := range histories(t) {
		b, err := NewBands(h, ByLine)
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Groups) < 3 || h.Events() == 0 {
			continue
		}
		solo := []Key{b.Groups[0].Key, b.Groups[2].Key}
		for _, kind := range []Kind{Banded, Single} {
			for _, level := range []uint{0, 5} {
				tile, err := h.Tile(context.Background(), b, Request{Kind: kind, Axis: h.EventAxis(), Level: level, Scale: 12, Solo: solo})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for c := range tile.columns {
					x := &tile.columns[c]
					from, to := x.first, tile.endOf(c)
					if to-from > 64 {
						to = from + 1 // the rest is a matter of time
					}
					for k := from; k < to; k++ {
						if n := soloed(b, live(b, k)); n > x.max || n < x.min || k == x.witness && n != x.max {
							t.Fatalf("%s, level %d, column %d: %d bytes at event %d, and the column has %d to %d at %d", name, level, c, n, k, x.min, x.max, x.witness)
						}
					}
				}
			}
		}
	}
}

func soloed(b *Bands, bytes []int64) (n int64) {
	for i, v := range bytes {
		if g := b.Bands[i].Group; g == 0 || g == 2 {
			n += v
		}
	}
	return n
}

// TestHit looks for allocations where the order of bands and births puts them.
func TestHit(t *testing.T) {
	for name, h := range histories(t) {
		b, err := NewBands(h, ByLine)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range someEvents(h) {
			alive := h.LiveAt(k)
			slices.SortStableFunc(alive, func(i, j int) int { return int(b.of[i]) - int(b.of[j]) })
			below := int64(0)
			for _, i := range alive {
				if size := h.Size(i); size > 0 {
					for _, y := range []int64{below, below + size - 1} {
						if hit, ok := b.Hit(k, y, nil); !ok || hit != (Hit{i, int(b.of[i]), below}) {
							t.Fatalf("%s, event %d, height %d: %v %+v, want allocation %d of band %d at %d", name, k, y, ok, hit, i, int(b.of[i]), below)
						}
					}
					below += size
				}
			}
			if hit, ok := b.Hit(k, below, nil); ok {
				t.Fatalf("%s, event %d: above everything there is %+v", name, k, hit)
			}
		}
	}
}

// TestSameAsInspect holds tables by line against the timeline's, which `inspect`
// prints.
func TestSameAsInspect(t *testing.T) {
	for name, h := range histories(t) {
		b, err := NewBands(h, ByLine)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range someEvents(h) {
			type place struct {
				site    stack.Site
				missing timeline.Missing
			}
			want := map[place]timeline.SiteSum{}
			for _, s := range h.SitesAt(k) {
				want[place{s.Site, s.Missing}] = s
			}
			got := map[place]timeline.SiteSum{}
			for _, s := range b.Live(k) {
				site := place{b.Groups[s.Group].Site, b.Groups[s.Group].missing}
				x := got[site]
				x.Bytes += s.Bytes
				x.Count += s.Count
				got[site] = x
			}
			for site, s := range want {
				if got[site].Bytes != s.Bytes || got[site].Count != s.Count {
					t.Fatalf("%s, event %d, %v: %+v, want %+v", name, k, site, got[site], s)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%s, event %d: %d sites, want %d", name, k, len(got), len(want))
			}
		}
	}
}

// TestPurposesAtThePeak checks for the purposes that `diagnose` names.
func TestPurposesAtThePeak(t *testing.T) {
	for name, h := range histories(t) {
		b, err := NewBands(h, ByPurpose)
		if err != nil {
			t.Fatal(err)
		}
		peak := purpose.Of(h.Timeline).Peak
		got := map[string]int64{}
		for _, s := range b.Live(peak.Event) {
			if s.Bytes > 0 {
				got[b.Groups[s.Group].identity] = s.Bytes
			}
		}
		got[purpose.Unknown.String()] += got[purpose.NotFreed]
		for p, n := range peak.By.Map() {
			if got[p] != n {
				t.Errorf("%s: %d bytes of %s, want %d", name, got[p], p, n)
			}
		}
	}
}

func TestChanges(t *testing.T) {
	h := NewHistory(timelineOf(t, synth.Trace(5000)))
	b, err := NewBands(h, ByFunction)
	if err != nil {
		t.Fatal(err)
	}
	changes := b.Changes(1000, 4000)
	var bytes int64
	var count int
	for i, c := range changes {
		bytes += c.Bytes()
		count += c.Count
		if i > 0 && abs(c.Bytes()) > abs(changes[i-1].Bytes()) {
			t.Errorf("row %d is larger than the one before", i)
		}
	}
	if want := h.Live(4000) - h.Live(1000); bytes != want || count != len(h.LiveAt(4000))-len(h.LiveAt(1000)) {
		t.Errorf("the changes sum to %d bytes, want %d", bytes, want)
	}
	var made int64
	for _, s := range b.Made(1001, 4000) {
		made += s.Bytes
	}
	if want := madeIn(h, 1001, 4000); made != want {
		t.Errorf("%d bytes are allocated in the range, want %d", made, want)
	}
}

func abs(n int64) int64 { return max(n, -n) }

func madeIn(h *History, from, to int) (n int64) {
	for k := from; k <= to; k++ {
		if h.Trace.Action[k] == snapshot.Alloc {
			n += h.Trace.Size[k]
		}
	}
	return n
}

// TestFlame checks that each node holds what its children hold, and more only where
// a stack ends at it or something is left out.
func TestFlame(t *testing.T) {
	for name, h := range histories(t) {
		k := h.PeakRequested.Event
		f := FlameOf(h.Snap.Stacks, h.LiveStacks(k))
		if f.Nodes[0].Bytes != h.Live(k) {
			t.Errorf("%s: the root holds %d bytes, want %d", name, f.Nodes[0].Bytes, h.Live(k))
		}
		below := make([]int64, len(f.Nodes))
		for i, n := range f.Nodes[1:] {
			if n.Parent > i {
				t.Fatalf("%s: node %d stands before its parent", name, i+1)
			}
			below[n.Parent] += n.Bytes
		}
		for i, n := range f.Nodes {
			if below[i] > n.Bytes {
				t.Errorf("%s: node %d holds %d bytes, and its children %d", name, i, n.Bytes, below[i])
			}
		}
	}
}

// TestFlameBetween checks that the tree of a difference sums to it.
func TestFlameBetween(t *testing.T) {
	for name, h := range histories(t) {
		a, b := h.PeakRequested.Event, h.Events()-1
		f := FlameOf(h.Snap.Stacks, h.StacksBetween(a, b))
		if got, want := f.Nodes[0].Net, h.Live(b)-h.Live(a); got != want {
			t.Errorf("%s: the root grows by %d bytes, want %d", name, got, want)
		}
		for i, n := range f.Nodes {
			if abs(n.Net) > n.Bytes {
				t.Errorf("%s: node %d grows by %d of %d bytes", name, i, n.Net, n.Bytes)
			}
		}
	}
}

// TestLanes checks for the leaking line of a recorded leak, and no other.
func TestLanes(t *testing.T) {
	for file, want := range map[string]string{
		"../../examples/image-leak/step-4.pickle":      "w02_image_leak.py:39 normalise",
		"../../examples/autograd-graph/iter-60.pickle": "w04_graph_leak.py",
		"../../examples/peak/step-2.pickle":            "",
	} {
		s, err := snapshot.Open(file, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := NewBands(NewHistory(timelineOf(t, s)), ByLine)
		if err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, l := range b.Lanes {
			labels = append(labels, b.Groups[b.Bands[l.Band].Group].Label)
			if n := len(l.Points); n != lanePoints || l.Points[n-1] != l.To || !slices.IsSorted(l.Points) {
				t.Errorf("%s: points of %s end with %d of %d", file, labels, l.Points[n-1], l.To)
			}
		}
		if got := strings.Join(labels, ", "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: lanes %q, want %q", file, got, want)
		}
	}
}

func TestNextPeak(t *testing.T) {
	h := NewHistory(timelineOf(t, withSpike(synth.Trace(5000), 2000)))
	if k := h.NextPeak(100, false); k != 2000 {
		t.Errorf("the next peak is at %d, want 2000", k)
	}
	if k := h.NextPeak(4000, true); k != 2000 && k != 2001 {
		t.Errorf("the peak before is at %d, want 2000", k)
	}
}
