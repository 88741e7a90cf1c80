package replay

import (
	"path/filepath"
	"slices"
	"testing"

	"strandline/internal/test/live"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

func golden(t *testing.T) []string {
	files, _ := filepath.Glob("testdata/*.pickle.zst")
	if len(files) == 0 {
		t.Fatal("no recordings in testdata")
	}
	return files
}

func open(t *testing.T, file string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(file, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func record(t *testing.T, s *snapshot.Snapshot) *Recording {
	t.Helper()
	r := NewRecording(timeline.New(s, s.Devices()[0]))
	return r
}

// Recordings of PyTorch 2.6 under each setting, with what it counted itself, and
// those of the examples.
func TestGoldenReplaysExactly(t *testing.T) {
	live.Sequential(t)
	examples, _ := filepath.Glob("../../examples/*/*.pickle*")
	if len(examples) == 0 {
		t.Fatal("no recordings in examples")
	}
	for _, file := range append(golden(t), examples...) {
		if devices, exact := hold(t, file); devices == 0 || exact != devices {
			t.Errorf("%s: %d of %d devices are exact", file, exact, devices)
		}
	}
}

// A history that no allocator could have made is not called exact.
func TestReplayNotices(t *testing.T) {
	live.Sequential(t)
	last := func(e *snapshot.Events, action snapshot.Action) int {
		for k, a := range slices.Backward(e.Action) {
			if a == action {
				return k
			}
		}
		return never
	}
	edits := map[string]func(s *snapshot.Snapshot, e *snapshot.Events) bool{
		"a segment of another size": func(_ *snapshot.Snapshot, e *snapshot.Events) bool {
			k := last(e, snapshot.SegmentAlloc)
			if k != never {
				e.Size[k] += allocator.RoundLarge
			}
			return k != never
		},
		"an address moved": func(_ *snapshot.Snapshot, e *snapshot.Events) bool {
			k := last(e, snapshot.Alloc)
			if k != never {
				e.Addr[k] += allocator.Granule
			}
			return k != never
		},
		"a free block in two": func(s *snapshot.Snapshot, _ *snapshot.Events) bool {
			for i := range s.Segments {
				g := &s.Segments[i]
				for j, b := range g.Blocks {
					if b.State == snapshot.Inactive && b.Size >= 2048 {
						front, rest := b, b
						front.Size = 1024
						rest.Addr, rest.Size = b.Addr+1024, b.Size-1024
						g.Blocks = slices.Concat(g.Blocks[:j], []snapshot.Block{front, rest}, g.Blocks[j+1:])
						return true
					}
				}
			}
			return false
		},
	}
	made := map[string]int{}
	for _, file := range golden(t)[:12] {
		for what, edit := range edits {
			s := open(t, file)
			if !edit(s, &s.Devices()[0].Trace.Events) {
				continue
			}
			made[what]++
			if x := record(t, s).Replay(); x.Difference == nil {
				t.Errorf("%s: %s is called exact", file, what)
			}
		}
	}
	for what := range edits {
		if made[what] < 5 {
			t.Errorf("%s: tried on %d recordings", what, made[what])
		}
	}
}

// An allocator with one rule changed does not replay the recording that is there
// for that rule.
func TestEachRuleIsHeld(t *testing.T) {
	live.Sequential(t)
	for _, c := range []struct {
		file, rule string
		change     func(*allocator.Settings)
	}{
		{"default.s1.end", "segments that requests share", func(s *allocator.Settings) { s.LargeSegment = 2 * allocator.LargeBuffer }},
		{"default.s1.end", "splitting", func(s *allocator.Settings) { s.MaxSplitSize = 64 << 20 }},
		{"default.s1.end", "rounding", func(s *allocator.Settings) { s.RoundupDivisions[0] = 4 }},
		{"expandable.s1.end", "pages", func(s *allocator.Settings) { s.LargeSegment = allocator.LargeBuffer / 2 }},
		{"expandable.s1.end", "rounding", func(s *allocator.Settings) { s.RoundupDivisions[3] = 2 }},
		{"roundup4.s1.op1000", "rounding", func(s *allocator.Settings) { s.RoundupDivisions[0] = 8 }},
		{"roundup_list.s1.op1000", "rounding by size", func(s *allocator.Settings) { s.RoundupDivisions[2] = s.RoundupDivisions[0] }},
		{"split128.s1.end", "splitting", func(s *allocator.Settings) { s.MaxSplitSize = allocator.Unlimited }},
		{"split128.s1.end", "the split limit", func(s *allocator.Settings) { s.MaxSplitSize = 100 << 20 }},
		{"split128.s1.end", "rounding of what is not split", func(s *allocator.Settings) { s.MaxNonSplitRounding = 200 << 20 }},
		{"split_gc.s1.end", "garbage collection", func(s *allocator.Settings) { s.GCThreshold = 0 }},
	} {
		r := record(t, open(t, "testdata/w11_fuzz."+c.file+".pickle.zst"))
		c.change(&r.Settings)
		if x := r.Replay(); x.Difference == nil {
			t.Errorf("%s: replays exactly with another rule of %s", c.file, c.rule)
		}
	}
}
