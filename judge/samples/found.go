package samples

import (
	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/trend"
)

// A Found is a finding, and the series that it is of.
type Found struct {
	finding.Finding
	// Process is that of the series; zero if it is of a device or a control group.
	Process sample.ID
	Device  int    // -1 if it is of the host
	Group   string // empty if it is not of a control group
	// Figure is what of it was judged: anonymous, file, shared, used, allocated,
	// reserved, other or residue.
	Figure string
	// Course is the judgment, and Until the time of its last sample, in seconds of
	// [sample.Sample]; nil if the finding is of the last sample alone.
	Course *trend.Course
	Until  float64
}

// latest is what was last found of a series: of how many of its samples, and when.
type latest struct {
	Found
	ok bool
	of int
	at float64
}

// found is a finding on a series.
func (w *Watch) found(f finding.Finding, k key) Found {
	s := w.series[k]
	c := s.course // which is judged again later
	return Found{Finding: f, Process: k.process, Device: k.device, Group: k.group, Figure: string(k.figure), Course: &c, Until: s.until}
}

// Words are the finding in few words: "allocated +48 MiB a minute", and when its limit is
// reached: "in 40 min 53 s to 1 h 4 min". Both can be empty.
func (f *Found) Words() (verdict, left string) {
	if e, ok := f.Evidence.(*finding.LevelsEvidence); ok {
		return InWords(e)
	}
	return "", ""
}

// Total is the judgment of all that a device or, if group names one, a control group has
// in use, whoever takes it; of an earlier moment if what was found so far is asked for.
// It is nil if that did not change, or is not known.
func (w *Watch) Total(device int, group string, soFar bool) (c *trend.Course, until float64) {
	w.lazy = soFar
	defer func() { w.lazy = false }()
	k := key{subject{device: device, group: group}, used}
	if c = w.course(k); c == nil || c.Shape == trend.Unknown {
		return nil, 0
	}
	out := *c
	return &out, w.series[k].until
}

// Plain are findings without their series.
func Plain(all []Found) []finding.Finding {
	out := make([]finding.Finding, len(all))
	for i := range all {
		out[i] = all[i].Finding
	}
	return out
}

// minSamples is how many samples a series is judged by.
const minSamples = 13

// Verdict is that of so many samples with these findings. Where something keeps growing
// that need not be a leak, it is unknown.
func Verdict(findings []finding.Finding, samples int) finding.Verdict {
	out, weight := finding.OK, 0
	if samples < minSamples {
		out = finding.Unknown
	}
	for i := range findings {
		f := &findings[i]
		of, n := out, 0
		switch e, ok := f.Evidence.(*finding.LevelsEvidence); {
		case f.Severity == finding.Problem && f.Kind == finding.OutOfMemory:
			of, n = finding.RanOut, 4
		case f.Severity == finding.Problem && f.Kind == finding.Fragmentation:
			of, n = finding.Fragmented, 2
		case f.Severity == finding.Problem:
			of, n = finding.Leaking, 3
		case f.Severity == finding.Warning && ok && (e.Verdict == string(trend.Growth) || e.Verdict == string(trend.SawtoothGrowth)):
			of, n = finding.Unknown, 1
		}
		if n > weight {
			out, weight = of, n
		}
	}
	return out
}
