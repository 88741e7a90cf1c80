package tables

import (
	"cmp"
	"fmt"
	"slices"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/profiles/sites"
	"strandline/units"
)

// programWordings is how the texts of programs that state memory by line are worded: what their bytes are,
// and what they do not show.
var programWordings = map[string]struct{ verb, limits string }{
	sites.Operators: {"allocates the most", "an operator's bytes: its allocations less its frees; a snapshot shows the peak"},
	sites.Objects:   {"holds the most Python objects", "tracemalloc counts Python's allocations alone: PyTorch, CUDA and C libraries are left out"},
	sites.Lines:     {"adds the most", "memory_profiler counts the process's memory before and after a line, whoever takes it"},
	sites.Totals:    {"allocates the most over the run", "these are all allocations of the run, also those that were freed: `memray flamegraph --leaks` shows the rest"},
}

// byLine states which line or operator takes the most, as a text has it.
func byLine(f *profiles.File) (out finding.Finding, ok bool) {
	if f.Format == sites.Stacks {
		return mappers(f), true
	}
	words, ok := programWordings[f.Format]
	if !ok {
		return out, false
	}
	uses := slices.Clone(f.Uses)
	sorts.StableBy(uses, func(a, b profiles.Use) int { return cmp.Compare(b.Size*b.Count, a.Size*a.Count) })
	first := uses[0]
	bytes := first.Size * first.Count
	verb, place := words.verb, at(finding.Site(first.Stack[0]))
	if first.Kind == "growth" {
		verb = "grew the most between two snapshots"
	}
	out = finding.Finding{Kind: finding.Usage, Severity: finding.Info, Confidence: 1, Bytes: &bytes, Title: fmt.Sprintf("%s %s: %s", place, verb, units.Bytes(bytes))}
	if first.Count > 1 {
		out.Count, out.Title = &first.Count, out.Title+" in "+units.Plural(first.Count, "call")
	}
	if first.Kind == "growth" && bytes >= minGrowth {
		out.Kind, out.Severity, out.Confidence = finding.Growth, finding.Warning, 0.5
		out.Remedies = []finding.Remedy{finding.CodeChange("compare more snapshots of tracemalloc: steady growth in each is a leak")}
	}
	site := finding.Site(first.Stack[0])
	if site.File != "" {
		out.Site = &site
	}
	out.Brief = finding.Brief{Title: out.Title, Fact: f.Format + ": " + out.Title, Why: "this profile shows allocations, not whether they stay"}
	const maxListed = 5
	for _, u := range uses[1:min(len(uses), maxListed)] {
		out.Detail = append(out.Detail, fmt.Sprintf("%s: %s", at(finding.Site(u.Stack[0])), units.Bytes(u.Size*u.Count)))
	}
	out.Detail = append(out.Detail, words.limits)
	return out, true
}
