package failure

import "testing"

// TestWordingsCompile compiles the wordings of all families, which panics at an unknown place, and
// their expressions: each of these is otherwise compiled only when a text contains a word of its family.
func TestWordingsCompile(t *testing.T) {
	n := 0
	for _, f := range known().families {
		for i, w := range f.texts {
			if w == nil {
				f.exprs[i].SubexpNames()
				continue
			}
			if n++; w.Key == "" {
				t.Errorf("%s: a wording without words", f.source)
			}
		}
		for _, w := range f.facts {
			if n++; w.Key == "" {
				t.Errorf("%s: a fact without words", f.source)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d wordings: does this still look at all?", n)
	}
}
