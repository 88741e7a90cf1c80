package record

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLastStep shows that all steps of a process are counted, though of many its memory is not
// noted, as that takes too much of their time.
func TestLastStep(t *testing.T) {
	const code = `
import strandline
from strandline import _levels
_levels._FREE = _levels._SHARE = 0
for _ in range(50):
    strandline.step()
`
	for _, python := range pythons(t) {
		work := t.TempDir()
		file := filepath.Join(work, "steps.py")
		s, err := Begin(Options{Dir: filepath.Join(work, "recording"), Levels: "call", NoSnapshots: true}, Manifest{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
		runSilently(t, s, python, file)
		all := s.Levels()
		if len(all) != 1 || len(all[0]) > 10 {
			t.Fatalf("%s: %+v", python, all)
		}
		first, last := all[0][0], all[0][len(all[0])-1]
		if last.Step != 50 || last.By != first.By || last.Host != nil || last.Heap != nil || first.Step != 1 {
			t.Errorf("%s: from %+v to %+v", python, first, last)
		}
		if _, err := s.End(0); err != nil {
			t.Fatal(err)
		}
	}
}
