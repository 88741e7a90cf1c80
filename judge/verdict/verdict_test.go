package verdict

import (
	"testing"

	"strandline/finding"
)

// TestGrowthVerdict judges processes of which one may leak, in either order.
func TestGrowthVerdict(t *testing.T) {
	calm, open, short := Judged{Enough: true, Tables: 1}, Judged{Enough: true, Tables: 1, Open: true}, Judged{}
	for _, c := range []struct {
		name     string
		judged   []Judged
		doubtful bool
		want     finding.Verdict
	}{
		{"nothing", nil, false, finding.Unknown},
		{"too little", []Judged{short}, false, finding.Unknown},
		{"calm", []Judged{calm, short}, false, finding.OK},
		{"the first may leak", []Judged{open, calm}, false, finding.Unknown},
		{"the last may leak", []Judged{calm, open}, false, finding.Unknown},
		{"doubtful", []Judged{calm}, true, finding.Unknown},
	} {
		if got := growth(c.judged, c.doubtful); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
