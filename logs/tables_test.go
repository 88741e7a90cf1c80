package logs

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// logOf is a text whose tables state, in MiB, what was allocated and what was
// allocated since the process began, with a time before each.
func logOf(t *testing.T, name string, lines ...string) *File {
	t.Helper()
	var b strings.Builder
	for _, l := range lines {
		var clock string
		var current, gained int
		if _, err := fmt.Sscan(l, &clock, &current, &gained); err != nil {
			t.Fatal(l, err)
		}
		fmt.Fprintf(&b, "%s\n| PyTorch CUDA memory summary, device ID 0 |\n| Allocated memory | %d MiB | %d MiB | %d MiB | 0 B |\n", clock, current, current, gained)
	}
	text, err := Scan(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return &File{Name: name, Text: &text}
}

func TestTablesOfSeveralFiles(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []*File
		want  string
	}{
		{"after stands before before", []*File{logOf(t, "after", "11:00:00 2000 5000"), logOf(t, "before", "10:00:00 1000 3000")},
			"before 1000, after 2000 (2, 1h0m0s)"},
		{"a log that was rotated", []*File{logOf(t, "job.log", "10:20:00 3 7000", "10:30:00 4 8000"), logOf(t, "job.log.1", "10:00:00 1 5000", "10:10:00 2 6000")},
			"job.log.1 1, job.log.1 2, job.log 3, job.log 4 (4, 30m0s)"},
		{"logs of two jobs", []*File{logOf(t, "a", "10:00:00 1 100", "10:10:00 2 900"), logOf(t, "b", "10:00:00 3 110", "10:10:00 4 950")},
			"a 1, a 2 (2, 10m0s); b 3, b 4 (2, 10m0s)"},
		{"no tables", []*File{logOf(t, "x")}, ""},
		{"a clock that runs backwards for a day", []*File{logOf(t, "a", "23:00:00 1 100", "01:00:00 2 200")}, "a 1, a 2 (2, 2h0m0s)"},
		{"an unknown time", []*File{logOf(t, "a", "10:00:00 1 100", "x 2 200")}, "a 1, a 2 (2, 0s)"},
	} {
		var out []string
		for _, s := range (&Process{Files: c.files}).Tables() {
			var checkpoints []string
			for _, m := range s.Kept {
				checkpoints = append(checkpoints, fmt.Sprintf("%s %d", m.File, *m.Allocated.Current>>20))
			}
			span, known := s.Span()
			if known != (span > time.Duration(0)) {
				t.Errorf("%s: %v is known: %v", c.name, span, known)
			}
			out = append(out, fmt.Sprintf("%s (%d, %v)", strings.Join(checkpoints, ", "), s.Count, span))
		}
		if got := strings.Join(out, "; "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
