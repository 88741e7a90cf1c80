package torch

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
