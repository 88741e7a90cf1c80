package profiles

import (
	"strandline/finding"
	"strandline/internal/lazyregexp"
	"strandline/judge/trend"
	"strandline/profiles"
	"strandline/units"
)

// courses judges the columns of a table, each on its own.
func courses(f *profiles.File, limit *int64) (out []finding.Finding, judged bool) {
	for i := range f.Columns {
		c := &f.Columns[i]
		v := trend.JudgeLevels(c.Times, c.Bytes)
		v.Unit = c.Unit
		judged = judged || v.Shape != trend.Unknown
		out = append(out, course(c, &v, limit))
	}
	return out, judged
}

// course is the finding on one column.
func course(c *profiles.Column, v *trend.Course, limit *int64) finding.Finding {
	if limit == nil {
		limit = c.Limit
	}
	e := v.Evidence(c.Name, limit)
	f := finding.Finding{
		Kind: finding.Usage, Severity: finding.Info, Confidence: e.Confidence, Process: c.Process, Bytes: e.LevelBytes, Evidence: e, Trend: trend.Thinned(c.Bytes),
		Title: c.Name + ": " + v.Words(), Basis: v.Basis(),
	}
	if v.Leaks() {
		f.Kind, f.Severity = finding.Leak, finding.Problem
		f.Remedies = remedies(c)
	}
	if limit != nil {
		if text := v.Reaches(e, "the limit of "+units.Bytes(*limit)); text != "" {
			f.Detail = []string{text}
			if f.Severity == finding.Info {
				f.Severity = finding.Warning // it is above the limit
			}
		}
	}
	return f
}

// ofDevice are names of the memory of devices, and of what PyTorch has of it.
var ofDevice = lazyregexp.New(`(?i)(gpu|cuda|hbm|vram|memory\.used|fb_used|device|allocated|reserved)`)

// OfDevice reports whether a column is memory of a device, as far as its name tells.
func OfDevice(c *profiles.Column) bool { return ofDevice.MatchString(c.Name + " " + c.Process) }

// remedies are what to do next about a level that grows.
func remedies(c *profiles.Column) []finding.Remedy {
	if OfDevice(c) {
		return []finding.Remedy{finding.CodeChange("find the line: `strandline record --pid PID` records the allocations of a running PyTorch process, `strandline trace --gpu --pid PID` those from the driver of any process")}
	}
	return []finding.Remedy{finding.CodeChange("find the line: `strandline trace --pid PID` of the running process names the calls that take the memory")}
}
