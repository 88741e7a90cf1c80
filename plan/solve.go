package plan

import (
	"cmp"

	"strandline/internal/sorts"
)

// Answer is the best value of what is asked for under one set-up. Value is 0 where
// nothing fits.
type Answer struct {
	Setup   string  // what is changed, "as given" if nothing
	Changes int     // how many things are
	Value   float64 // tokens, requests, sequences, GPUs or a fraction
	Binding string  // what prevents more, or any
}

func Rank(list []Answer, smallest bool) {
	sorts.StableBy(list, func(a, b Answer) int {
		order := cmp.Compare(b.Value, a.Value)
		if smallest {
			order = -order
		}
		return cmp.Or(sorts.Bool(a.Value == 0, b.Value == 0), order, cmp.Compare(a.Changes, b.Changes))
	})
}

// Largest is the Largest number from 1 on that fits, 0 if none does. What fits
// grows no wider with the number.
func Largest(limit int64, fits func(n int64) bool) int64 {
	low, high := int64(0), limit
	for low < high {
		mid := low + (high-low+1)/2
		if fits(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

const AsGiven = "as given"

func Joined(a, b string) string {
	if a == AsGiven {
		return b
	}
	return a + ", " + b
}
