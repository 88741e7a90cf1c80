package pickle_test

import (
	"fmt"
	"strings"
	"testing"

	"strandline/torch/pickle"
)

// repeating is a tree that takes repeated lists at once.
type repeating struct {
	tree
	repeated int
}

func (r *repeating) Repeat(list, of uint64) bool {
	if len(r.lists[list]) > 0 || len(r.lists[of]) == 0 {
		return false
	}
	r.lists[list] = r.lists[of]
	r.repeated++
	return true
}

// TestRepeat reads lists of fetched items with and without the short cut: both
// must hold the same.
func TestRepeat(t *testing.T) {
	const (
		memo  = "K\x01q\x00K\x02q\x01K\x03r\x00\x01\x00\x00" // entries 0, 1 and 256
		list  = "](h\x00h\x01e"
		other = "](h\x01h\x00j\x00\x01\x00\x00e"
		end   = "t."
	)
	pad := strings.Repeat("N", 40) // the short cut needs some bytes behind it
	for _, c := range []struct {
		name, in string
		repeated int
	}{
		{"the same list again", "(" + memo + list + list + other + other + list + pad + end, 3},
		{"the memo has changed since", "(" + memo + list + "K\x09q\x00" + list + list + pad + end, 1},
		{"an entry far away has changed", "(" + memo + "K\x05r\x00\x00\xf0\x00" + "](j\x00\x00\xf0\x00h\x00e" + "K\x06r\x00\x00\xf0\x00" + "](j\x00\x00\xf0\x00h\x00e" + pad + end, 0},
		{"a list that has items", "(" + memo + list + "]K\x07a(h\x00h\x01e" + pad + end, 0},
		{"a tuple of the same items", "(" + memo + list + "](h\x00h\x01t" + pad + end, 0},
		{"an entry that is not there", "(" + memo + "](h\x07h\x07e](h\x07h\x07e" + pad + end, 0},
	} {
		var slow tree
		var fast repeating
		_, errSlow := pickle.Decode(strings.NewReader(c.in), &slow)
		_, errFast := pickle.Decode(strings.NewReader(c.in), &fast)
		if fmt.Sprint(errSlow) != fmt.Sprint(errFast) {
			t.Errorf("%s: errors %v and %v", c.name, errSlow, errFast)
		}
		if a, b := fmt.Sprint(slow.lists, slow.tuples), fmt.Sprint(fast.lists, fast.tuples); a != b {
			t.Errorf("%s: %s, with the short cut %s", c.name, a, b)
		}
		if fast.repeated != c.repeated {
			t.Errorf("%s: %d lists are repeats, want %d", c.name, fast.repeated, c.repeated)
		}
	}
}
