package input

import (
	"path/filepath"
	"testing"
)

// TestBeside drops files on a page: those without a folder are of the one that is shown.
func TestBeside(t *testing.T) {
	files, err := OpenPaths([]string{"../examples/image-leak/step-4.pickle"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	dropped := []Source{{Path: "step-2.pickle", Named: true}, {Path: "step-4.pickle", Named: true}, {Path: "run/step-2.pickle"}}
	files.Beside(dropped)
	for i, want := range []string{filepath.Join("..", "examples", "image-leak", "step-2.pickle"), "step-4.pickle", "run/step-2.pickle"} {
		if dropped[i].Path != want {
			t.Errorf("%s, want %s", dropped[i].Path, want)
		}
	}
}
