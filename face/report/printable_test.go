package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"strandline/face/api"
	"strandline/finding"
	"strandline/stack"
)

func TestPrintable(t *testing.T) {
	var out strings.Builder
	w := PrintableWriter(&out)
	s := Style{Color: true}
	n, err := fmt.Fprint(w, s.bold("title")+"\n\tname\x1b]0;owned\x07 \x1b[31m\x1b[2J \x00[1m \u202eevil\u009b1m\x9b1m\x7f\u2028 ok ▁█ é\r\n")
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	want := "\x1b[1mtitle\x1b[0m\n\tname�]0;owned� �[31m�[2J �[1m �evil�1m�1m�� ok ▁█ é�\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	if got := Line("a\nb\tc\x1b[8m"); got != "a�b�c�[8m" {
		t.Errorf("Line: %q", got)
	}
}

// Characters may be cut between two writes.
func TestPrintableInPieces(t *testing.T) {
	const text = "▁█ é \U0001f600 \u009bm"
	var out strings.Builder
	w := PrintableWriter(&out)
	for i := range len(text) {
		if n, err := w.Write([]byte{text[i]}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := "▁█ é \U0001f600 �m"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// What a file names neither paints nor breaks a line.
func TestNamesStayInTheirLine(t *testing.T) {
	evil := "x\nOK: nothing leaks\x1b[31m\t\x1b[8m"
	site := finding.Site{File: evil, Line: 1, Function: evil}
	f := finding.Finding{Severity: finding.Problem, Title: evil, Process: evil, Basis: evil, Detail: []string{evil}, Site: &site,
		Stack:    []finding.Frame{site, {File: evil, Line: 2, Function: evil}},
		Remedies: []finding.Remedy{{Text: evil, Setting: "PYTORCH_CUDA_ALLOC_CONF=" + evil}}}
	d := Diagnosis{Diagnosis: api.Diagnosis{Findings: []finding.Finding{f}, Processes: []api.Process{{Files: []string{evil}, Partial: []string{evil}, Basis: []string{}}}}}
	runs := api.Runs{Before: evil, After: evil, Sites: []api.RunChange{{Site: siteOf(stack.Site(site))}}}
	for _, s := range []Style{{}, {Color: true}} {
		var out strings.Builder
		d.Text(PrintableWriter(&out), s)
		writeRuns(PrintableWriter(&out), s, &runs)
		for _, line := range strings.Split(out.String(), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "OK: nothing leaks") {
				t.Errorf("a name has a line of its own: %q", line)
			}
		}
		if strings.Contains(out.String(), "\x1b[31m") || strings.Contains(out.String(), "\x1b[8m") || strings.Contains(out.String(), "\t") {
			t.Errorf("a name acts on the terminal: %q", out.String())
		}
	}
}

// What a terminal would act on is escaped in JSON, and reads back the same.
func TestJSONEscapes(t *testing.T) {
	name := "a\x1b[31m\x7f\u0085\u009b2J\u2028\u202eb\u200f\u2066é日\tc\n"
	var out strings.Builder
	if err := JSON(&out, map[string]string{name: name}); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if control(r) {
			t.Errorf("%U is left in %q", r, out.String())
		}
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back[name] != name {
		t.Errorf("it reads back as %q: %v", back, err)
	}
}
