package report

import (
	"fmt"

	"strandline/finding"
	"strandline/units"
)

// leaks reports whether a finding is about a place that keeps what it allocates, which
// its course tells better than words.
func leaks(f *finding.Finding) bool {
	return (f.Kind == finding.Leak || f.Kind == finding.AutogradGraph) && f.Site != nil && len(f.Trend) > 1 && f.Brief.Title == ""
}

// pieceOf names one of what a line keeps.
func pieceOf(f *finding.Finding) string {
	e, ok := f.Evidence.(*finding.LeakEvidence)
	switch {
	case ok && e.Devices != nil: // of JAX
		return "array"
	case ok:
		return "tensor"
	}
	return "piece"
}

// leakTitle sums up the lines that leak.
func leakTitle(list []*finding.Finding) string {
	var bytes, rate, lines int64
	seen := map[finding.Site]bool{} // of several devices or ranks
	per, maybe := "a snapshot", ""
	if e, ok := list[0].Evidence.(*finding.LeakEvidence); !ok || e.Devices != nil {
		per = "a file"
	}
	for _, f := range list {
		if !leaks(f) || f.Severity != list[0].Severity {
			continue
		}
		if !seen[*f.Site] {
			lines++
			seen[*f.Site] = true
		}
		if f.Bytes != nil {
			bytes += *f.Bytes
		}
		if f.BytesPerStep != nil {
			rate += *f.BytesPerStep
		}
		switch e := f.Evidence.(type) {
		case *finding.LeakEvidence:
			if e.Steps > 0 {
				per = "a step"
			}
		case *finding.StepGrowthEvidence:
			per = "a step"
		}
	}
	if list[0].Severity == finding.Warning {
		maybe = "maybe a leak: "
	}
	verb := "keep"
	if lines == 1 {
		verb = "keeps"
	}
	what := pieceOf(list[0]) + "s"
	if what == "pieces" {
		what = "memory"
	}
	growth := ""
	if rate != 0 {
		growth = units.SignedBytes(rate) + " " + per + ", "
	}
	if list[0].Kind == finding.AutogradGraph { // by a reference that no stack shows
		return fmt.Sprintf("%sthe autograd graph of past steps is kept: %snow %s", maybe, growth, units.Bytes(bytes))
	}
	return fmt.Sprintf("%s%s %s %s: %snow %s", maybe, units.Plural(lines, "line"), verb, what, growth, units.Bytes(bytes))
}
