package diagnosis

import (
	"context"
	"regexp"
	"strconv"

	"strandline/finding"
	"strandline/input"
	"strandline/judge/jobs"
	"strandline/judge/snapshots"
	"strandline/judge/texts"
)

// rankOf is how a process of snapshots is named after its rank.
var rankOf = regexp.MustCompile(`^(?i:rank)[ _-]?(\d+)$`)

// JobOf judges files as those of a job of many ranks, with what else was found in them. It is
// nil if they are not.
func JobOf(ctx context.Context, files *input.Files, a *Answer) *jobs.Job {
	texts := files.Ranks(ctx)
	if len(texts) == 0 {
		return nil
	}
	var more jobs.Evidence
	if a != nil {
		more.Grew = map[int]string{}
		for _, f := range a.Findings {
			m := rankOf.FindStringSubmatch(f.Process)
			if m == nil || f.Kind != finding.Leak && f.Kind != finding.AutogradGraph || f.Site == nil {
				continue
			}
			if n, err := strconv.Atoi(m[1]); err == nil && more.Grew[n] == "" {
				more.Grew[n] = f.Site.File + ":" + strconv.FormatInt(f.Site.Line, 10)
			}
		}
	}
	return jobs.Judge(texts, more)
}

// Nothing is the answer on files in which nothing is about memory.
func Nothing() *Answer {
	return &Answer{Verdict: finding.Unknown, Findings: []finding.Finding{}, Snapshots: &snapshots.Answer{}, Texts: &texts.Answer{}}
}
