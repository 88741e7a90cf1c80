package processes

import (
	"fmt"

	"strandline/units"
)

// A pace is how fast something grows, and when the processes will reach a limit if it
// goes on, in the form that the evidence has.
type pace struct {
	rate    float64 // bytes a second
	limit   *int64
	seconds *[2]*float64
}

// pace is how fast some bytes were added since a checkpoint and, also in words, when the
// processes will reach a limit: at the rate of their growth since then, and at the rate
// of the second half of that time.
func (h host) pace(bytes int64, from int) (p pace, text string) {
	checkpoints := h.sums.Checkpoints
	last := len(checkpoints) - 1
	if last-from < 2 {
		return p, ""
	}
	whole := seconds(checkpoints[last] - checkpoints[from])
	if whole < 1 {
		return p, ""
	}
	p.rate = float64(bytes) / whole
	text = "it grows by " + units.Rate(p.rate)
	if h.looks == nil || h.looks.After == nil || h.looks.After.Room == nil {
		return p, text
	}
	all, half := h.growth(from, last)/whole, 0.0
	if middle := (from + last + 1) / 2; middle < last {
		half = h.growth(middle, last) / seconds(checkpoints[last]-checkpoints[middle])
	}
	room := h.looks.After.Room
	r := remains{left: int64(min(room.Left, 1<<62)), limit: int64(min(room.Limit, 1<<62))}
	r.of = fmt.Sprintf("until the limit of %s (%s)", room.Of, units.Bytes(r.limit))
	lasts := ""
	if p.seconds, lasts = r.timeLeft(all, half); p.seconds != nil {
		p.limit = &r.limit
		text += "; at the rate of all processes together, " + lasts
	}
	return p, text
}

// burst reports whether a curve rose in its last quarter alone: how long that goes on is
// not known, so that it has no rate.
func burst(curve []int64) bool {
	last := len(curve) - 1
	return last >= 4 && 4*(riseReached(curve, 1-nearly)-1) >= 3*last
}

// growth is how many bytes all processes grew by between two checkpoints.
func (h host) growth(from, to int) float64 { return float64(h.sums.Grown[to] - h.sums.Grown[from]) }

// A remains is how much memory remains until a limit, in bytes.
type remains struct {
	left, limit int64
	of          string // the limit, in words after "that remain"
}

// timeLeft is how long the memory lasts at each of two rates in bytes a second, the shorter
// time first, also in words; nil if nothing is taken.
func (r remains) timeLeft(a, b float64) (*[2]*float64, string) {
	fast, slow := max(a, b), min(a, b)
	if fast <= 0 {
		return nil, ""
	}
	soon := float64(r.left) / fast
	out := &[2]*float64{&soon, nil}
	text := fmt.Sprintf("the %s that remain %s last ", units.Bytes(r.left), r.of)
	if slow <= 0 {
		return out, text + "at least " + units.Seconds(soon)
	}
	late := float64(r.left) / slow
	out[1] = &late
	if a, b := units.Seconds(soon), units.Seconds(late); a != b {
		return out, text + a + " to " + b
	}
	return out, text + "about " + units.Seconds(soon)
}

func seconds(nanoseconds uint64) float64 { return float64(nanoseconds) / 1e9 }
