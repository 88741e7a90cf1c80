package snapshots

import (
	"slices"
	"testing"
)

// TestTrendOfWhatStays draws no fall of a line that leaks and also makes what its
// step frees, where some checkpoints are in the middle of a step.
func TestTrendOfWhatStays(t *testing.T) {
	f := judge(t, "testdata/w17_accumulate.scalar.iter60.pickle.gz").Findings[0]
	n := len(f.Trend)
	if f.Site.Line != 82 || !slices.IsSorted(f.Trend) || f.Trend[0] >= f.Trend[n-1] || f.Trend[n-1] != *f.Bytes {
		t.Errorf("%s: %v", f.Title, f.Trend)
	}
}

// TestOnce names what came at once beside what grows.
func TestOnce(t *testing.T) {
	for _, c := range []struct {
		bytes []int64
		want  string
	}{
		{[]int64{0, 33_554_432, 33_560_000, 33_570_000, 33_580_000}, ", 32 MiB of it at once"},
		{[]int64{0, 1000, 2000, 3000, 4000}, ""},
		{[]int64{0, 1000, 1000}, ""},
		{nil, ""},
	} {
		if got := singleStep(c.bytes); got != c.want {
			t.Errorf("%v: %q, want %q", c.bytes, got, c.want)
		}
	}
}
