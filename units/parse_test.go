package units

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestQuickly holds what is read without expressions and long numbers against them.
func TestQuickly(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const marks = "0123456789..,, \tKkMGiBb@["
	for range 200_000 {
		var b strings.Builder
		for range 1 + r.IntN(24) {
			b.WriteByte(marks[r.IntN(len(marks)-14*r.IntN(2))])
		}
		s := strings.TrimSpace(b.String())
		if s == "" {
			continue
		}
		parts := size.FindStringSubmatch(s)
		whole, fraction, unit, ok := split(s)
		if ok != (parts != nil) || ok && (whole != strings.ReplaceAll(parts[1], ",", "") || fraction != parts[2] || unit != parts[3]) {
			t.Fatalf("%q is divided into %q, %q, %q, %v, want %q", s, whole, fraction, unit, ok, parts)
		}
		if !ok {
			continue
		}
		factor := []int64{1, 1000, 1 << 10, 1 << 40, 1e12}[r.IntN(5)]
		got, fits := product(whole+fraction, factor)
		if want, ok := productOf(whole+fraction, factor); ok != fits || ok && got != want {
			t.Fatalf("%s × %d is %d, %v, want %d, %v", whole+fraction, factor, got, fits, want, ok)
		}
	}
}
