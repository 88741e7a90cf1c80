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

// loop is a pickle of some rounds of the same lists, each of other items; in every
// third round some are left out.
func loop(lists, rounds int) string {
	var b strings.Builder
	b.WriteString("(K\x01q\x00K\x02q\x01K\x03q\x02")
	for round := range rounds {
		for i := range lists {
			if round%3 == 2 && i%7 == 0 {
				continue
			}
			b.WriteString("](")
			for n := i + 1; n > 0; n /= 3 {
				b.WriteString("h" + string(rune(n%3)))
			}
			b.WriteString("e")
		}
	}
	b.WriteString(strings.Repeat("N", 40) + "t.")
	return b.String()
}

// TestRepeatLoop reads the lists of a loop, in files with few and many of them.
func TestRepeatLoop(t *testing.T) {
	for _, lists := range []int{3, 100, 1000, 9000} { // more than are remembered
		in := loop(lists, 6)
		var slow tree
		var fast repeating
		if _, err := pickle.Decode(strings.NewReader(in), &slow); err != nil {
			t.Fatal(err)
		}
		if _, err := pickle.Decode(strings.NewReader(in), &fast); err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprint(slow.lists, slow.tuples), fmt.Sprint(fast.lists, fast.tuples); a != b {
			t.Errorf("%d lists differ with the short cut", lists)
		}
		if lists <= 1000 && fast.repeated < 4*lists {
			t.Errorf("of %d lists in 6 rounds %d are repeats", lists, fast.repeated)
		}
	}
}

// BenchmarkRepeat reads the stacks of a program that runs in a loop.
func BenchmarkRepeat(b *testing.B) {
	in := loop(1000, 100)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := pickle.Decode(strings.NewReader(in), &discarding{}); err != nil {
			b.Fatal(err)
		}
	}
}

// discarding keeps nothing, and takes every repeated list.
type discarding struct {
	pickle.Handler
	lists uint64
}

func (d *discarding) List() (uint64, error) { d.lists++; return d.lists, nil }

func (d *discarding) Append(uint64, []pickle.Value) error { return nil }

func (d *discarding) Tuple([]pickle.Value) (uint64, error) { return 0, nil }

func (d *discarding) Salvage([]pickle.Value) {}

func (d *discarding) Repeat(uint64, uint64) bool { return true }
