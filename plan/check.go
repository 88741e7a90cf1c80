package plan

import (
	"cmp"
	"math"
	"slices"
)

// Checked is a component of a plan beside what was observed.
type Checked struct {
	Component string
	Planned   Range
	Unplanned bool // the set-up does not say what to plan, or the figure cannot be one
	Observed  int64
	Tokens    bool    // it is a number of tokens, not of bytes
	PerToken  float64 // bytes, of a number of tokens
	Rounding  int64   // what the printed figure leaves open either way
	Off       int64   // beyond the nearer end of the plan; 0 is within it
	Line      int64   // of the log; 0 is none
	Cause     string
}

// Compare fills in how far the observed figure lies outside the plan: 0 within the
// printed rounding.
func (c *Checked) Compare() {
	if c.Off = Beyond(c.Planned, c.Observed); c.Unplanned || max(c.Off, -c.Off) <= c.Rounding {
		c.Off = 0
	}
}

// Beyond is how far a figure lies outside a range: below 0 below it.
func Beyond(planned Range, observed int64) int64 {
	switch {
	case observed > planned.High:
		return observed - planned.High
	case observed < planned.Low:
		return observed - planned.Low
	}
	return 0
}

// Differs reports whether a component is off by a hundredth of its plan or more: of
// less there is nothing to explain.
func (c *Checked) Differs() bool {
	end := c.Planned.High
	if c.Off < 0 {
		end = c.Planned.Low
	}
	return c.Off != 0 && math.Abs(float64(c.Off)) >= 0.01*float64(end)
}

// Over reports whether more memory is used than planned. A larger KV cache is not
// that: engines fill what is left with it.
func (c *Checked) Over() bool { return c.Differs() && c.Off > 0 && !c.Tokens && c.Component != KVCache }

// bytes is how far off a component is, whatever the sign.
func (c *Checked) bytes() float64 {
	off := math.Abs(float64(c.Off))
	if c.Tokens {
		off *= c.PerToken
	}
	return off
}

// Order puts what differs most in bytes first.
func Order(rows []Checked) {
	slices.SortStableFunc(rows, func(a, b Checked) int {
		if a.Differs() != b.Differs() {
			if a.Differs() {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.bytes(), a.bytes())
	})
}

// Near tells sizes that are a tenth apart at most.
func Near(a, b int64) bool { return math.Abs(float64(a-b)) <= 0.1*float64(b) }
