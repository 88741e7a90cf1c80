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
			x.walk(func(k int, allocated, active int64) bool {
				peak = max(peak, allocated)
				if k%max(1, n/50) != 0 && k != n-1 || r.Trace.Action[k] != snapshot.Alloc {
					return true
				}
				if a, b := x.At(k); a != allocated || b != active {
					t.Errorf("%s event %d: At says %d, %d, Walk %d, %d", file, k, a, b, allocated, active)
				}
				a, b := sums(x.segmentsAt(k))
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

// walk calls f after each event with the bytes allocated and active then, until
// f returns false.
func (x *Result) walk(f func(event int, allocated, active int64) bool) {
	allocated, active := x.At(never)
	holders := make([]int, x.slots) // of slots: allocations
	for i := range x.older {
		holders[i] = i
	}
	next := x.older
	for k, a := range x.Trace.Action {
		if s := x.slot[k]; s != never {
			if a == snapshot.Alloc {
				holders[s] = next
				next++
			}
			i := holders[s]
			size := x.Sizes[i]
			switch {
			case a == snapshot.Alloc:
				allocated += size
				active += size
			case x.Freed(i) == k:
				allocated -= size
			}
			if x.Death(i) == k {
				active -= size
			}
		}
		if !f(k, allocated, active) {
			return
		}
	}
}

// segmentsAt are the segments and blocks after the call to which event k belongs:
// a request whose segment is event k is served. They are those of the replay,
// for each event before the first difference.
func (x *Result) segmentsAt(k int) []allocator.Segment {
	p := x.newPlayer(x.assumed)
	p.play(k + 1)
	return p.a.Segments()
}
