package finding_test

import (
	"cmp"
	"slices"
	"testing"

	"strandline/finding"
)

func TestSeverityRank(t *testing.T) {
	got := []finding.Severity{finding.Info, finding.Problem, finding.Warning}
	slices.SortFunc(got, func(a, b finding.Severity) int { return cmp.Compare(b.Rank(), a.Rank()) })
	if want := []finding.Severity{finding.Problem, finding.Warning, finding.Info}; !slices.Equal(got, want) {
		t.Errorf("by descending rank: %v, want %v", got, want)
	}
	if n := finding.Severity("").Rank(); n != finding.Info.Rank() {
		t.Errorf("rank of no severity is %d", n)
	}
}
