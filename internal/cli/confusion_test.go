//go:build linux

package cli

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"strandline/finding"
	"strandline/internal/leaks"
)

// notLeaks are the kinds of growth that is told and is no problem.
var notLeaks = []finding.Kind{finding.FileMapping, "page-cache"}

// TestConfusion traces each of the programs that grow in one way, and wants
// their kind to be found and no other. With -v it prints what was found of what.
func TestConfusion(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	var mu sync.Mutex
	matrix := map[string]string{}
	t.Run("programs", func(t *testing.T) {
		for _, p := range leaks.All() {
			t.Run(p.Name, func(t *testing.T) {
				t.Parallel()
				pid := p.Start(t)
				stdout, stderr, code := run("trace", "--pid", strconv.Itoa(pid), "--duration", "5s", "--json")
				if code != exitOK && code != exitProblem {
					t.Fatalf("exit status %d: %s", code, stderr)
				}
				if strings.Contains(stderr, "only polling") {
					t.Skip(strings.TrimSpace(stderr))
				}
				var doc struct {
					Findings []finding.Finding `json:"findings"`
				}
				if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
					t.Fatal(err)
				}
				var found []string
				for _, f := range doc.Findings {
					if f.Severity == finding.Problem || slices.Contains(notLeaks, f.Kind) {
						found = append(found, string(f.Kind))
					}
				}
				mu.Lock()
				matrix[p.Name] = strings.Join(found, ", ")
				mu.Unlock()
				want := p.Name
				if want == "quiet" {
					want = ""
				}
				for _, f := range doc.Findings {
					if f.Kind == finding.MemoryFiles && (f.Site == nil || f.Site.Function != "hold") {
						t.Errorf("the files were made at %+v, want the function hold: %s", f.Site, f.Title)
					}
				}
				if got := strings.Join(slices.Compact(found), ", "); got != want {
					for _, f := range doc.Findings {
						t.Logf("%s, %s: %s", f.Kind, f.Severity, f.Title)
					}
					t.Errorf("found %q, want %q", got, want)
				}
			})
		}
	})
	for _, p := range leaks.All() {
		if found, ok := matrix[p.Name]; ok {
			t.Logf("%-20s found: %s", p.Name, found)
		}
	}
}
