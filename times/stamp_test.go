package times

import (
	"testing"
	"time"
)

func TestStamps(t *testing.T) {
	for _, c := range []struct {
		first, second string
		want          time.Duration // -1: they cannot be compared
		text          string        // of the first
	}{
		{"2026-05-01 10:00:00,250 INFO |", "2026-05-01 11:30:00,250 INFO |", 90 * time.Minute, "2026-05-01 10:00:00"},
		{"[2026-05-01T10:00:00.5Z]", "[2026-05-01T12:00:01+02:00]", 500 * time.Millisecond, "2026-05-01T10:00:00"},
		{"2026/05/01 23:59:59 x", "2026/05/02 00:00:00 x", time.Second, "2026/05/01 23:59:59"},
		{"05/01/2026 10:00:00 - INFO", "05/02/2026 10:00:00 - INFO", 24 * time.Hour, "05/01/2026 10:00:00"},
		{"05/01/2026 - 10:00:00 - INFO", "05/01/2026, 10:00:01", time.Second, "05/01/2026 - 10:00:00"},
		{"2026.05.01  10:00:00 x", "2026.05.01 10:00:01+00:00", time.Second, "2026.05.01  10:00:00"},
		{"INFO 05-19 00:53:24 [core.py:1138]", "INFO 05-19 00:54:24 [core.py:1138]", time.Minute, "05-19 00:53:24"},
		{"I0519 00:53:24.000001 12", "I0519 00:53:25.000001 12", time.Second, "0519 00:53:24"},
		{"May  9 07:00:00 host", "May 10 07:00:00 host", 24 * time.Hour, "May  9 07:00:00"},
		{"10:00:00", "10:00:01", time.Second, "10:00:00"},
		{"23:00:00", "01:00:00", 2 * time.Hour, "23:00:00"},
		{"1777629600.5 x", "1777629601 x", 500 * time.Millisecond, "2026-05-01 10:00:00"},
		{`{"ts":1777629600500}`, `{"ts":1777629600750}`, 250 * time.Millisecond, "2026-05-01 10:00:00"},
		{"2026-05-01 10:00:00", "10:00:01", -1, "2026-05-01 10:00:00"},
		{"2026-05-02 10:00:00", "2026-05-01 10:00:00", -1, "2026-05-02 10:00:00"},
		{"Foo  9 07:00:00 host", "07:00:01", time.Second, "07:00:00"},
	} {
		a, b := In(c.first), In(c.second)
		d, ok := a.To(b)
		if ok != (c.want >= 0) || ok && d != c.want {
			t.Errorf("from %q to %q: %v, %v, want %v", c.first, c.second, d, ok, c.want)
		}
		if a == nil || a.Text != c.text {
			t.Errorf("%q: %+v, want %q", c.first, a, c.text)
		}
		if !Likely([]byte(c.first)) {
			t.Errorf("%q is passed over", c.first)
		}
	}
	for _, text := range []string{"", "step 12", "12:61:00 x", "2026-13-41 10:00", "train.py:12", "12345"} {
		if s := In(text); s != nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
	if _, ok := (*Stamp)(nil).To(nil); ok {
		t.Error("no time is a time")
	}
}
