// Package ci writes the verdicts of gates for the systems that run them: JUnit XML, the
// annotations of GitHub Actions, and a summary in Markdown for a pull request. It judges
// nothing, and knows nothing of what was measured: check and other gates describe what
// they did as a [Case].
package ci

import (
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"strandline/face/report"
	"strandline/finding"
)

// A Case is one verdict.
type Case struct {
	Name    string
	Seconds float64
	Verdict finding.Verdict
	Growth  string   // as a person reads it; "" if unknown
	Peak    string   // the same
	Basis   string   // what ran, a sentence
	Failed  string   // how what was judged failed by itself, a sentence; "" if it did not
	Missing []string // what a verdict would need, sentences
	Notes   []string // what else a reader of the verdict has to know, sentences
	// Interrupted reports whether Failed is that it was ended from outside.
	Interrupted bool
	Findings    []finding.Finding
}

// ended is what Failed is, in a word.
func (c *Case) ended() string {
	if c.Interrupted {
		return "interrupted"
	}
	return "failed"
}

// problems are the findings that ask for something.
func (c *Case) problems() (out []*finding.Finding) {
	for i := range c.Findings {
		if c.Findings[i].Severity == finding.Problem {
			out = append(out, &c.Findings[i])
		}
	}
	return out
}

// text is a finding in a few lines: what, where, who keeps it, what to do, why. What a
// terminal prints with -v is not in it.
func text(f *finding.Finding) (lines []string) {
	lines = append(lines, title(f))
	if f.Site != nil {
		lines = append(lines, strings.TrimSpace("allocated at "+place(f.Site.File, f.Site.Line)+" "+f.Site.Function))
	}
	if e, ok := f.Evidence.(*finding.LeakEvidence); ok && len(e.HeldBy) > 0 {
		h := e.HeldBy[0]
		line := "held by " + h.Path
		if h.Line != nil {
			line += " (" + place(h.File, *h.Line) + ")"
		}
		lines = append(lines, line)
	}
	return append(lines, report.BriefLines(f)...)
}

func title(f *finding.Finding) string {
	if f.Process == "" || strings.Contains(f.Title, f.Process) {
		return f.Title
	}
	return f.Process + ": " + f.Title
}

// place is a line of a file, or a file alone where the line is not known, as in a program
// without debug information.
func place(file string, line int64) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string      `xml:"name,attr"`
	Class   string      `xml:"classname,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitFault `xml:"failure"`
	Error   *junitFault `xml:"error"`
	Skipped *junitFault `xml:"skipped"`
	Output  string      `xml:"system-out,omitempty"`
}

type junitFault struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes the cases as a suite of that name: what leaks or is above a limit has
// failed, what failed by itself is an error, and what cannot be judged is
// skipped.
func JUnit(w io.Writer, suite string, cases []Case) error {
	s := junitSuite{Name: suite, Tests: len(cases)}
	var seconds float64
	for i := range cases {
		c := &cases[i]
		seconds += c.Seconds
		out := junitCase{Name: c.Name, Class: suite, Time: fmt.Sprintf("%.3f", c.Seconds), Output: clean(strings.Join(append([]string{c.Basis}, c.Notes...), "\n"))}
		switch problems := c.problems(); {
		case c.Failed != "":
			s.Errors++
			out.Error = &junitFault{Message: clean(c.Failed), Type: c.ended()}
		case len(problems) > 0:
			s.Failures++
			var lines []string
			for _, f := range problems {
				lines = append(lines, text(f)...)
			}
			out.Failure = &junitFault{Message: clean(title(problems[0])), Type: string(problems[0].Kind), Text: clean(strings.Join(lines, "\n"))}
		case c.Verdict == finding.Unknown:
			s.Skipped++
			out.Skipped = &junitFault{Message: clean("cannot be judged: " + strings.Join(c.Missing, "; "))}
		}
		s.Cases = append(s.Cases, out)
	}
	s.Time = fmt.Sprintf("%.3f", seconds)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{s}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// clean makes text printable, so that it can stand in XML.
func clean(text string) string { return report.Printable(strings.ToValidUTF8(text, "?")) }

// GitHub writes workflow commands, which GitHub shows beside the lines that they name:
// an error for each problem and each failure, a warning for what cannot be
// judged. Files below root, the folder of the checkout, are named as they are in it.
func GitHub(w io.Writer, root string, cases []Case) {
	for i := range cases {
		c := &cases[i]
		problems := c.problems()
		for _, f := range problems {
			at := ""
			if f.Site != nil && f.Site.Line > 0 {
				at = fmt.Sprintf("file=%s,line=%d,", property(relativeTo(root, f.Site.File)), f.Site.Line)
			}
			fmt.Fprintf(w, "::error %stitle=%s::%s\n", at, property("strandline: "+string(f.Kind)), message(strings.Join(text(f), "\n")))
		}
		switch {
		case c.Failed != "":
			fmt.Fprintf(w, "::error title=strandline%%3A %s::%s\n", c.ended(), message(c.Name+": "+c.Failed))
		case len(problems) == 0 && c.Verdict == finding.Unknown:
			fmt.Fprintf(w, "::warning title=strandline%%3A cannot be judged::%s\n", message(c.Name+": "+strings.Join(c.Missing, "; ")))
		}
	}
}

// relativeTo is the name of a file in a folder, or as it is where it is elsewhere.
func relativeTo(root, file string) string {
	if root == "" || !filepath.IsAbs(file) {
		return file
	}
	if name, err := filepath.Rel(root, file); err == nil && filepath.IsLocal(name) {
		return name
	}
	return file
}

// message and property are text in a workflow command:
// https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts
func message(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(clean(text))
}

func property(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(message(text))
}

// Markdown writes a summary: a table of the cases, and the problems with their places.
func Markdown(w io.Writer, heading string, cases []Case) {
	fmt.Fprintf(w, "### %s\n\n| | verdict | growth | peak |\n| --- | --- | --- | --- |\n", report.Cell(heading))
	for i := range cases {
		c := &cases[i]
		verdict := strings.ToUpper(string(c.Verdict))
		if c.Failed != "" {
			verdict = strings.ToUpper(c.ended()) + ": " + c.Failed
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", report.Cell(c.Name), report.Cell(verdict), report.Cell(c.Growth), report.Cell(c.Peak))
	}
	for i := range cases {
		c := &cases[i]
		for _, f := range c.problems() {
			lines := text(f)
			fmt.Fprintf(w, "\n**%s**\n\n", report.Cell(lines[0]))
			for _, line := range lines[1:] {
				fmt.Fprintf(w, "- %s\n", report.Cell(line))
			}
		}
		if c.Verdict == finding.Unknown && c.Failed == "" {
			for _, m := range c.Missing {
				fmt.Fprintf(w, "\n%s: cannot be judged: %s\n", report.Cell(c.Name), report.Cell(m))
			}
		}
		for _, n := range c.Notes {
			fmt.Fprintf(w, "\n%s: %s\n", report.Cell(c.Name), report.Cell(n))
		}
	}
	fmt.Fprintln(w)
}
