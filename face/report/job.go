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
	word := "FAILED"
	switch jobs.Cause(j.Cause) {
	case jobs.None:
		word = "OK"
	case jobs.Unknown:
		word = "UNKNOWN"
	}
	b.verdict(word, jobTitle(j))
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

// jobTitle is the verdict in a line.
func jobTitle(j *api.Job) string {
	of := "a job of " + count(j.WorldSize, "rank")
	cause := strings.ReplaceAll(j.Cause, "-", " ")
	switch jobs.Cause(j.Cause) {
	case jobs.None:
		return of + " came to its end"
	case jobs.Unknown:
		cause = "the cause is unknown"
	case jobs.NotMemory:
		cause = "not out of memory"
	}
	const doubt = 0.5
	perhaps := ""
	if j.First.Confidence < doubt {
		perhaps = "perhaps "
	}
	who := "no rank fell first"
	switch f := j.First; {
	case f.Rank != nil && f.Node != nil:
		who = fmt.Sprintf("%srank %d on %s fell first", perhaps, *f.Rank, Line(*f.Node))
	case f.Rank != nil:
		who = fmt.Sprintf("%srank %d fell first", perhaps, *f.Rank)
	case f.Node != nil:
		who = fmt.Sprintf("%snode %s fell first", perhaps, Line(*f.Node))
	}
	return fmt.Sprintf("%s: %s; %s (%s)", of, who, cause, api.Sure(j.Confidence))
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
