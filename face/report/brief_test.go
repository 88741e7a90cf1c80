package report

import (
	"strings"
	"testing"

	"strandline/finding"
)

// TestLinks opens the file of a place, in terminals that can, and leaves its text.
func TestLinks(t *testing.T) {
	f := finding.Finding{Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Site: &finding.Site{File: "/home/me/a b.py", Line: 3, Function: "f"}, Brief: finding.Brief{Title: "fragmentation"}}
	for links, want := range map[bool]string{
		true:  "OOM   fragmentation at \x1b]8;;file:///home/me/a%20b.py\x1b\\a b.py:3 f\x1b]8;;\x1b\\\n",
		false: "OOM   fragmentation at a b.py:3 f\n",
	} {
		var out strings.Builder
		b := newBrief(PrintableWriter(&out), Style{Links: links}, []finding.Finding{f}, func(*finding.Finding) string { return "" })
		b.findings("OOM", []*finding.Finding{&f}, "")
		if got := out.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
