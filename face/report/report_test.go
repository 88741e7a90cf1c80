package report

import (
	"reflect"
	"strings"
	"testing"

	"strandline/face/api"
	"strandline/finding"
	"strandline/judge/verdict"
	"strandline/stack"
)

func TestLabels(t *testing.T) {
	for _, c := range []struct{ paths, want string }{
		{"dumps/step-2.pickle dumps/step-3.pickle", "step-2 step-3"},
		{"dumps/100/rank0.pickle dumps/200/rank0.pickle", "100 200"},
		{"run.step1.pickle.gz run.step10.pickle.gz", "step1 step10"},
		{"a.pickle b.json", "a.pickle b.json"},
		{"dumps/only.pickle", "only.pickle"},
		{"x.pickle x.pickle.gz", "pickle pickle.gz"},
		{"same.pickle same.pickle", "pickle pickle"},
		{"2.pickle 12.pickle", "2 12"},
	} {
		if got := strings.Join(labels(strings.Fields(c.paths)), " "); got != c.want {
			t.Errorf("labels of %s: got %s, want %s", c.paths, got, c.want)
		}
	}
	if got := labels([]string{"-"}); got[0] != "standard input" {
		t.Errorf("label of standard input: %q", got[0])
	}
}

// TestSubject names the device where it is not number 0 alone.
func TestSubject(t *testing.T) {
	on := func(process string, device int) finding.Finding {
		return finding.Finding{Process: process, Device: &device}
	}
	several := on("", 0)
	several.Evidence = &finding.OOMEvidence{Failures: []finding.OOMFailure{}}
	for _, c := range []struct {
		findings []finding.Finding
		want     string // of the first
	}{
		{[]finding.Finding{on("", 0), on("", 0)}, ""},
		{[]finding.Finding{on("", 0), on("", 1)}, "device 0"},
		{[]finding.Finding{on("", 3)}, "device 3"},
		{[]finding.Finding{on("rank1", 0), on("rank2", 1)}, "rank1"},
		{[]finding.Finding{on("rank2", 1), on("rank1", 0)}, "rank2, device 1"},
		{[]finding.Finding{several}, "device 0"},
		{[]finding.Finding{{Process: "rank1"}}, "rank1"},
	} {
		d := &Diagnosis{Diagnosis: api.Diagnosis{Findings: c.findings}}
		if got := d.subject(&d.Findings[0]); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want []string
	}{
		{"", 10, []string{""}},
		{"short", 10, []string{"short"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"a /very/long/path b", 5, []string{"a", "/very/long/path", "b"}},
		{"▁▄█ ▁▄█", 7, []string{"▁▄█ ▁▄█"}},
	} {
		if got := wrap(c.text, c.n); !reflect.DeepEqual(got, c.want) {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// Of many files the first and the last have a column, and each at most one.
func TestSome(t *testing.T) {
	for n := 1; n < 50; n++ {
		got := some(n)
		if got[0] != 0 || got[len(got)-1] != n-1 || len(got) > maxFiles {
			t.Fatalf("some(%d) = %v", n, got)
		}
		for i := 1; i < len(got); i++ {
			if got[i] <= got[i-1] {
				t.Fatalf("some(%d) = %v", n, got)
			}
		}
	}
}

func TestFrameName(t *testing.T) {
	for _, c := range []struct {
		frame stack.Frame
		want  string
	}{
		{stack.Frame{File: "a.py", Line: 3, Function: "f"}, "a.py:3 f"},
		{stack.Frame{File: "a.so", Function: "f"}, "a.so f"},
		{stack.Frame{Function: "f"}, "f"},
		{stack.Frame{File: "a.py", Line: 3}, "a.py:3"},
	} {
		if got := frameName(c.frame); got != c.want {
			t.Errorf("frameName(%v) = %q, want %q", c.frame, got, c.want)
		}
	}
}

func TestBasis(t *testing.T) {
	for _, c := range []struct {
		judged verdict.Judged
		files  int
		want   string
	}{
		{verdict.Judged{Checkpoints: 8, Enough: true}, 8, "device 0: judged over 8 files"},
		{verdict.Judged{Checkpoints: 7, Enough: true}, 8, "device 0: judged over 7 of 8 files; from the other to the next hardly anything happened"},
		{verdict.Judged{Checkpoints: 5, Enough: true}, 1200, "device 0: judged over 5 of 1,200 files; from the others to the next hardly anything happened"},
		{verdict.Judged{Checkpoints: 12, Inside: true, Enough: true, StepsFrom: "backward passes"}, 2, "device 0: judged over 12 steps of the newest file's history, by backward passes"},
		{verdict.Judged{}, 2, "device 0: too little to judge growth"},
	} {
		if got := basis(c.judged, c.files); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
