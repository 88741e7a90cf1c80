package tile

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	need "strandline/internal/test/live"
	"strandline/internal/test/synth"
	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// histories are those of the recorded snapshots of the repository, of synthetic
// ones and of nonsense.
func histories(t *testing.T) map[string]*History {
	t.Helper()
	out := map[string]*History{}
	add := func(name string, s *snapshot.Snapshot) {
		for _, d := range s.Devices() {
			out[fmt.Sprintf("%s, device %d", name, d.Index)] = NewHistory(timeline.New(s, d))
		}
	}
	for _, pattern := range []string{"../snapshot/testdata/w*", "../../examples/*/*.pickle*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %d files", pattern, err, len(files))
		}
		for _, f := range files {
			s, err := snapshot.Open(f, snapshot.Options{})
			if err != nil {
				t.Fatal(err)
			}
			add(filepath.Base(f), s)
		}
	}
	add("synthetic", synth.Trace(9000))
	add("spike", withSpike(synth.Trace(9000), 4321))
	for seed := range uint64(4) {
		add(fmt.Sprintf("nonsense %d", seed), nonsense(seed))
	}
	return out
}

// withSpike puts an allocation that is freed at once into a history.
func withSpike(s *snapshot.Snapshot, at int) *snapshot.Snapshot {
	e := &s.Traces[0].Events
	const addr, size = 0x1000, 1 << 40
	for i, a := range []snapshot.Action{snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted} {
		e.Action = slices.Insert(e.Action, at+i, a)
		e.Addr = slices.Insert(e.Addr, at+i, addr)
		e.Size = slices.Insert(e.Size, at+i, size)
		e.Stream = slices.Insert(e.Stream, at+i, 0)
		e.Stack = slices.Insert(e.Stack, at+i, stack.Empty)
		e.Time = slices.Insert(e.Time, at+i, e.Time[at])
	}
	return s
}

// nonsense is a history that no allocator has: addresses are given away twice,
// freed twice, and with other sizes.
func nonsense(seed uint64) *snapshot.Snapshot {
	r := rand.New(rand.NewPCG(seed, 7))
	s := snapshot.New()
	e := snapshot.Events{}
	actions := []snapshot.Action{snapshot.Alloc, snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted, snapshot.SegmentAlloc,
		snapshot.SegmentFree, snapshot.OOM}
	if seed%2 == 1 {
		actions = slices.DeleteFunc(actions, func(a snapshot.Action) bool { return a == snapshot.FreeCompleted })
	}
	frames := []stack.ID{stack.None, stack.Empty}
	for i := range 5 {
		f := s.Stacks.Frame(stack.Frame{File: "a.py", Line: int64(i), Function: "f"}, nil)
		frames = append(frames, s.Stacks.Intern([]stack.FrameID{f}))
	}
	for range 3000 {
		e.Action = append(e.Action, actions[r.IntN(len(actions))])
		e.Addr = append(e.Addr, uint64(r.IntN(40)*512))
		e.Size = append(e.Size, int64(r.IntN(5000)))
		e.Stream = append(e.Stream, 0)
		e.Stack = append(e.Stack, frames[r.IntN(len(frames))])
		e.Time = append(e.Time, int64(1+r.IntN(1_000_000)))
	}
	s.Traces = []snapshot.Trace{{Events: e}}
	return s
}

// live returns what lives after event k, by band, from the timeline alone.
func live(b *Bands, k int) []int64 {
	out := make([]int64, len(b.Bands))
	for _, i := range b.h.LiveAt(k) {
		out[b.of[i]] += b.h.Size(i)
	}
	return out
}

func sum(list []int64) (n int64) {
	for _, v := range list {
		n += v
	}
	return n
}

func someEvents(h *History) []int {
	out := []int{timeline.Never, h.Events() - 1, h.PeakRequested.Event}
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		if h.Events() > 0 {
			out = append(out, r.IntN(h.Events()))
		}
	}
	return out
}

// TestHistory holds totals, live sets and reserved bytes against the timeline.
func TestHistory(t *testing.T) {
	for name, h := range histories(t) {
		for _, k := range someEvents(h) {
			var want int64
			alive := h.LiveAt(k)
			for _, i := range alive {
				want += h.Size(i)
			}
			var got []int
			h.EachLive(k, func(i int) bool { got = append(got, i); return true })
			if h.Live(k) != want || !slices.Equal(got, alive) || h.Reserved(k) != h.ReservedAt(k) {
				t.Fatalf("%s, event %d: %d bytes in %d allocations, %d reserved; want %d in %d, %d", name, k,
					h.Live(k), len(got), h.Reserved(k), want, len(alive), h.ReservedAt(k))
			}
		}
		if strings.HasPrefix(name, "nonsense") {
			continue // where the timeline's figures contradict each other
		}
		if p := h.Peak(); p != h.PeakRequested {
			t.Errorf("%s: the peak is %+v, want %+v", name, p, h.PeakRequested)
		}
		if got := h.EndsAs(Kept) + h.EndsAs(Pending); got != h.EndRequested {
			t.Errorf("%s: %d bytes are kept or pending, and the active blocks hold %d", name, got, h.EndRequested)
		}
		if h.Live(h.Events()-1) != h.EndRequested {
			t.Errorf("%s: %d bytes live in the end, want %d", name, h.Live(h.Events()-1), h.EndRequested)
		}
	}
}

// TestMeasured draws a history whose allocations have the sizes of blocks.
func TestMeasured(t *testing.T) {
	for name, h := range histories(t) {
		sizes := make([]int64, len(h.Allocs))
		for i := range sizes {
			sizes[i] = (h.Size(i) + 511) / 512 * 512
		}
		m := h.Measured(sizes)
		b, err := NewBands(m, ByLine)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range someEvents(h) {
			var want int64
			for _, i := range h.LiveAt(k) {
				want += sizes[i]
			}
			if m.Live(k) != want || sum(b.at(k)) != want {
				t.Fatalf("%s, event %d: %d bytes live, %d in bands, want %d", name, k, m.Live(k), sum(b.at(k)), want)
			}
		}
	}
}

func TestPyramid(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 15, 16, 17, 300, 5000} {
		values := make([]int64, n)
		for i := range values {
			values[i] = int64(r.IntN(50))
		}
		high, low := newPyramid(values, larger), newPyramid(values, smaller)
		for range 300 {
			from := r.IntN(n)
			to := from + 1 + r.IntN(n-from)
			part := values[from:to]
			if got, want := high.best(from, to), from+slices.Index(part, slices.Max(part)); got != want {
				t.Fatalf("the largest of %d … %d is at %d, want %d", from, to, got, want)
			}
			if got, want := low.best(from, to), from+slices.Index(part, slices.Min(part)); got != want {
				t.Fatalf("the smallest of %d … %d is at %d, want %d", from, to, got, want)
			}
		}
	}
}

// TestOrder checks the order of bands and their sums.
func TestOrder(t *testing.T) {
	for name, h := range histories(t) {
		for _, g := range h.Groupings() {
			b, err := NewBands(h, g)
			if err != nil {
				t.Fatalf("%s by %s: %v", name, g, err)
			}
			if !slices.IsSortedFunc(b.Bands, func(x, y Band) int { return int(x.Fate) - int(y.Fate) }) {
				t.Errorf("%s by %s: fates are mixed", name, g)
			}
			keys := map[Key]string{}
			var kept int64
			for i := range b.Groups {
				g := &b.Groups[i]
				if other, ok := keys[g.Key]; ok {
					t.Errorf("%s: %q and %q have the same key", name, g.Label, other)
				}
				keys[g.Key] = g.Label
				kept += g.Kept
			}
			if kept != h.EndsAs(Kept) {
				t.Errorf("%s by %s: groups keep %d bytes, want %d", name, g, kept, h.EndsAs(Kept))
			}
			for _, k := range someEvents(h) {
				got, want := b.at(k), live(b, k)
				if !slices.Equal(got, want) {
					t.Fatalf("%s by %s, event %d: %v, want %v", name, g, k, got, want)
				}
				for i, v := range got {
					if v > b.Bands[i].Peak {
						t.Errorf("%s by %s: band %d has %d bytes at event %d, above its peak %d", name, g, i, v, k, b.Bands[i].Peak)
					}
				}
			}
		}
	}
}

func (h *History) levels(a *Axis) (out []uint) {
	for l := uint(0); a.Span>>l > 0 || l == 0; l += 2 {
		out = append(out, l)
	}
	return out
}

// TestTiles checks every tile of some levels against the events themselves.
func TestTiles(t *testing.T) {
	for name, h := range histories(t) {
		b, err := NewBands(h, ByLine)
		if err != nil {
			t.Fatal(err)
		}
		axes := []*Axis{h.EventAxis()}
		if a := h.TimeAxis(); a != nil {
			axes = append(axes, a)
		}
		for _, a := range axes {
			for _, level := range h.levels(a) {
				for i := 0; int64(i)*Buckets <= a.Span>>level && i < 40; i++ {
					r := Request{Kind: Banded, Axis: a, Level: level, Index: i, Scale: 18}
					what := fmt.Sprintf("%s, level %d, tile %d", name, level, i)
					tile, err := h.Tile(context.Background(), b, r)
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					checkColumns(t, what, h, tile)
					checkEntries(t, what, b, tile)
					r.Kind = Single
					if tile, err = h.Tile(context.Background(), b, r); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if tile.Kind == Single {
						checkRects(t, what, b, tile)
					}
				}
			}
		}
	}
}

func checkColumns(t *testing.T, what string, h *History, tile *Tile) {
	t.Helper()
	for c := range tile.columns {
		x := &tile.columns[c]
		from, to := x.first, tile.endOf(c)
		for k := from; k < to; k++ {
			if p := tile.Axis.Place(k) >> tile.Level; p != tile.first+int64(c) {
				t.Fatalf("%s, column %d: event %d stands in bucket %d", what, c, k, p)
			}
		}
		if from == to {
			if x.witness != from-1 || x.max != h.Live(from-1) || x.reserved != h.Reserved(from-1) {
				t.Fatalf("%s, empty column %d: %+v", what, c, *x)
			}
			continue
		}
		want := column{first: from, witness: from, max: h.Live(from), min: h.Live(from), last: h.Live(to - 1)}
		for k := from; k < to; k++ {
			if v := h.Live(k); v > want.max {
				want.max, want.witness = v, k
			}
			want.min = min(want.min, h.Live(k))
			want.reserved = max(want.reserved, h.Reserved(k))
			if k == from {
				want.reserved = h.Reserved(k)
			}
		}
		if *x != want {
			t.Fatalf("%s, column %d: %+v, want %+v", what, c, *x, want)
		}
	}
}

// checkEntries checks the heights against the live sets, and that each band is in
// one entry.
func checkEntries(t *testing.T, what string, b *Bands, tile *Tile) {
	t.Helper()
	if len(tile.columns) > 0 && len(tile.entries) > maxEntries {
		t.Fatalf("%s: %d entries", what, len(tile.entries))
	}
	next := 0
	for _, e := range tile.entries {
		if e.first != next || b.Bands[e.first].Fate != b.Bands[e.first+e.count-1].Fate {
			t.Fatalf("%s: entry %d +%d follows band %d", what, e.first, e.count, next)
		}
		next += e.count
	}
	if len(tile.columns) > 0 && next != len(b.Bands) {
		t.Fatalf("%s: the entries end with band %d of %d", what, next, len(b.Bands))
	}
	for c := 0; c < len(tile.columns); c += 37 {
		want := live(b, tile.columns[c].witness)
		var total int64
		for _, e := range tile.entries {
			if got := e.heights[c]; got != sum(want[e.first:e.first+e.count]) {
				t.Fatalf("%s, column %d: entry %d has %d bytes, want %d", what, c, e.first, got, sum(want[e.first:e.first+e.count]))
			}
			total += e.heights[c]
		}
		if total != tile.columns[c].max {
			t.Fatalf("%s, column %d: %d bytes are drawn, and %d are live", what, c, total, tile.columns[c].max)
		}
	}
}

// checkRects checks that the rectangles of a column fill it from 0 to the total,
// each at the place that the order of bands gives it, within a quarter of a pixel.
func checkRects(t *testing.T, what string, b *Bands, tile *Tile) {
	t.Helper()
	quarter := tile.threshold / 8
	for c := 0; c < len(tile.columns); c += 29 {
		witness := tile.columns[c].witness
		var rects []rect
		for _, r := range tile.rects {
			if r.from <= c && c < r.to {
				rects = append(rects, r)
			}
		}
		slices.SortFunc(rects, func(x, y rect) int {
			return cmp.Or(cmp.Compare(x.band, y.band), cmp.Compare(2*x.below+x.bytes, 2*y.below+y.bytes))
		})
		below, count := int64(0), 0
		for _, r := range rects {
			if d := r.below - below; d < -2*quarter || d > 2*quarter {
				t.Fatalf("%s, column %d: a rectangle stands at %d, want %d", what, c, r.below, below)
			}
			below = r.below + r.bytes
			if count += r.count; r.alloc == stripID {
				continue
			}
			want := int64(0)
			for _, v := range live(b, witness)[:int(b.of[r.alloc])] {
				want += v
			}
			b.h.EachLive(witness, func(i int) bool {
				if i < r.alloc && int(b.of[i]) == int(b.of[r.alloc]) {
					want += b.h.Size(i)
				}
				return true
			})
			if d := r.below - want; r.count == 1 && (d < -quarter || d > quarter) {
				t.Fatalf("%s, column %d: allocation %d stands at %d, want %d", what, c, r.alloc, r.below, want)
			}
		}
		if d := below - tile.columns[c].max; d < -2*quarter || d > 2*quarter {
			t.Fatalf("%s, column %d: %d bytes are drawn, and %d are live", what, c, below, tile.columns[c].max)
		}
	}
}

// TestZoomMovesNothing draws one event at all levels: bands that are drawn alone
// are at the same height.
func TestZoomMovesNothing(t *testing.T) {
	h := NewHistory(timelineOf(t, synth.Trace(40_000)))
	b, err := NewBands(h, ByLine)
	if err != nil {
		t.Fatal(err)
	}
	peak := h.PeakRequested.Event
	tops := map[int]int64{}
	alone := 0
	for level := uint(0); level <= 8; level++ {
		bucket := peak >> level
		tile, err := h.Tile(context.Background(), b, Request{Kind: Banded, Axis: h.EventAxis(), Level: level, Index: bucket / Buckets, Scale: 20})
		if err != nil {
			t.Fatal(err)
		}
		c := bucket % Buckets
		if tile.columns[c].witness != peak {
			t.Fatalf("level %d: the witness is event %d, want the peak %d", level, tile.columns[c].witness, peak)
		}
		var top int64
		for _, e := range tile.entries {
			top += e.heights[c]
			last := e.first + e.count - 1
			if before, ok := tops[last]; ok && before != top {
				t.Errorf("level %d: band %d ends at %d, and at another level at %d", level, last, top, before)
			} else if ok {
				alone++
			}
			tops[last] = top
		}
	}
	if alone < 20 {
		t.Errorf("only %d bands could be compared", alone)
	}
}

// TestSpike checks that one event of a million is seen in the coarsest picture.
func TestSpike(t *testing.T) {
	const at = 700_001
	s := withSpike(synth.Trace(1_000_000), at)
	h := NewHistory(timelineOf(t, s))
	tile, err := h.Tile(context.Background(), nil, Request{Kind: Total, Axis: h.EventAxis(), Level: 12})
	if err != nil {
		t.Fatal(err)
	}
	c := tile.columns[at>>12]
	if c.witness != at && c.witness != at+1 || c.max < 1<<40 {
		t.Errorf("the column shows %d bytes at event %d", c.max, c.witness)
	}
	b, err := NewBands(h, ByLine)
	if err != nil {
		t.Fatal(err)
	}
	if tile, err = h.Tile(context.Background(), b, Request{Kind: Banded, Axis: h.EventAxis(), Level: 12, Scale: 32}); err != nil {
		t.Fatal(err)
	}
	checkEntries(t, "spike", b, tile)
}

func timelineOf(t testing.TB, s *snapshot.Snapshot) *timeline.Timeline {
	t.Helper()
	return timeline.New(s, s.Devices()[0])
}

func TestTimeAxis(t *testing.T) {
	s := synth.Trace(1000)
	e := &s.Traces[0].Events
	for k := 500; k < e.Len(); k++ {
		e.Time[k] += 10_000_000 // an idle gap
	}
	e.Time[700] -= 50_000 // a clock that runs back
	h := NewHistory(timelineOf(t, s))
	a := h.TimeAxis()
	if len(a.Folds) != 1 || a.Folds[0].event != 500 || a.Folds[0].At != a.Place(499) {
		t.Fatalf("folds: %+v", a.Folds)
	}
	if span := e.Time[e.Len()-1] - e.Time[0]; a.Span != span-a.Folds[0].Removed || a.Span > span/50 {
		t.Errorf("the axis is %d long, of %d µs", a.Span, span)
	}
	for k := range h.Events() {
		if p := a.Place(k); k > 0 && p < a.Place(k-1) || p > a.Span || a.event(p) > k || k > 0 && a.event(p) < k && a.Place(a.event(p)) != p {
			t.Fatalf("event %d stands at %d, where event %d is", k, p, a.event(p))
		}
	}
	if a.event(a.Span+1) != h.Events() {
		t.Error("there are events behind the end")
	}
}

// TestCorpus draws each file of the recorded corpus, if there is one: the sums of
// tiles are checked as they are made.
func TestCorpus(t *testing.T) {
	root := need.Given(t, "STRANDLINE_CORPUS")
	filepath.WalkDir(filepath.Join(root, "torch"), func(path string, d fs.DirEntry, err error) error {
		info, infoErr := os.Stat(path)
		if err != nil || infoErr != nil || info.IsDir() || info.Size() > 30<<20 || !strings.Contains(path, ".pickle") {
			return nil
		}
		s, err := snapshot.Open(path, snapshot.Options{})
		if err != nil {
			return nil
		}
		for _, d := range s.Devices() {
			h := NewHistory(timeline.New(s, d))
			if got := h.EndsAs(Kept) + h.EndsAs(Pending); got != h.EndRequested && s.Partial == nil && len(h.Faults) == 0 {
				t.Errorf("%s: %d bytes are kept or pending, and the active blocks hold %d", path, got, h.EndRequested)
			}
			for _, g := range h.Groupings() {
				b, err := NewBands(h, g)
				if err != nil {
					t.Fatal(err)
				}
				for _, kind := range []Kind{Banded, Single} {
					for _, level := range h.levels(h.EventAxis()) {
						if _, err := h.Tile(context.Background(), b, Request{Kind: kind, Axis: h.EventAxis(), Level: level, Scale: 16}); err != nil {
							t.Errorf("%s by %s: %v", path, g, err)
						}
					}
				}
			}
		}
		return nil
	})
}
