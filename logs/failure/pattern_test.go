package failure

import "testing"

// TestPatternsCompile compiles the expressions of all families: each is otherwise compiled
// only when a text contains a word of its family.
func TestPatternsCompile(t *testing.T) {
	n := 0
	check := func(p *pattern) {
		n++
		if got := len(p.expr.SubexpNames()) - 1; got != len(p.kinds) {
			t.Errorf("a pattern has %d groups of %d kinds", got, len(p.kinds))
		}
	}
	for _, f := range known().families {
		for i, p := range f.texts {
			if p != nil {
				check(p)
			} else {
				f.exprs[i].SubexpNames()
			}
		}
		for _, p := range f.facts {
			check(p)
		}
	}
	if n < 100 {
		t.Errorf("only %d patterns: does this still look at all?", n)
	}
}
