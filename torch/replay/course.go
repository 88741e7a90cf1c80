package replay

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

// BlockSizes are the sizes of the allocations' blocks, nil where the replay is not
// exact, or depends on what the file does not hold: the state before the recording,
// or private pools that are gone.
func (x *Result) BlockSizes() []int64 {
	if x.Difference != nil || !x.Complete() || x.privatePools() {
		return nil
	}
	return x.Sizes
}

// Exactly reports whether event k is reproduced exactly.
func (x *Result) Exactly(k int) bool { return x.Difference == nil || k < x.Difference.Event }
