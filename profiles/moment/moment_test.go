package moment

import (
	"math"
	"testing"
)

func TestRead(t *testing.T) {
	const noon = 1793534400 // 2026-11-01 12:00:00 UTC
	for line, want := range map[string]float64{
		"2026-11-01T12:00:00":                                   noon,
		"2026-11-01 12:00:00,250 INFO step":                     noon + 0.25,
		"=== 2026/11/01 12:00:00.5 ===":                         noon + 0.5,
		"2026-11-01T13:00:00+01:00":                             noon,
		"2026-11-01 13:00:00 +0100":                             noon,
		"2026-11-01_12:00":                                      noon,
		"20261101-12:00:00":                                     noon,
		"[2026-11-01 12:00:00 TP0] Decode batch. #token: 1000,": noon,
		"Sun Nov  1 12:00:00 UTC 2026":                          noon,
		"Sun Nov  1 12:00:00 2026":                              noon,
		"Sun Nov  1 12:00:00 PM UTC 2026":                       noon,
		"Sun 01 Nov 2026 12:00:00 PM UTC":                       noon,
		"Sun, 1 Nov 2026 12:00:00 UTC":                          noon,
		"Timestamp      : Sun Nov  1 12:00:00 2026":             noon,
		"1793534400":                                            noon,
		"--- 1793534400.75 ---":                                 noon + 0.75,
		"1793534400500":                                         noon + 0.5,
	} {
		var c Clock
		if got, ok := c.Read(line); !ok || math.Abs(got-want) > 1e-3 {
			t.Errorf("%q: %f, %v, want %f", line, got, ok, want)
		}
	}
	for _, line := range []string{"", "step 5", "Rss:   4096 kB", "7f0000000000-7f0200000000 rw-p 00000000 00:00 0", "99:99:99", "2026-13-41"} {
		var c Clock
		if got, ok := c.Read(line); ok {
			t.Errorf("%q is read as %f", line, got)
		}
	}
}

// TestAgain reads times that come again each day or year.
func TestAgain(t *testing.T) {
	for name, lines := range map[string][3]string{
		"midnight":                 {"[23:59:58 TP0]", "[23:59:59 TP0]", "[00:00:01 TP0]"},
		"new year":                 {"INFO 12-31 23:59:58 [loggers.py]", "INFO 12-31 23:59:59 [loggers.py]", "INFO 01-01 00:00:01 [loggers.py]"},
		"a clock that is set back": {"12:00:10", "12:00:11", "12:00:01"},
	} {
		var c Clock
		var at [3]float64
		for i, line := range lines {
			var ok bool
			if at[i], ok = c.Read(line); !ok {
				t.Fatalf("%s: %q is not read", name, line)
			}
		}
		want := 3.0
		if name == "a clock that is set back" {
			want = -9
		}
		if at[1]-at[0] != 1 || at[2]-at[0] != want {
			t.Errorf("%s: %v", name, at)
		}
	}
}

func TestAlone(t *testing.T) {
	for line, want := range map[string]bool{
		"2026-11-01T12:00:00": true, "=== 12:00:00 ===": true, "time: 2026-11-01 12:00:00": true, "Sun Nov  1 12:00:00 UTC 2026": true, "1793534400": true,
		"4242:   python train.py 2026-11-01 12:00:00": false, "7f00-7f02 r--p 00000000 00:00 0 /tmp/2026-11-01 12:00:00.log": false, "Name:\t12:00:00": false,
	} {
		var c Clock
		if _, ok := c.Alone(line); ok != want {
			t.Errorf("%q: %v", line, ok)
		}
	}
}
