package report

import (
	"strings"
	"testing"
)

func TestFit(t *testing.T) {
	s := Style{Color: true}
	for _, c := range []struct {
		line    string
		columns int
		want    string
		used    int
	}{
		{"short", 10, "short", 5},
		{"exactly ten", 11, "exactly ten", 11},
		{"cut here, please", 8, "cut here", 8},
		{"no terminal is known", 0, "no terminal is known", 20},
		{"日本語", 6, "日本語", 6},
		{"日本語", 5, "日本", 4},
		{"a🚀b", 3, "a🚀", 3},
		{"e\u0301te\u0301", 2, "e\u0301t", 2},
		{s.bold("bold") + " and plain", 6, "\x1b[1mbold\x1b[0m a", 6},
		{s.bold("bold"), 2, "\x1b[1mbo\x1b[0m", 2},
		{s.dim("dim"), 3, "\x1b[2mdim\x1b[0m", 3},
		{"bad \xff\xfe", 5, "bad \uFFFD", 5},
	} {
		if got, used := Fit(c.line, c.columns); got != c.want || used != c.used {
			t.Errorf("%q in %d columns: %q, %d; want %q, %d", c.line, c.columns, got, used, c.want, c.used)
		}
	}
}

// The screen has no more lines than the terminal has rows, except for one.
func TestLiveFits(t *testing.T) {
	d := &Trace{}
	d.RSSGrowth, d.Paired, d.Drops, d.StackDrops = 1<<30, 1, 1, 1
	for rows, want := range map[int]int{0: 5, 3: 2, 50: 5} {
		if lines := d.Live(Style{}, rows); len(lines) != want || strings.Contains(strings.Join(lines, ""), "\n") {
			t.Errorf("%d rows: %q", rows, lines)
		}
	}
}
