package trend

import "testing"

// TestFull tells a percentage that has reached its end from one that levelled off.
func TestFull(t *testing.T) {
	for level, want := range map[float64]string{62: "grew and levels off at 62%", 99: "grew to 99% and stays there: it is full"} {
		c := Course{Shape: Plateau, Level: level, Percent: true}
		if got := c.Words(); got != want {
			t.Errorf("%v: %q, want %q", level, got, want)
		}
	}
}
