package live

import (
	"os"
	"strings"
	"testing"
)

// What tests need must be required where it is available: a name that test.sh does
// not have would let them be skipped everywhere.
func TestNeedsAreRequired(t *testing.T) {
	script, err := os.ReadFile("../../test.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(script), "known_available() {")
	list, _, _ = strings.Cut(list, "\n}\n")
	for _, what := range needs {
		if !strings.Contains(list, what) {
			t.Errorf("test.sh does not require %q", what)
		}
	}
}
