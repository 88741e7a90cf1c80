package detect

import (
	"path/filepath"
	"testing"

	"strandline/finding"
)

// fragmentationOf is the finding for a file of the snapshot package's test data.
func fragmentationOf(t *testing.T, file string) *finding.Finding {
	t.Helper()
	a := judge(t, filepath.Join("..", "snapshot", "testdata", file))
	for i := range a.Findings {
		if a.Findings[i].Kind == finding.Fragmentation {
			return &a.Findings[i]
		}
	}
	return nil
}

func TestFragmentation(t *testing.T) {
	f := fragmentationOf(t, "w06b_oom_fragmented.default.oom.pickle")
	if f == nil {
		t.Fatal("2.6 GiB of 3.5 GiB are free in pieces, and nothing says so")
	}
	const mib = 1 << 20
	if r, s := f.Evidence["releasable_bytes"], f.Evidence["stranded_bytes"]; r != int64(0) || s != int64(2700*mib) {
		t.Errorf("releasable %v, stranded %v", r, s)
	}
	if len(f.Remedies) == 0 || f.Remedies[0].Setting == "" {
		t.Errorf("no setting is named: %v", f.Remedies)
	}
	if f := fragmentationOf(t, "w04_graph_leak.default.iter20.pickle"); f != nil {
		t.Errorf("a file with little free memory: %s", f.Title)
	}
}
