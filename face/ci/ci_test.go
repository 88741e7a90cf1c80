package ci

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strandline/finding"
)

func cases() []Case {
	line := int64(7)
	leak := finding.Finding{
		Kind: finding.Leak, Severity: finding.Problem, Title: "20 allocations, 100% kept: a,b", Process: "rank0",
		Detail: []string{"a detail"}, Site: &finding.Site{File: "/repo/src/train.py", Line: 12, Function: "step"},
		Evidence: &finding.LeakEvidence{HeldBy: []finding.HeldBy{{Path: "trainer.meters['loss']", File: "/repo/src/meter.py", Line: &line}}},
		Remedies: []finding.Remedy{finding.CodeChange("call .item()\nthere")},
	}
	return []Case{
		{Name: "train|all", Seconds: 1.5, Verdict: finding.Leaking, Growth: "1 MiB a step", Findings: []finding.Finding{{Severity: finding.Info, Title: "note"}, leak}},
		{Name: "data", Seconds: 1, Verdict: finding.OK, Basis: "python load.py: exit status 0", Findings: []finding.Finding{{Severity: finding.Info, Title: "note"}}},
		{Name: "short", Verdict: finding.Unknown, Missing: []string{"20 steps"}},
		{Name: "broken", Verdict: finding.Unknown, Failed: "the command failed by itself: exit status 3\x1b"},
	}
}

func TestJUnit(t *testing.T) {
	var b strings.Builder
	if err := JUnit(&b, "strandline", cases()); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v: %s", err, b.String())
	}
	s := got.Suites[0]
	if s.Tests != 4 || s.Failures != 1 || s.Errors != 1 || s.Skipped != 1 || s.Time != "2.500" {
		t.Errorf("%+v", s)
	}
	if f := s.Cases[0].Failure; f == nil || f.Type != "leak" || !strings.Contains(f.Text, "held by trainer.meters['loss'] (/repo/src/meter.py:7)") {
		t.Errorf("%+v", f)
	}
	if s.Cases[1].Failure != nil || s.Cases[1].Skipped != nil || s.Cases[2].Skipped == nil || s.Cases[3].Error == nil {
		t.Errorf("%+v", s.Cases)
	}
}

// junit10 is the part of the schema of Jenkins that is used here, for each element where
// it may stand and which attributes it may and must have:
// https://github.com/jenkinsci/xunit-plugin/blob/master/src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd/junit-10.xsd
var junit10 = map[string]struct{ within, attributes, required []string }{
	"testsuites": {[]string{""}, []string{"name", "time", "tests", "failures", "errors"}, nil},
	"testsuite": {
		[]string{"testsuites", "testsuite"},
		[]string{"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
		[]string{"name", "tests", "failures", "errors"},
	},
	"testcase":   {[]string{"testsuite"}, []string{"time", "classname", "group"}, []string{"name"}},
	"failure":    {[]string{"testcase"}, []string{"type", "message"}, nil},
	"error":      {[]string{"testcase"}, []string{"type", "message"}, nil},
	"skipped":    {[]string{"testcase"}, []string{"type", "message"}, nil},
	"system-out": {[]string{"testcase", "testsuite"}, nil, nil},
}

// junitTime is how the schema writes a time of a suite.
var junitTime = regexp.MustCompile(`^(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?$`)

func TestJUnitSchema(t *testing.T) {
	var b strings.Builder
	if err := JUnit(&b, "strandline", cases()); err != nil {
		t.Fatal(err)
	}
	within, seen := []string{""}, map[string]bool{}
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.EndElement:
			within = within[:len(within)-1]
		case xml.StartElement:
			name := e.Name.Local
			want, ok := junit10[name]
			if !ok || !slices.Contains(want.within, within[len(within)-1]) {
				t.Errorf("%s in %v", name, within)
			}
			var has []string
			for _, a := range e.Attr {
				has = append(has, a.Name.Local)
				if !slices.Contains(append(want.attributes, want.required...), a.Name.Local) || a.Name.Local == "time" && !junitTime.MatchString(a.Value) {
					t.Errorf("%s: %s=%q", name, a.Name.Local, a.Value)
				}
			}
			for _, a := range want.required {
				if !slices.Contains(has, a) {
					t.Errorf("%s has no %s", name, a)
				}
			}
			within, seen[name] = append(within, name), true
		}
	}
	if len(seen) != len(junit10) {
		t.Errorf("only %v", seen)
	}
}

func TestGitHub(t *testing.T) {
	var b strings.Builder
	GitHub(&b, "/repo", cases())
	want := "::error file=src/train.py,line=12,title=strandline%3A leak::rank0: 20 allocations, 100%25 kept: a,b%0Aallocated at /repo/src/train.py:12 step%0Aheld by trainer.meters['loss'] (/repo/src/meter.py:7)%0Afix: call .item()%0Athere\n" +
		"::warning title=strandline%3A cannot be judged::short: 20 steps\n" +
		"::error title=strandline%3A failed::broken: the command failed by itself: exit status 3\ufffd\n"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
	for file, want := range map[string]string{"/repo/a.py": "a.py", "/repository/a.py": "/repository/a.py", "a.py": "a.py"} {
		if got := relativeTo("/repo", file); got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	var b strings.Builder
	Markdown(&b, "strandline check", cases())
	for _, want := range []string{
		"### strandline check\n", `| train\|all | LEAK | 1 MiB a step |`, "| data | OK |", "| broken | FAILED: the command failed by itself: exit status 3",
		"**rank0: 20 allocations, 100% kept: a,b**", "- allocated at /repo/src/train.py:12 step", "short: cannot be judged: 20 steps",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "note") || strings.Contains(b.String(), "\x1b") {
		t.Errorf("%s", b.String())
	}
}
