package snapshots

import (
	"fmt"
	"path/filepath"
	"testing"

	"strandline/finding"
)

// TestRegrown judges the programs of testdata/regrown.py: tensors that are
// concatenated on and on are a problem, those that end with a request or an epoch,
// have a bound, or grow with the work are not.
func TestRegrown(t *testing.T) {
	const grows, scratch, appended = 41, 45, 86 // lines of testdata/regrown.py
	for _, c := range []struct {
		files    []string
		severity finding.Severity // "" for no finding
		line     int64
		tensors  int64
		verdict  finding.Verdict
	}{
		{[]string{"const.4", "const.8", "const.12"}, finding.Problem, grows, 1, finding.Leaking},
		{[]string{"const.12"}, finding.Problem, grows, 1, finding.Leaking},
		{[]string{"each.1", "each.2", "each.3", "each.4", "each.5"}, finding.Problem, grows, 1, finding.Leaking},
		{[]string{"short.1", "short.2", "short.3", "short.4", "short.5"}, finding.Warning, grows, 1, finding.Unknown},
		{[]string{"longer.1", "longer.2", "longer.3", "longer.4", "longer.5"}, finding.Info, scratch, 1, finding.OK},
		{[]string{"varied"}, finding.Problem, grows, 1, finding.Leaking},
		{[]string{"view"}, finding.Problem, grows, 1, finding.Leaking},
		{[]string{"bounded"}, "", 0, 0, finding.OK},
		{[]string{"epoch"}, "", 0, 0, finding.OK},
		{[]string{"stops"}, finding.Info, grows, 1, finding.OK},
		{[]string{"work"}, "", 0, 0, finding.OK},
		{[]string{"decode"}, finding.Info, appended, 2, finding.OK},
		{[]string{"session"}, finding.Problem, appended, 2, finding.Leaking},
	} {
		var paths []string
		for _, name := range c.files {
			paths = append(paths, filepath.Join("testdata", "regrown", name+".pickle.gz"))
		}
		a := judge(t, paths...)
		var got []string
		for _, f := range a.Findings {
			if f.Kind == finding.Regrown || f.Kind == finding.Leak || f.Kind == finding.Growth {
				got = append(got, fmt.Sprintf("%s %s of line %d, %d", f.Severity, f.Kind, f.Site.Line, *f.Count))
			}
		}
		var want []string
		kind := finding.Regrown
		if c.line == scratch { // the history shows that nothing is appended
			kind = finding.Growth
		}
		if c.severity != "" {
			want = append(want, fmt.Sprintf("%s %s of line %d, %d", c.severity, kind, c.line, c.tensors))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || a.Verdict != c.verdict {
			t.Errorf("%v: %v and %s, want %v and %s", c.files, got, a.Verdict, want, c.verdict)
		}
	}
}

// TestRegrownFigures checks the figures of a tensor to which 512 KiB are appended in
// each of 12 steps.
func TestRegrownFigures(t *testing.T) {
	const part = 512 << 10
	a := judge(t, filepath.Join("testdata", "regrown", "const.12.pickle.gz"))
	for _, f := range a.Findings {
		if f.Kind != finding.Regrown {
			continue
		}
		e := f.Evidence.(*finding.RegrownEvidence)
		if *f.Bytes != 12*part || e.FirstBytes != part || e.Pieces != 11 || e.Joined != 11 || *f.BytesPerStep != 11*part/12 {
			t.Errorf("%d bytes, %d a step, %+v", *f.Bytes, *f.BytesPerStep, e)
		}
		if n := len(e.BytesAtCheckpoints); n != 12 || e.BytesAtCheckpoints[0] != part || e.BytesAtCheckpoints[n-1] != 12*part {
			t.Errorf("at the copies %v", e.BytesAtCheckpoints)
		}
		space := a.Processes[0].Newest().Device(0).Space
		if e.FreeBytes <= 0 || e.FreeBytes > space.Releasable+space.Stranded {
			t.Errorf("%d bytes are free where it was, of %+v", e.FreeBytes, space)
		}
		return
	}
	t.Error("it is not found")
}
