package ranks

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestNextLength compares the words and numbers that are found with an expression for them.
func TestNextLength(t *testing.T) {
	want := regexp.MustCompile(`(?i)\b(?:\w*(?:tokens|max_len|seqlen|seq_len|seq_length|sequence length|padded_to|longest|input_len|length|input_ids))\b[^\d\[(]{0,12}(?:\(?\[?\s?\d[\d,\s]*)?`)
	parts := []string{"tokens", "Seq_Len", "max_len", "input_ids", "longest", "length", "sequence", " length", "batch", "x", "1", "77", "4,096", "=", ": ", " ", "[", "(", ")", "é", "\xff", "_", "torch.Size([8, 512])", "\t", "step", "…", "-"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		line := []byte(b.String())
		expected := want.FindAllIndex(line, -1)
		start, end := nextLength(line, 0)
		for ; start >= 0; start, end = nextLength(line, end) {
			if len(expected) == 0 || start != expected[0][0] || end != expected[0][1] {
				t.Fatalf("%q: %d to %d instead of %v", line, start, end, expected)
			}
			expected = expected[1:]
		}
		if len(expected) > 0 {
			t.Fatalf("%q: %v is not found", line, expected)
		}
	}
}
