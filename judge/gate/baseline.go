package gate

import (
	"fmt"
	"slices"

	"strandline/finding"
	"strandline/units"
)

// A Measure is a figure of a baseline: what was measured when it was accepted.
//
// It does not follow later measurements. A change that is within the noise leaves it as
// it is, even if the baseline is updated, so that many small changes add up and are seen
// together.
type Measure struct {
	// Bytes is what is compared: the median of Runs.
	Bytes int64 `json:"bytes"`
	// Runs are the first measurements since it was accepted; they show its noise.
	Runs []int64 `json:"runs"`
}

// The tolerance of a [Measure].
const (
	maxRuns = 3
	// unmeasured is the tolerance, as a share, for what was measured once; minMargin
	// is the least tolerance for what was measured more often, and grainOfLevel the
	// least in bytes.
	unmeasured   = 0.10
	minMargin    = 0.03
	grainOfLevel = 1 << 20
)

// margin is by how many bytes a measurement may differ: twice the distance between
// measurements of the same thing.
func (m *Measure) margin() int64 {
	share := unmeasured
	var distance int64
	if len(m.Runs) > 1 {
		share = minMargin
		distance = slices.Max(m.Runs) - slices.Min(m.Runs)
	}
	return max(2*distance, int64(share*float64(m.Bytes)), grainOfLevel)
}

// Accepts reports whether a measurement equals what was accepted, apart from noise.
func (m *Measure) Accepts(bytes int64) bool {
	d := bytes - m.Bytes
	return d <= m.margin() && -d <= m.margin()
}

// Update accepts a measurement, and reports whether that changed what later measurements
// are compared with.
func (m *Measure) Update(bytes int64) (changed bool) {
	switch {
	case len(m.Runs) == 0 || !m.Accepts(bytes):
		*m = Measure{bytes, []int64{bytes}}
		return true
	case len(m.Runs) < maxRuns:
		m.Runs = append(m.Runs, bytes)
		sorted := slices.Sorted(slices.Values(m.Runs))
		m.Bytes = sorted[(len(sorted)-1)/2]
	}
	return false
}

// Against returns the finding that a measurement differs from the baseline: a problem if
// it is above, information if it is below; nil if it does not differ.
func (m *Measure) Against(what string, bytes int64) *finding.Finding {
	if m.Accepts(bytes) {
		return nil
	}
	share := float64(bytes-m.Bytes) / float64(max(m.Bytes, 1))
	f := &finding.Finding{Kind: finding.AboveLimit, Severity: finding.Problem, Confidence: maxSure, Bytes: &bytes}
	f.Basis = fmt.Sprintf("%s; a difference of up to %s is tolerated", units.Plural(int64(len(m.Runs)), "measurement"), units.Bytes(m.margin()))
	f.Title = fmt.Sprintf("%s is %s, %s above the baseline of %s", what, units.Bytes(bytes), units.Percent(share), units.Bytes(m.Bytes))
	f.Remedies = []finding.Remedy{finding.CodeChange("if that is meant, accept it by --update-baseline, and commit the file")}
	if share < 0 {
		f.Kind, f.Severity = finding.Usage, finding.Info
		f.Title = fmt.Sprintf("%s is %s, %s below the baseline of %s: --update-baseline lowers the baseline to it", what, units.Bytes(bytes), units.Percent(-share), units.Bytes(m.Bytes))
	}
	return f
}
