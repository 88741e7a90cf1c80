package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"strandline/face/api"
	"strandline/judge/jobs"
	"strandline/units"
)

// SetJob adds the verdict on a job of several ranks.
func (d *Diagnosis) SetJob(j *jobs.Job) { d.Job = api.NewJob(j) }

// job prints the verdict on a job of several ranks: who fell first and why, its line, who
// followed, and what to do.
func (d *Diagnosis) job(w io.Writer, s Style) {
	j := d.Job
	b := newBrief(w, s, nil, nil)
	b.verdict(j.Word, Line(j.Title))
	if j.Quote != "" {
		const maxQuote = 320
		quote := Line(j.Quote)
		if len(quote) > maxQuote {
			quote = strings.ToValidUTF8(quote[:maxQuote], "") + "…"
		}
		b.line("", quote)
	}
	if at := jobPlace(j); at != "" {
		b.line("AT", at)
	}
	b.line("WHY", Line(j.Why)+jobRest(j))
	if j.Fix != "" {
		b.line("FIX", j.Fix)
	}
	if j.Again != "" {
		b.line("RERUN", j.Again)
	}
}

// jobPlace is the line of the program, and that of the text which shows the failure.
func jobPlace(j *api.Job) string {
	var parts []string
	if j.Site != "" {
		parts = append(parts, Line(j.Site))
	}
	if j.Text != "" && j.Line > 0 {
		parts = append(parts, fmt.Sprintf("%s:%d", Line(lastFolders(j.Text)), j.Line))
	}
	return strings.Join(parts, ", ")
}

// lastFolders is the name of a file, and where no number tells it from those of other ranks,
// such as stderr.log, also the two folders above it.
func lastFolders(path string) string {
	if name := filepath.Base(path); strings.ContainsAny(name, "0123456789") {
		return name
	}
	folder := filepath.Dir(path)
	short, err := filepath.Rel(filepath.Dir(filepath.Dir(folder)), path)
	if err != nil {
		return path
	}
	return short
}

// jobRest counts those that followed, and names those without a text.
func jobRest(j *api.Job) (s string) {
	if j.Followers > 0 {
		s = fmt.Sprintf("; %s only followed", count(j.Followers, "other rank"))
	}
	if n := len(j.Missing); n > 0 {
		const maxNamed = 8
		var named []string
		for _, r := range j.Missing[:min(n, maxNamed)] {
			named = append(named, units.Count(int64(r)))
		}
		s += "; no whole text of " + count(n, "rank") + ": " + strings.Join(named, ", ")
		if n > maxNamed {
			s += ", …"
		}
	}
	if j.Attempts > 1 {
		s += fmt.Sprintf("; the last of %s", count(j.Attempts, "attempt"))
	}
	return s
}
