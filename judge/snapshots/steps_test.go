package snapshots

import (
	"fmt"
	"path/filepath"
	"testing"

	"strandline/finding"
	"strandline/torch/timeline"
)

// TestSteps judges loops of testdata/steps.py by their steps: what is kept in each
// of them, in every second or tenth, and what one pass keeps.
func TestSteps(t *testing.T) {
	const leakLine, mib = 23, 1 << 20
	for _, c := range []struct {
		file     string
		verdict  finding.Verdict
		severity finding.Severity // of the leak, "" for none
		steps    int
		from     string
		perStep  float64 // MiB
	}{
		{"annotated.3", finding.Unknown, finding.Warning, 3, "annotated steps", 40},
		{"adam.1", finding.Unknown, "", 1, "optimizer updates", 0},
		{"adam.2", finding.Unknown, "", 2, "optimizer updates", 0},
		{"adam.3", finding.Unknown, finding.Warning, 3, "optimizer updates", 40},
		{"adam.5", finding.Leaking, finding.Problem, 5, "optimizer updates", 8},
		{"adam.healthy", finding.OK, "", 5, "optimizer updates", 0},
		{"adam.late", finding.Leaking, finding.Problem, 5, "optimizer updates", 8},
		{"adam.cpp", finding.Unknown, finding.Warning, 3, "optimizer updates", 40},
		{"adam.second", finding.Leaking, finding.Problem, 9, "optimizer updates", 8 * 5.0 / 9},
		{"adam.tenth", finding.Leaking, finding.Problem, 40, "optimizer updates", 0.8},
		{"adam.streams", finding.OK, "", 5, "optimizer updates", 0},
		{"manual.5", finding.Leaking, finding.Problem, 5, "backward passes", 8},
		{"data.5", finding.Leaking, finding.Problem, 5, "backward passes", 8},
		{"backward.5", finding.Leaking, finding.Problem, 5, "backward passes", 8},
		{"infer.1", finding.Unknown, "", 0, "", 0},
		{"infer.5", finding.Leaking, finding.Problem, 5, timeline.Requests, 8},
		{"infer.healthy", finding.OK, "", 10, timeline.Requests, 0},
		{"lora.1", finding.Unknown, "", 1, "backward passes", 0},
	} {
		a := judge(t, filepath.Join("testdata", "steps", c.file+".pickle.gz"))
		judged := a.Judged[0]
		if a.Verdict != c.verdict || judged.Checkpoints != c.steps || judged.StepsFrom != c.from {
			t.Errorf("%s: %s by %d %s, want %s by %d %s", c.file, a.Verdict, judged.Checkpoints, judged.StepsFrom, c.verdict, c.steps, c.from)
		}
		var got []string
		for _, f := range a.Findings {
			if f.Kind == finding.Leak || f.Kind == finding.Growth {
				got = append(got, fmt.Sprintf("%s of line %d, %d bytes a step", f.Severity, f.Site.Line, *f.BytesPerStep))
			}
		}
		var want []string
		if c.severity != "" {
			want = append(want, fmt.Sprintf("%s of line %d, %d bytes a step", c.severity, leakLine, int64(c.perStep*mib)))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", c.file, got, want)
		}
	}
}
