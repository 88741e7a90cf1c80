package snapshots

import (
	"slices"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
)

// TestUnrelatedRuns gives the files of two healthy programs as if they were of one:
// each is judged separately, and the whole is not OK.
func TestUnrelatedRuns(t *testing.T) {
	book := digest.NewBook()
	var digests []*digest.File
	for _, path := range slices.Concat(example(t, "cache/*.pickle.gz"), example(t, "ranks/rank1*.pickle")) {
		s, err := snapshot.Open(path, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, book.Digest(s))
	}
	a := Files(book, []*compare.Process{compare.NewProcess("", digests)}, Options{})
	if a.Verdict != finding.Unknown || len(a.Processes) != 2 {
		t.Fatalf("%s of %d processes, want unknown of 2", a.Verdict, len(a.Processes))
	}
	for _, p := range a.Processes {
		folder := func(f *digest.File) string { return strings.Split(f.Name, "/")[3] }
		for _, f := range p.Files {
			if folder(f) != folder(p.Files[0]) {
				t.Errorf("%s is judged with %s", f.Name, p.Files[0].Name)
			}
		}
	}
	warned := slices.ContainsFunc(a.Findings, func(f finding.Finding) bool {
		return f.Kind == finding.History && f.Severity == finding.Warning && strings.Contains(f.Title, "2 runs") && len(f.Detail) == 2
	})
	if !warned {
		t.Error("the answer does not mention two runs")
	}
}
