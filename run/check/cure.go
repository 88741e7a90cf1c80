package check

import (
	"fmt"
	"slices"

	"strandline/face/api"
	"strandline/finding"
	"strandline/units"
)

// Cure says whether a setting cures a leak, judging by a run without it and one with it.
func Cure(setting string, without, with *api.CheckRun) *api.CheckCure {
	c := &api.CheckCure{Setting: setting}
	yes, no := true, false
	sure := confidence(without) * confidence(with)
	before, after := without.Growth, with.Growth
	switch {
	case failed(without) || failed(with):
		c.Text = "cannot tell whether " + setting + " cures the leak: the command itself failed"
	case steady(without):
		c.Text = "nothing leaks without " + setting + ": there is nothing to cure"
		c.Confidence = confidence(without)
	case without.Verdict != finding.Leaking || with.Verdict != finding.Leaking && !steady(with):
		c.Text = "cannot tell whether " + setting + " cures the leak: one run cannot be judged"
	case steady(with):
		c.Cures, c.Confidence = &yes, sure
		c.Text = setting + " cures the leak"
		keep(without.Findings, setting)
	case before != nil && after != nil && after.Metric == before.Metric && after.High < before.Low:
		c.Cures, c.Confidence = &no, sure
		c.Text = fmt.Sprintf("%s lowers the growth from %s to %s, and does not cure it", setting, rate(before), rate(after))
	default:
		c.Cures, c.Confidence = &no, sure
		c.Text = setting + " does not cure the leak"
	}
	return c
}

// keep makes a setting that was proved to cure a leak the first remedy of it.
func keep(leaks []finding.Finding, setting string) {
	proved := finding.SettingChange(setting, "keep it in the command's environment: the run with it does not leak")
	for i := range leaks {
		if f := &leaks[i]; f.Severity == finding.Problem {
			f.Remedies = append([]finding.Remedy{proved}, slices.DeleteFunc(f.Remedies, func(r finding.Remedy) bool { return r.Setting == setting })...)
		}
	}
}

// failed reports whether a run failed by itself, and not because its leak filled the memory.
func failed(r *api.CheckRun) bool {
	return r.Failed != "" && (r.Verdict != finding.Leaking || !r.OutOfMemory)
}

// steady reports whether nothing leaks in a run, though it may be above a limit.
func steady(r *api.CheckRun) bool {
	return r.Verdict == finding.OK || r.Verdict == finding.Over && len(r.Missing) == 0
}

// rate is a growth rate in words.
func rate(g *api.CheckGrowth) string {
	if g.BytesPerStep != nil {
		return units.Bytes(*g.BytesPerStep) + " a step"
	}
	return units.Bytes(*g.BytesPerSecond) + " a second"
}

// confidence is the confidence in the verdict of a run: that of its surest leak, or of
// the least sure series that does not leak.
func confidence(r *api.CheckRun) float64 {
	least, most := 1.0, 0.0
	for _, f := range r.Findings {
		if _, ok := f.Evidence.(*finding.StepGrowthEvidence); ok {
			least = min(least, f.Confidence)
		}
		if f.Severity == finding.Problem {
			most = max(most, f.Confidence)
		}
	}
	if r.Verdict == finding.Leaking {
		return most
	}
	return least
}
