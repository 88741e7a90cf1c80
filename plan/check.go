package plan

import (
	"math"
)

// Checked is a component of a plan beside what was observed.
type Checked struct {
	Component string
	Planned   Range
	Unplanned bool // the set-up does not say what to plan; Planned is 0
	Observed  int64
	Tokens    bool  // it is a number of tokens, not of bytes
	Off       int64 // beyond the nearer end of the plan; 0 is within it
	Line      int64 // of the log; 0 is none
	Cause     string
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

// Share is how far off a component is, for the order: bytes, and of tokens the
// Share of what was planned. The KV cache is what the others leave: it comes after
// those that are off.
func (c *Checked) Share() float64 {
	off := math.Abs(float64(c.Off))
	switch {
	case c.Tokens:
		return off / float64(max(c.Planned.High, 1)) * GiB
	case c.Component == KVCache:
		return off / GiB
	}
	return off
}

// Near tells sizes that are a tenth apart at most.
func Near(a, b int64) bool { return math.Abs(float64(a-b)) <= 0.1*float64(b) }
