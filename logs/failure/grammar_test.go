package failure

import "testing"

// TestGrammarCompiles compiles the expressions that the table of engines and the prefixes
// of logs give a part of.
func TestGrammarCompiles(t *testing.T) {
	hosts.MatchString("")
	for _, p := range programs {
		if p.words.MatchString("") {
			t.Errorf("the words of %s are found in an empty text", p.source)
		}
	}
}
