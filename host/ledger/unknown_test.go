package ledger

import (
	"testing"

	"strandline/host/symbolize"
)

// TestUnknownResident joins causes of one stack: of a sum of which a part is
// unknown nothing is told, and it is not 1 byte less than what is known, or none.
func TestUnknownResident(t *testing.T) {
	l, stacks := New(), NewStacks()
	id := stacks.Intern(symbolize.Stack{Frames: []symbolize.Frame{{}}})
	site := Site{PID: 7}
	l.Causes = append(l.Causes[:Unseen+1],
		Cause{Site: site, Stack: id, Live: 4096, Calls: 1},
		Cause{Site: site, Stack: id, Live: 4096, Calls: 1, Inferred: true})
	for _, c := range []struct{ one, two, want int64 }{{4096, 0, 4096}, {4096, -1, -1}, {-1, 4096, -1}, {-1, -1, -1}} {
		resident := make([]int64, len(l.Causes))
		resident[Unseen+1], resident[Unseen+2] = c.one, c.two
		uses := l.uses(stacks, make([]Kind, len(l.Causes)), resident)
		if len(uses) != 1 || uses[0].Resident != c.want {
			t.Errorf("%d and %d are %+v", c.one, c.two, uses)
		}
	}
}
