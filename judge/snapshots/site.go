package snapshots

import (
	"fmt"
	"strings"
	"unicode"

	"strandline/finding"
	"strandline/stack"
)

func siteOf(s stack.Site) *finding.Site {
	if s == (stack.Site{}) {
		return nil
	}
	out := finding.Site(s)
	return &out
}

func framesOf(frames []stack.Frame) []finding.Frame {
	out := make([]finding.Frame, len(frames))
	for i, f := range frames {
		out[i] = finding.Frame(f)
	}
	return out
}

// base is a place without its directories: train.py:39.
func base(s finding.Site) string {
	return fmt.Sprintf("%s:%d", s.File[strings.LastIndexAny(s.File, `/\`)+1:], s.Line)
}

// short is a site without its directories: train.py:39 step.
func short(s stack.Site) string {
	s.File, s.Function = plain(s.File), plain(s.Function)
	if s == (stack.Site{}) {
		return "an unknown place"
	}
	file := s.File
	for i := len(file) - 1; i >= 0; i-- {
		if file[i] == '/' || file[i] == '\\' {
			file = file[i+1:]
			break
		}
	}
	return fmt.Sprintf("%s:%d %s", file, s.Line, s.Function)
}

// plain replaces control characters, because names in a file can contain anything.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
}
