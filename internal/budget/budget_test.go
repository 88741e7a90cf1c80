package budget

import (
	"io"
	"strings"
	"testing"
)

// TestBudget checks that the cost of a file is bounded by a fixed sum and a multiple of its
// size, and that a file of a few kilobytes gets little of the fixed sum.
func TestBudget(t *testing.T) {
	for size, want := range map[int64]int64{0: 4 << 20, 1000: 4<<20 + 560*1000, 1 << 30: 48<<20 + 48<<30} {
		b := Of(size, Plain)
		if got := b.Available(); got != want {
			t.Errorf("%d bytes allow %d, want %d", size, got, want)
		}
	}
	var none Budget
	if none.Spend(minBytes, "things") != nil || none.Spend(1, "things") == nil || none.Err() == nil {
		t.Errorf("%+v", none)
	}
}

func TestAfford(t *testing.T) {
	b := Of(0, Plain)
	if n := b.Afford(10_000, 1<<10, "things"); n != 4096 || b.Available() != 0 {
		t.Errorf("%d, %d left", n, b.Available())
	}
	b.Return(1 << 20)
	if b.Spend(1<<20, "things") != nil || b.Spend(-1<<40, "things") == nil || b.Spend(1, "things") == nil {
		t.Error("what is given back cannot be taken, or what overflowed can")
	}
	if err := b.Err(); !strings.Contains(err.Error(), "too many things") {
		t.Error(err)
	}
}

// TestReader checks that a budget grows with what is read.
func TestReader(t *testing.T) {
	r, b := Reader(strings.NewReader(strings.Repeat("a", 1<<20)), Packed)
	before := b.Available()
	io.Copy(io.Discard, r)
	if after := b.Available(); before != minBytes || after != freeBytes+Packed<<20 {
		t.Errorf("%d, then %d", before, after)
	}
	another := b.Another()
	if b.Spend(int(b.Available()), "things"); another.Available() != freeBytes+Packed<<20 {
		t.Error("another budget has less")
	}
}
