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
	"strandline/internal/test/leaks"
	"strandline/internal/test/live"
)

// notLeaks are the kinds of growth that is reported and is not a problem.
var notLeaks = []finding.Kind{finding.FileMapping, "page-cache"}

// TestConfusion traces each of the programs that grow in one way, and checks
// that their kind is found and no other. With -v it prints what was found for each program.
func TestConfusion(t *testing.T) {
	live.Traces(t)
	live.Unraced(t, "it traces many programs, and starts no goroutine that others do not")
	t.Parallel()
	var mu sync.Mutex
	matrix := map[string]string{}
	t.Run("programs", func(t *testing.T) {
		for _, p := range leaks.All() {
			t.Run(p.Name, func(t *testing.T) {
				t.Parallel()
				reclaimed := leaks.Reclaimed()
				pid := p.Start(t)
				found := kindsOf(t, pid, "5s")
				want := p.Name
				if want == "quiet" {
					want = ""
				} else if len(found) == 0 { // on a busy machine it got little time
					found = kindsOf(t, pid, "15s")
				}
				p.Kept(t, reclaimed)
				mu.Lock()
				matrix[p.Name] = strings.Join(found, ", ")
				mu.Unlock()
				if got := strings.Join(slices.Compact(found), ", "); got != want {
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

// kindsOf traces a process, and gives the kinds of growth that were found.
func kindsOf(t *testing.T, pid int, duration string) (kinds []string) {
	t.Helper()
	stdout, stderr, code := run("trace", "--pid", strconv.Itoa(pid), "--duration", duration, "--json")
	if code != exitOK && code != exitProblem && code != exitCannotJudge {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	if strings.Contains(stderr, "only polling") {
		live.Missing(t, "BPF", strings.TrimSpace(stderr))
	}
	var doc struct {
		Findings []finding.Finding `json:"findings"`
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatal(err)
	}
	for _, f := range doc.Findings {
		t.Logf("%s, %s: %s", f.Kind, f.Severity, f.Title)
		if f.Kind == finding.MemoryFiles && (f.Site == nil || f.Site.Function != "hold") {
			t.Errorf("the files were made at %+v, want the function hold: %s", f.Site, f.Title)
		}
		if f.Severity == finding.Problem || slices.Contains(notLeaks, f.Kind) {
			kinds = append(kinds, string(f.Kind))
		}
	}
	return kinds
}
