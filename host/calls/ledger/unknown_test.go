package ledger

import (
	"testing"

	"strandline/host/code/symbolize"
)

// TestUnknownResident joins causes of one stack: of a sum of which a part is
// unknown nothing is reported, and it is not 1 byte less than what is known, or none.
func TestUnknownResident(t *testing.T) {
	l, stacks := New(), NewStacks()
	id := stacks.Intern(symbolize.Stack{Frames: []symbolize.Frame{{}}})
	site := Site{pid: 7}
	l.Causes = append(l.Causes[:Unseen+1],
		Cause{Site: site, stack: id, Live: 4096, calls: 1},
		Cause{Site: site, stack: id, Live: 4096, calls: 1, inferred: true})
	for _, c := range []struct{ one, two, want int64 }{{4096, 0, 4096}, {4096, -1, -1}, {-1, 4096, -1}, {-1, -1, -1}} {
		found := newSurvey(len(l.Causes))
		found.resident[Unseen+1], found.resident[Unseen+2] = c.one, c.two
		uses := l.uses(stacks, found)
		if len(uses) != 1 || uses[0].Resident != c.want {
			t.Errorf("%d and %d are %+v", c.one, c.two, uses)
		}
	}
}
