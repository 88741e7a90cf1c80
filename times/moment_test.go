package times

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// TestFoundAsTheExpressionFinds reads lines of all kinds in any order, and holds each time
// against the one that its expression finds in the whole line.
func TestFoundAsTheExpressionFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	digits := func(n int) (s string) {
		for range n {
			s += string(rune('0' + r.IntN(10)))
		}
		return s
	}
	clock := func() string {
		return fmt.Sprintf("%02d:%02d:%02d", r.IntN(24), r.IntN(60), r.IntN(60)) + pick("", "", "."+digits(1+r.IntN(3)), ","+digits(3))
	}
	var lines []string
	for range 20_000 {
		lines = append(lines, pick("", "INFO ", "[", "(pid="+digits(4)+") ", "engine.py:"+digits(3)+"] ", "1:2 ", "12:34 ", digits(2)+":"+digits(2)+"x ", "é ")+
			pick("2026-11-0"+digits(1)+pick(" ", "T"), "11-0"+digits(1)+" ", "Nov  "+digits(1)+" ", "", "9")+clock()+
			pick("", "Z", "+01:00", " [loggers.py:11]", "] step", ":"+digits(2), " 2026-11-01 "+clock()))
	}
	for i := range forms {
		if forms[i].layouts == nil {
			continue
		}
		var last writing
		found := 0
		for _, line := range lines {
			text, ok := first(forms[i].at.FindStringSubmatch(line))
			var want float64
			if ok {
				want, ok = forms[i].parse(text)
			}
			if got, read := forms[i].read(line, &last); read != ok || got != want {
				t.Fatalf("form %d: %q is read as %f, %v, want %f, %v", i, line, got, read, want, ok)
			}
			if ok {
				found++
			}
		}
		t.Logf("form %d: %d times", i, found)
	}
}
