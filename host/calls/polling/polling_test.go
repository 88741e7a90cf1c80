package polling

import (
	"testing"
	"time"
)

// TestClock checks that the clock advances on every system: a trace waits for it.
func TestClock(t *testing.T) {
	first, err := Source{}.Poll()
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		next, err := Source{}.Poll()
		switch {
		case err != nil:
			t.Fatal(err)
		case next.Until > first.Until && next.Until > 0:
			return
		case time.Now().After(end):
			t.Fatalf("the clock is at %d", next.Until)
		}
	}
}
