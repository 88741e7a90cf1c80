package live

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// BuiltOf fails a test if what a script built is not of these sources, whose sum the first
// line of a file notes. The sources that match a pattern are in the order of their names.
// test.sh builds it anew where the same compilers are.
func BuiltOf(t testing.TB, script, noted string, patterns ...string) {
	t.Helper()
	h := sha256.New()
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		slices.Sort(names)
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(text)
		}
	}
	text, err := os.ReadFile(noted)
	if err != nil {
		t.Fatal(err)
	}
	if sum, _, _ := strings.Cut(string(text), "\n"); sum != hex.EncodeToString(h.Sum(nil)) {
		t.Errorf("the sources changed since %s was written: run %s", noted, script)
	}
}
