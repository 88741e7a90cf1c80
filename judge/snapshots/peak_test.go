package snapshots

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/purpose"
	"strandline/torch/snapshot"
)

// TestLeakedIsOneClass holds what the findings of a leak count at the end against
// what is called leaked there, in every table.
func TestLeakedIsOneClass(t *testing.T) {
	for _, files := range []string{"image-leak/*.pickle", "image-leak/step-4.pickle", "autograd-graph/*.pickle"} {
		a := judge(t, example(t, files)...)
		var leaked int64
		for i := range a.Findings {
			if f := &a.Findings[i]; f.Severity == finding.Problem {
				leaked += *f.Bytes
			}
		}
		end := evidenceOf(t, a, finding.Peak).(*finding.PeakEvidence).AtEnd
		var sum int64
		for _, n := range end.ByPurpose {
			sum += n
		}
		if end.LeakedBytes != leaked || sum != end.Bytes || end.ByPurpose["other"] < leaked {
			t.Errorf("%s: %d bytes leak, and at the end are %+v", files, leaked, end)
		}
	}
}

func evidenceOf(t *testing.T, a Answer, kind finding.Kind) finding.Evidence {
	t.Helper()
	for i := range a.Findings {
		if a.Findings[i].Kind == kind {
			return a.Findings[i].Evidence
		}
	}
	t.Fatalf("no finding of kind %s", kind)
	return nil
}

// TestStateAlone judges what is left of a file without its events.
func TestStateAlone(t *testing.T) {
	s, err := snapshot.Open(example(t, "image-leak/step-4.pickle")[0], snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Traces = nil
	b := digest.NewBook()
	a := Files(b, []*compare.Process{compare.NewProcess("", []*digest.File{b.Digest(s)})}, Options{})
	e := evidenceOf(t, a, finding.Usage).(*finding.UsageEvidence)
	if by := e.ByPurpose; by["parameters"] == 0 || by["workspaces"] != 32<<20 || by["unknown"] < 214477260 {
		t.Errorf("it is %v", by)
	}
	if e.Sites[0].Bytes != 214477260 {
		t.Errorf("most is held by %+v", e.Sites[0])
	}
}

// TestGrowthInUse looks for no warning of a cache that grows token by token in a
// request that is not over.
func TestGrowthInUse(t *testing.T) {
	for _, f := range judge(t, "testdata/kv.pieces.pickle.gz").Findings {
		if f.Kind == finding.Growth && (f.Severity != finding.Info || f.Confidence > undecidable || !strings.Contains(f.Title, "temporaries")) {
			t.Errorf("%s, %v sure: %s", f.Severity, f.Confidence, f.Title)
		}
		if f.Severity != finding.Info {
			t.Errorf("%s: %s", f.Severity, f.Title)
		}
	}
}

// TestNotFreed distinguishes what is freed from what is not yet, where no steps are found.
func TestNotFreed(t *testing.T) {
	for _, f := range judge(t, example(t, "out-of-memory/oom.pickle")...).Findings {
		if f.Kind != finding.Peak {
			continue
		}
		const pins = 900 << 20
		end := f.Evidence.(*finding.PeakEvidence).AtEnd.ByPurpose
		if end[purpose.Unknown.String()] != pins || len(end) != 1 || f.Confidence != 0 || !strings.Contains(f.Title, purpose.NotFreed) {
			t.Errorf("%v sure: %s; at the end %v", f.Confidence, f.Title, end)
		}
	}
}

// TestPeakBeforeHistory states so where nothing in the history was higher than what
// was there before it.
func TestPeakBeforeHistory(t *testing.T) {
	for file, before := range map[string]bool{"../../torch/snapshot/testdata/w10_nothing.default.state.pickle": true, "testdata/honest.pickle.gz": false} {
		for _, f := range judge(t, file).Findings {
			if f.Kind != finding.Peak {
				continue
			}
			text := strings.Join(f.Detail, "\n")
			if strings.Contains(text, "when the history began") != before || strings.Contains(f.Title, purpose.Unknown.Words()) != before || strings.Contains(f.Title, purpose.NotFreed) {
				t.Errorf("%s: %s\n%s", file, f.Title, text)
			}
		}
	}
}

// TestPeakOfTornFile has a file that ends early: the peak states by how much it may be
// too high.
func TestPeakOfTornFile(t *testing.T) {
	whole := example(t, "image-leak/step-4.pickle")[0]
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "torn.pickle")
	if err := os.WriteFile(torn, data[:len(data)*9/10], 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{whole: false, torn: true} {
		a := judge(t, path)
		i := slices.IndexFunc(a.Findings, func(f finding.Finding) bool { return f.Kind == finding.Peak })
		if i < 0 {
			t.Fatalf("%s: no peak", path)
		}
		if detail := strings.Join(a.Findings[i].Detail, "\n"); strings.Contains(detail, "may be too high by up to") != want {
			t.Errorf("%s: %s", path, detail)
		}
	}
}
