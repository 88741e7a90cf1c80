package host

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
	middle := (from + last + 1) / 2
	grown := h.sums.Grown
	all := float64(grown[last]-grown[from]) / whole
	half := float64(grown[last]-grown[middle]) / seconds(checkpoints[last]-checkpoints[middle])
	fast, slow := max(all, half), min(all, half)
	if fast <= 0 {
		return p, text
	}
	room := h.looks.After.Room
	limit := int64(min(room.Limit, 1<<62))
	soon := float64(room.Left) / fast
	p.limit, p.seconds = &limit, &[2]*float64{&soon, nil}
	text += fmt.Sprintf("; at the rate of all processes together, the %s that remain until the limit of %s (%s) last ", units.Bytes(int64(min(room.Left, 1<<62))), room.Of, units.Bytes(limit))
	if slow <= 0 {
		return p, text + "at least " + units.Seconds(soon)
	}
	late := float64(room.Left) / slow
	p.seconds[1] = &late
	if a, b := units.Seconds(soon), units.Seconds(late); a != b {
		return p, text + a + " to " + b
	}
	return p, text + "about " + units.Seconds(soon)
}

func seconds(nanoseconds uint64) float64 { return float64(nanoseconds) / 1e9 }
