package gate

import (
	"fmt"
	"math"
	"strconv"

	"strandline/finding"
	"strandline/trend"
	"strandline/units"
)

// maxSure is the largest confidence in what a program will do next, and sureByTime that in
// a leak which is seen over time alone: one job that fills its tables until it ends looks
// the same.
const (
	maxSure    = 0.99
	sureByTime = 0.8
)

// Finding returns a judgment as a finding: a problem if it leaks, otherwise information.
// Site and stack come from a snapshot or a trace if one names them; otherwise they are
// nil.
func (j *Judgment) Finding() finding.Finding {
	s := j.Series
	f := finding.Finding{Kind: finding.Usage, Severity: finding.Info, Device: s.Device, Process: s.Process, Basis: j.Why}
	if j.Course.Shape == "" || j.Course.Shape == trend.Unknown {
		f.Title = "too little to judge " + s.Name()
		return f
	}
	level := int64(math.Round(max(j.Course.Level, 0)))
	f.Bytes, f.Trend = &level, thinned(s.Bytes)
	f.Evidence = &finding.StepGrowthEvidence{
		Metric: s.Metric, Unit: s.Unit, Verdict: string(j.Course.Shape), Growing: j.Course.Growing, Samples: j.Course.Samples,
		LevelBytes: level, LowBytes: roundBytes(j.Growth.Low), HighBytes: roundBytes(j.Growth.High),
	}
	f.Confidence = min(1-j.Course.Growing, maxSure)
	if s.Unit == Step {
		f.BytesPerStep = finding.Int(roundBytes(j.Growth.Rate))
	}
	switch j.Verdict {
	case finding.Leaking:
		f.Kind, f.Severity, f.Confidence = finding.Leak, finding.Problem, min(j.Course.Growing, maxSure)
		f.Title = fmt.Sprintf("%s grows by %s", s.Name(), j.Growth)
		f.Remedies = remedies(s)
		if s.Unit == Second {
			f.Confidence = min(f.Confidence, sureByTime)
			f.Basis += ". Without steps, a job that fills tables until its end looks the same: count the steps to be sure"
		}
	case finding.Unknown:
		f.Kind, f.Severity = finding.Growth, finding.Warning
		f.Title = s.Name() + " cannot be judged yet"
	default:
		f.Title = s.Name() + " " + described(&j.Course)
		if j.Course.Shape == trend.Flat && s.Unit == Request {
			f.Trend = nil // a picture of the noise would look like growth
		}
		if j.Course.Leaks() && j.Growth.Low > 0 {
			f.Title = fmt.Sprintf("%s grows by %s, as programs do without a leak", s.Name(), j.Growth)
			if j.allowed {
				f.Title = fmt.Sprintf("%s grows by %s, no more than is allowed", s.Name(), j.Growth)
			}
		}
	}
	return f
}

func roundBytes(bytes float64) int64 {
	if math.IsInf(bytes, 0) || math.IsNaN(bytes) {
		return 0
	}
	return int64(math.Round(bytes))
}

// remedies are what to do next about memory that grows.
func remedies(s *Series) []finding.Remedy {
	trace, record := "`strandline trace -- CMD`", "`strandline record -- CMD`"
	if s.Unit == Request {
		pid := "N"
		if s.PID > 0 {
			pid = strconv.Itoa(s.PID)
		}
		trace, record = "`strandline trace --pid "+pid+"`, while requests are sent,", "`strandline record -- CMD`, with the command that starts the server,"
	}
	if s.Metric == Device {
		return []finding.Remedy{finding.CodeChange("find the line: " + record + " records the allocations of each PyTorch process, and names who keeps them")}
	}
	return []finding.Remedy{finding.CodeChange("find the line: " + trace + " names the calls that take the memory")}
}

// Peak is the finding that a metric rose above what is allowed.
func Peak(metric string, peak, limit int64) finding.Finding {
	return finding.Finding{
		Kind: finding.AboveLimit, Severity: finding.Problem, Confidence: 1, Bytes: &peak,
		Title: fmt.Sprintf("the peak of the %s's memory is %s, above the limit of %s", metric, units.Bytes(peak), units.Bytes(limit)),
		Basis: "measured",
	}
}

// thinned returns some of the levels of a series, for a sparkline.
func thinned(levels []float64) (out []int64) {
	const maxShown = 60
	n := min(maxShown, len(levels))
	for i := range n {
		out = append(out, roundBytes(levels[i*(len(levels)-1)/max(n-1, 1)]))
	}
	return out
}
