package texts

import (
	"cmp"

	"strandline/finding"
	"strandline/judge/verdict"
	"strandline/logs"
	"strandline/logs/failure"
	"strandline/trend"
)

// An Answer is everything that is found in some texts.
type Answer struct {
	Findings  []finding.Finding
	Processes []*logs.Process
	// Judged states, by process, what the judgment of its tables rests on.
	Judged []verdict.Judged
}

// Statements are the texts of processes that state that memory ran out.
func Statements(processes []*logs.Process) (out []*Statement) {
	for _, p := range processes {
		for _, f := range p.Files {
			if f.Failed() {
				out = append(out, &Statement{Text: f.Text, File: f.Name, Process: p.Name, Explained: map[*failure.OOM]bool{}})
			}
		}
	}
	return out
}

// Judge judges the tables of processes, and the failures that their texts state; stated are
// their [Statements].
func Judge(processes []*logs.Process, stated []*Statement, o Options) Answer {
	a := Answer{Processes: processes}
	for _, p := range processes {
		judged := verdict.Judged{Process: p.Name}
		for _, t := range p.Tables() {
			s := newSeries(p, t, cmp.Or(o.Limit, o.Capacity))
			judged.Tables++
			judged.Checkpoints += t.Count
			judged.Enough = judged.Enough || s.verdict.Class != trend.TooShort
			judged.Open = judged.Open || s.leaks()
			a.Findings = append(a.Findings, s.usage())
			for _, find := range []func() []finding.Finding{s.growth, s.cached, s.limit} {
				a.Findings = append(a.Findings, find()...)
			}
		}
		if judged.Tables > 0 {
			a.Judged = append(a.Judged, judged)
		}
	}
	for _, s := range stated {
		a.Findings = append(a.Findings, s.Judge(o)...)
	}
	return a
}
