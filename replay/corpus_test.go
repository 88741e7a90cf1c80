package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/snapshot"
)

func TestCorpusReplaysExactly(t *testing.T) {
	dir := os.Getenv("STRANDLINE_CORPUS")
	if dir == "" {
		t.Skip("STRANDLINE_CORPUS names no folder of recorded snapshots")
	}
	var files []string
	for _, pattern := range []string{"torch/*.pickle", "wild/*__*", "torch/big/*.pickle"} {
		some, _ := filepath.Glob(filepath.Join(dir, pattern))
		files = append(files, some...)
	}
	exact, n := 0, 0
	for _, file := range files {
		if strings.Contains(file, "edited") || strings.Contains(file, "truncated") {
			continue
		}
		s, err := snapshot.Open(file, snapshot.Options{})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, d := range s.Devices() {
			r, err := NewRecording(s, d.Index)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			n++
			x := r.Exact()
			if x.Difference != nil {
				t.Errorf("%s device %d: %v; %d of %d calls, %d of %d segments", filepath.Base(file), d.Index, x.Difference, x.CallsMet, x.Calls, x.SegmentsMet, x.Segments)
			} else {
				exact++
			}
		}
	}
	t.Logf("%d of %d exact", exact, n)
}
