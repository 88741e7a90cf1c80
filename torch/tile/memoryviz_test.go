package tile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// memoryViz is the height of PyTorch's active memory timeline after each event,
// and before the first, computed as its MemoryViz.js does it (process_alloc_data
// of 2.6, with all allocations drawn): an action on an address adds an
// allocation or takes it away, and what is freed without having been made, or
// is allocated at the end without it, was there from the start.
func memoryViz(s *snapshot.Snapshot, d snapshot.Device) (start int64, after []int64) {
	type element struct {
		size  int64
		alive bool
	}
	at := map[uint64]*element{}
	actions := make([]*element, d.Trace.Len())
	initially := func(size int64) *element {
		start += size
		return &element{size, true}
	}
	for k, a := range d.Trace.Action {
		addr, size := d.Trace.Addr[k], d.Trace.Size[k]
		switch a {
		case snapshot.Alloc:
			at[addr] = &element{size: size}
			actions[k] = at[addr]
		case snapshot.FreeCompleted:
			if at[addr] == nil {
				at[addr] = initially(size)
			}
			actions[k] = at[addr]
			delete(at, addr)
		}
	}
	for _, i := range d.Segments {
		for _, b := range s.Segments[i].Blocks {
			if b.State == snapshot.Allocated && at[b.Addr] == nil {
				initially(b.Requested)
			}
		}
	}
	total := start
	for _, e := range actions {
		if e != nil {
			if e.alive = !e.alive; e.alive {
				total += e.size
			} else {
				total -= e.size
			}
		}
		after = append(after, total)
	}
	return start, after
}

// TestMemoryViz checks that the upper edge of the picture is where PyTorch's own page
// has it, at every event.
func TestMemoryViz(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.pickle*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	if corpus := os.Getenv("STRANDLINE_CORPUS"); corpus != "" {
		more, _ := filepath.Glob(filepath.Join(corpus, "torch", "w*.pickle"))
		files = append(files, more...)
	}
	compared := 0
	for _, file := range files {
		s, err := snapshot.Open(file, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range s.Devices() {
			if !slices.Contains(d.Trace.Action, snapshot.FreeCompleted) {
				continue
			}
			h := NewHistory(timeline.New(s, d))
			start, after := memoryViz(s, d)
			if h.Live(timeline.Never) != start {
				t.Errorf("%s, device %d: %d bytes at the start, MemoryViz has %d", file, d.Index, h.Live(timeline.Never), start)
			}
			for k, want := range after {
				if compared++; h.Live(k) != want {
					t.Errorf("%s, device %d: %d bytes after event %d, MemoryViz has %d", file, d.Index, h.Live(k), k, want)
					break
				}
			}
		}
	}
	if compared < 10000 {
		t.Errorf("only %d events were compared in %d files", compared, len(files))
	}
}
