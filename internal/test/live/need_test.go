package live

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// What tests need must be required where it is available: a name that test.sh does
// not have would let them be skipped everywhere.
func TestNeedsAreRequired(t *testing.T) {
	script, err := os.ReadFile("../../../test.sh")
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

// Every test is skipped by this package: by [Missing], with what it lacks, so that what
// must run on a machine can be required there, or by a mark.
func TestSkipsAreTyped(t *testing.T) {
	skip := regexp.MustCompile(`\b[tb]b?\.Skip(f|Now)?\(`)
	root := os.DirFS("../../..")
	files := 0
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "internal/test/live/"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files++
		for i, line := range strings.Split(string(text), "\n") {
			if skip.MatchString(line) {
				t.Errorf("%s:%d: use live.Missing: %s", name, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files were read: %v", files, err)
	}
}
