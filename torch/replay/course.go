package replay

import (
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
)

// At is the bytes of the blocks that the program held after event k, and of
// those that were active: held, or freed and waiting for another stream. They are
// exact up to the event at which the replay parts from the recording.
func (x *Result) At(k int) (allocated, active int64) {
	for i := range x.Allocs {
		if x.Birth(i) > k {
			break // later ones are younger
		}
		if d := x.Death(i); d == never || d > k {
			active += x.Sizes[i]
			if f := x.Freed(i); f == never || f > k {
				allocated += x.Sizes[i]
			}
		}
	}
	return allocated, active
}

// Walk calls f after each event with the bytes allocated and active then, until
// f returns false.
func (x *Result) Walk(f func(event int, allocated, active int64) bool) {
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

// BlockSizes are the sizes of the allocations' blocks, nil where the replay is not
// exact, or rests on what the file does not hold: the state before the recording,
// or private pools that are gone.
func (x *Result) BlockSizes() []int64 {
	if x.Difference != nil || !x.Complete() || x.privatePools() {
		return nil
	}
	return x.Sizes
}

// Exactly reports whether event k is reproduced exactly.
func (x *Result) Exactly(k int) bool { return x.Difference == nil || k < x.Difference.Event }

// SegmentsAt are the segments and blocks after the call to which event k belongs:
// a request whose segment is event k is served. They are those of the replay,
// for each event before the first difference.
func (x *Result) SegmentsAt(k int) []allocator.Segment {
	p := x.newPlayer(x.assumed)
	p.play(k + 1)
	return p.a.Segments()
}
