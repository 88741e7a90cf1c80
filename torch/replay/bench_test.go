package replay

import (
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"strandline/internal/test/live"
	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A writer makes a history: it is the driver of an allocator and notes what a
// recorder would.
type writer struct {
	snapshot.Events
	at uint64
}

func (w *writer) note(action snapshot.Action, addr uint64, size int64) {
	w.Action = append(w.Action, action)
	w.Addr = append(w.Addr, addr)
	w.Size = append(w.Size, size)
	w.Stream = append(w.Stream, 0)
	w.Stack = append(w.Stack, stack.None)
}

func (w *writer) Malloc(size int64) (uint64, bool) {
	w.at += uint64(size)
	w.note(snapshot.SegmentAlloc, w.at-uint64(size), size)
	return w.at - uint64(size), true
}

func (w *writer) Map(addr uint64, size int64) bool {
	w.note(snapshot.SegmentMap, addr, size)
	return true
}

func (w *writer) Reserve(int64) (uint64, int64) {
	const length = 1 << 40
	w.at += length
	return w.at - length, length
}

func (w *writer) Within(uint64, int64) bool     { return true }
func (w *writer) Free(addr uint64, size int64)  { w.note(snapshot.SegmentFree, addr, size) }
func (w *writer) Unmap(addr uint64, size int64) { w.note(snapshot.SegmentUnmap, addr, size) }

// training is the history of a model that trains: steps of layers whose
// activations live until the way back, and temporaries in between.
func training(events int, expandable bool) *snapshot.Snapshot {
	w := &writer{at: 1 << 40}
	set := allocator.DefaultSettings()
	set.Expandable = expandable
	a := allocator.New(set, 206, w)
	stream := a.Stream(0)
	requested := map[allocator.Block]int64{}
	malloc := func(size int64) allocator.Block {
		b, _ := a.Malloc(size, stream, allocator.Default)
		w.note(snapshot.Alloc, a.Addr(b), size)
		requested[b] = size
		return b
	}
	free := func(b allocator.Block) {
		w.note(snapshot.FreeRequested, a.Addr(b), requested[b])
		w.note(snapshot.FreeCompleted, a.Addr(b), requested[b])
		a.Free(b)
		delete(requested, b)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	const layers = 200
	for range 4 * layers {
		malloc(rng.Int64N(4 << 20))
	}
	for len(w.Action) < events {
		length := 256 + rng.Int64N(256)
		var saved []allocator.Block
		for layer := range int64(layers) {
			for _, width := range []int64{64, 4096, 3 * 4096, 16384} {
				x := malloc(length * (width + layer%7))
				temporary := malloc(length * 2048)
				saved = append(saved, x)
				free(temporary)
			}
		}
		for n := len(saved) - 1; n >= 0; n-- {
			gradient := malloc(requested[saved[n]])
			free(saved[n])
			free(gradient)
		}
	}
	s := &snapshot.Snapshot{
		Stacks: &stack.Table{}, Strings: []string{""}, Streams: []uint64{0}, Pools: make([]snapshot.Pool, 1),
		Settings: &snapshot.Settings{ExpandableSegments: expandable},
	}
	s.Traces = []snapshot.Trace{{Events: w.Events}}
	for _, g := range a.Segments() {
		out := snapshot.Segment{Addr: g.Addr, TotalSize: g.Size, Type: s.StringID("large"), Expandable: g.Expandable}
		if g.Small {
			out.Type = s.StringID("small")
		}
		for _, p := range g.Blocks {
			out.Blocks = append(out.Blocks, snapshot.Block{Addr: p.Addr, Size: p.Size, Requested: p.Requested, State: snapshot.State(p.State)})
		}
		s.Segments = append(s.Segments, out)
	}
	return s
}

// A run needs memory for what lives at a time, not for every event.
func TestWhatIfMemoryIsFlat(t *testing.T) {
	live.Sequential(t)
	taken := func(events int) uint64 {
		s := training(events, false)
		x := NewRecording(timeline.New(s, s.Devices()[0])).Replay()
		if x.Difference != nil {
			t.Fatal(x.Difference)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x.WhatIf(Scenario{Settings: allocator.DefaultSettings()})
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := taken(5e4), taken(5e5); many > 2*few {
		t.Errorf("%d bytes for a short history, %d for one of ten times the events", few, many)
	}
}

// BenchmarkReplay is a history run through the allocator under its own settings,
// and under others. STRANDLINE_BIG names a file to be replayed as well.
func BenchmarkReplay(b *testing.B) {
	cases := map[string]func() *snapshot.Snapshot{
		"default":    func() *snapshot.Snapshot { return training(1e6, false) },
		"expandable": func() *snapshot.Snapshot { return training(1e6, true) },
	}
	if file := os.Getenv("STRANDLINE_BIG"); file != "" {
		cases["file"] = func() *snapshot.Snapshot {
			s, err := snapshot.Open(file, snapshot.Options{})
			if err != nil {
				b.Fatal(err)
			}
			return s
		}
	}
	for name, make := range cases {
		var r *Recording
		recording := func(b *testing.B) *Recording {
			if r == nil {
				s := make()
				r = NewRecording(timeline.New(s, s.Devices()[0]))
			}
			b.ReportAllocs()
			return r
		}
		var began time.Duration
		rate := func(b *testing.B) { // a second of one core, whatever else runs beside
			b.ReportMetric(float64(b.N)*float64(r.Trace.Len())/(processorTime(b)-began).Seconds()/1e6, "Mevents/s")
		}
		b.Run(name+"/exact", func(b *testing.B) {
			r := recording(b)
			began = processorTime(b)
			for b.Loop() {
				if x := r.Replay(); x.Difference != nil {
					b.Fatal(x.Difference)
				}
			}
			rate(b)
		})
		for _, conf := range []string{"", "expandable_segments:True"} {
			b.Run(name+"/whatif/"+conf, func(b *testing.B) {
				x := recording(b).Replay()
				set, err := allocator.ParseSettings(conf, 206)
				if err != nil {
					b.Fatal(err)
				}
				began = processorTime(b)
				for b.Loop() {
					x.WhatIf(Scenario{Settings: set})
				}
				rate(b)
			})
		}
		b.Run(name+"/smallest", func(b *testing.B) {
			x := recording(b).Replay()
			sc := Scenario{Settings: allocator.DefaultSettings()}
			began = processorTime(b)
			for b.Loop() {
				o := x.WhatIf(sc)
				if n, err := x.Smallest(b.Context(), sc, &o); n == 0 || err != nil {
					b.Fatal(n, err)
				}
			}
			rate(b)
		})
	}
}
