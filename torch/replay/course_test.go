package replay

import (
	"path/filepath"
	"testing"

	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// TestCourse holds the bytes after each event against those of the blocks.
func TestCourse(t *testing.T) {
	for _, file := range examples(t) {
		s, err := snapshot.Open(file, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range s.Devices() {
			r := NewRecording(timeline.New(s, d))
			x := r.Replay()
			n := r.Trace.Len()
			peak := int64(0)
			x.Walk(func(k int, allocated, active int64) bool {
				peak = max(peak, allocated)
				if k%max(1, n/50) != 0 && k != n-1 || r.Trace.Action[k] != snapshot.Alloc {
					return true
				}
				if a, b := x.At(k); a != allocated || b != active {
					t.Errorf("%s event %d: At says %d, %d, Walk %d, %d", file, k, a, b, allocated, active)
				}
				a, b := sums(x.SegmentsAt(k))
				if a != allocated || b != active {
					t.Errorf("%s event %d: blocks have %d, %d, the course %d, %d", file, k, a, b, allocated, active)
				}
				return true
			})
			if start, _ := x.At(never); max(peak, start) != x.Stats.AllocatedPeak {
				t.Errorf("%s: the course peaks at %d, the allocator counts %d", file, peak, x.Stats.AllocatedPeak)
			}
		}
	}
}

// sums are the bytes of blocks that are allocated, and active.
func sums(segments []allocator.Segment) (allocated, active int64) {
	for i := range segments {
		for _, b := range segments[i].Blocks {
			if b.State != allocator.Inactive {
				active += b.Size
			}
			if b.State == allocator.Allocated {
				allocated += b.Size
			}
		}
	}
	return allocated, active
}

// examples are the recorded files of the repository.
func examples(t *testing.T) []string {
	files, err := filepath.Glob("../../examples/*/*.pickle*")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no examples: %v", err)
	}
	return files
}
