package snapshots

import (
	"testing"

	"strandline/finding"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
)

// TestGarbage takes what grows for garbage, not for a leak, if nothing but reference cycles keeps
// its tensors.
func TestGarbage(t *testing.T) {
	for _, c := range []struct {
		kind    string
		verdict finding.Verdict
		want    finding.Kind
	}{
		{byGarbage, finding.OK, finding.Growth},
		{byCycles, finding.Unknown, finding.Growth},
		{byPython, finding.Leaking, finding.Leak},
	} {
		s, err := snapshot.Open("testdata/steps/adam.5.pickle.gz", snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		book := digest.NewBook()
		f := book.Digest(s)
		held := &compare.Held{}
		for _, l := range f.Device(0).Live {
			held.Sampled = append(held.Sampled, l.Addr)
		}
		held.Holders = []compare.Holder{{Kind: c.kind, Path: "reference cycles of Node", Blocks: held.Sampled}}
		p := compare.NewProcess("", []*digest.File{f})
		p.About = &compare.About{Held: map[*digest.File]*compare.Held{f: held}}
		a := Files(book, []*compare.Process{p}, Options{})
		if got := a.Findings[0]; a.Verdict != c.verdict || got.Kind != c.want || len(got.Remedies) == 0 {
			t.Errorf("held by %s: %s, %s: %s", c.kind, a.Verdict, got.Kind, got.Title)
		}
	}
}
