package tables

import (
	"fmt"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/profiles"
	"strandline/profiles/jax"
	"strandline/stack"
)

// held is one line's arrays in a file.
func held(device string, line, size, count int64) profiles.Use {
	return profiles.Use{Device: device, Kind: jax.Buffer, Size: size, Count: count, Stack: []stack.Frame{{File: "/me/train.py", Line: line, Function: "step"}}}
}

// series is six files, made by step.
func series(f func(step int64) []profiles.Use) Series {
	s := Series{By: "the numbers in their names"}
	for i := range int64(6) {
		uses := f(i + 1)
		file := &profiles.File{Name: fmt.Sprintf("step-%d.prof", i+1), Format: "jax", Uses: uses}
		n := int64(0)
		for _, u := range uses {
			if u.Kind == jax.Executable {
				n += u.Count
			}
		}
		if n > 0 {
			file.Levels = []profiles.Level{{Kind: jax.Executable, Count: &n}}
		}
		s.Files = append(s.Files, file)
	}
	return s
}

func problems(a Answer) (lines []int64) {
	for _, f := range a.Findings {
		if f.Kind == finding.Leak && f.Severity == finding.Problem {
			lines = append(lines, f.Site.Line)
		}
	}
	return lines
}

func TestPlaces(t *testing.T) {
	a := Judge([]Series{series(func(step int64) []profiles.Use {
		return []profiles.Use{
			held("cuda:0", 9, 1<<20, 40),                  // parameters
			held("cuda:0", 20, 4, 10*step),                // scalars, kept
			held("cuda:1", 20, 4, 10*step),                //
			held("cuda:1", 30, 1<<20, step),               // kept on one device
			held("cuda:0", 30, 1<<20, 1),                  //
			held("cuda:0", 40, 1<<16, min(10*step, 20)),   // a cache that is full
			held("cuda:0", 50, 4096+64*step, 1),           // another size each step
			held("cuda:0", 60, 1<<16, 5+3*(step%2)),       // up and down
			held("cuda:0", 70, 8192+512*(step%3), step),   // all made again in each step, and more of it
			{Kind: jax.Executable, Size: -1, Count: step}, // compiled again and again
		}
	})})
	if a.Verdict != finding.Leaking {
		t.Errorf("verdict %s", a.Verdict)
	}
	if got := fmt.Sprint(problems(a)); got != "[30 20]" {
		t.Errorf("leaks at lines %s, want [30 20]", got)
	}
	for _, f := range a.Findings {
		if f.Kind != finding.Leak || f.Severity != finding.Problem {
			continue
		}
		switch f.Site.Line {
		case 30:
			if f.Device == nil || *f.Device != 1 || *f.Bytes != 6<<20 || *f.BytesPerStep != 1<<20 {
				t.Errorf("line 30: %+v", f)
			}
		case 20:
			if f.Device != nil || *f.Count != 120 || !strings.Contains(strings.Join(f.Detail, " "), "scalars") {
				t.Errorf("line 20: %+v", f)
			}
		}
	}
	if !strings.Contains(fmt.Sprint(a.Findings), "recompiled repeatedly: 6 executables, up from 1") {
		t.Errorf("no finding on executables: %v", a.Findings)
	}
}

// TestCompiledAtFirst has programs that are all compiled in the first steps.
func TestCompiledAtFirst(t *testing.T) {
	a := Judge([]Series{series(func(step int64) []profiles.Use {
		return []profiles.Use{held("cuda:0", 9, 4, 1), {Kind: jax.Executable, Size: -1, Count: 70 + min(step, 3)}}
	})})
	if a.Verdict != finding.OK || strings.Contains(fmt.Sprint(a.Findings), "again and again") {
		t.Errorf("%s: %v", a.Verdict, a.Findings)
	}
}

func TestTooFew(t *testing.T) {
	s := series(func(step int64) []profiles.Use { return []profiles.Use{held("cuda:0", 20, 4, 10*step)} })
	s.Files = s.Files[:2]
	if a := Judge([]Series{s}); a.Verdict != finding.Unknown || len(problems(a)) != 0 {
		t.Errorf("two files: %s, %v", a.Verdict, problems(a))
	}
}
