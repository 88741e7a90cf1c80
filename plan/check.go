package plan

import (
	"cmp"
	"math"
	"slices"

	"strandline/internal/sorts"
)

// Checked is a planned component and the observed figure.
type Checked struct {
	Component string
	Planned   Range
	Unplanned bool // the set-up does not state what to plan, or the figure cannot be one
	Observed  int64
	Tokens    bool    // it is a number of tokens, not of bytes
	PerToken  float64 // bytes, of a number of tokens
	Rounding  int64   // rounding of the printed figure, either way
	Off       int64   // beyond the nearer end of the plan; 0 if within it
	Line      int64   // of the log; 0 if none
	Device    int64   // bytes of the memory that it is part of; 0 if not known
	Cause     string
}

// Of sets the memory that rows are part of: a device's, or as much as the rows state in
// all if its size is not known.
func Of(rows []Checked, device int64) {
	if device <= 0 {
		for i := range rows {
			if !rows[i].Tokens {
				device += max(rows[i].Observed, 0)
			}
		}
	}
	for i := range rows {
		rows[i].Device = device
	}
}

// Compare fills in how far the observed figure is outside the plan: 0 within the
// printed rounding.
func (c *Checked) Compare() {
	if c.Off = distance(c.Planned, c.Observed); c.Unplanned || max(c.Off, -c.Off) <= c.Rounding {
		c.Off = 0
	}
}

// distance returns how far a figure is outside a range, negative if below it.
func distance(planned Range, observed int64) int64 {
	switch {
	case observed > planned.High:
		return observed - planned.High
	case observed < planned.Low:
		return observed - planned.Low
	}
	return 0
}

// Differs reports whether a component is off by a hundredth or more of its plan and of the
// device: less needs no explanation.
func (c *Checked) Differs() bool {
	const part = 0.01
	end := c.Planned.High
	if c.Off < 0 {
		end = c.Planned.Low
	}
	return c.Off != 0 && math.Abs(float64(c.Off)) >= part*float64(end) && c.bytes() >= part*float64(c.Device)
}

// Over reports whether more memory is used than planned. A larger KV cache is not
// that: engines fill what is left with it.
func (c *Checked) Over() bool { return c.Differs() && c.Off > 0 && !c.Tokens && c.Component != KVCache }

// bytes returns how far off a component is, whatever the sign.
func (c *Checked) bytes() float64 {
	off := math.Abs(float64(c.Off))
	if c.Tokens {
		off *= c.PerToken
	}
	return off
}

// Order sorts by the difference in bytes, the largest first.
func Order(rows []Checked) {
	sorts.StableBy(rows, func(a, b Checked) int {
		if a.Differs() != b.Differs() {
			if a.Differs() {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.bytes(), a.bytes())
	})
}

// RoughlyEqual reports whether sizes differ by a tenth of b at most.
func RoughlyEqual(a, b int64) bool { return math.Abs(float64(a-b)) <= 0.1*float64(b) }

// Headline returns the row that an answer begins with, -1 where all is as planned: the
// row that differs most and does not merely follow from the others. The KV cache does, unless
// the others explain less than a tenth of it.
func Headline(rows []Checked) int {
	const part = 10
	pool := slices.IndexFunc(rows, func(c Checked) bool { return c.Differs() && c.Component == KVCache })
	other := slices.IndexFunc(rows, func(c Checked) bool { return c.Differs() && !c.Tokens && c.Component != KVCache })
	switch {
	case other >= 0 && (pool < 0 || part*magnitude(rows[other].Off) >= magnitude(rows[pool].Off)):
		return other
	case pool >= 0:
		return pool
	}
	return slices.IndexFunc(rows, func(c Checked) bool { return c.Differs() })
}

func magnitude(n int64) int64 { return max(n, -n) }
