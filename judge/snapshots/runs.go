package snapshots

import (
	"fmt"

	"strandline/finding"
	"strandline/internal/shell"
	"strandline/torch/compare"
	"strandline/units"
)

// severalRuns warns of files that were given as one process but come from several runs.
func severalRuns(p *compare.Process, runs []*compare.Process) finding.Finding {
	const maxRuns = 10 // runs that are named at most
	f := finding.Finding{
		Kind: finding.History, Severity: finding.Warning, Confidence: 1, Process: p.Name,
		Title: fmt.Sprintf("these %s belong to %d runs or processes, and each is judged separately",
			units.Plural(int64(len(p.Files)), "file"), len(runs)),
		Basis:    "how many of the blocks live at the start of a history were live at the end of the previous file",
		Remedies: []finding.Remedy{finding.CodeChange("diagnose each run separately, or separate them with --group")},
	}
	var files [][]string
	for i, r := range runs {
		files = append(files, names(r))
		switch {
		case i == maxRuns:
			f.Detail = append(f.Detail, fmt.Sprintf("and %s", units.Plural(int64(len(runs)-maxRuns), "more run")))
		case i < maxRuns:
			f.Detail = append(f.Detail, fmt.Sprintf("%s%s", plain(r.Name), shared(runs, i)))
		}
	}
	f.Evidence = &finding.HistoryEvidence{Runs: files}
	f.Brief.Title = fmt.Sprintf("%s from %d runs, judged separately", units.Plural(int64(len(p.Files)), "file"), len(runs))
	if len(runs) == 2 {
		f.Brief.Next = "strandline compare --runs " + shell.File(runs[0].Newest().Name) + " " + shell.File(runs[1].Newest().Name)
	}
	return f
}

// shared states what a run has in common with the run before it.
func shared(runs []*compare.Process, i int) string {
	text := fmt.Sprintf(": %s", units.Plural(int64(len(runs[i].Files)), "file"))
	if i == 0 {
		return text
	}
	if k := compare.KinshipOf(runs[i-1].Newest(), runs[i].Files[0]); k.Expected > 0 {
		text += fmt.Sprintf(", which share %s of %s with the previous run",
			units.Count(int64(k.Common)), units.Plural(int64(k.Expected), "block"))
	}
	return text
}
