package watch

import (
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/sample"
	"strandline/judge/trend"
	"strandline/units"
)

// A Row is what is known of a process so far, in few words.
type Row struct {
	// Verdict states what grows and how fast, or what does not: "allocated +48 MiB a
	// minute"; Left when its limit is reached. Both can be empty.
	Verdict, Left string
	Severity      finding.Severity // of the weightiest finding; empty if there is none
	// Trend is what it holds over time: on devices, or if it holds nothing there, on
	// the host.
	Trend []int64
}

// Rows are those of the processes of the last sample, by findings that were made of it.
func (w *Watch) Rows(findings []finding.Finding) map[sample.ID]Row {
	out := map[sample.ID]Row{}
	if w.last == nil {
		return out
	}
	for i := range w.last.Processes {
		p := &w.last.Processes[i]
		r := Row{Trend: w.trendOf(p)}
		own := name(p)
		at := slices.IndexFunc(findings, func(f finding.Finding) bool { return f.Process == own })
		if at >= 0 {
			r.Severity = findings[at].Severity
			if e, ok := findings[at].Evidence.(*finding.LevelsEvidence); ok {
				r.Verdict, r.Left = InWords(e)
			}
			if len(p.Devices) == 1 { // which goes without saying
				r.Verdict = strings.TrimPrefix(r.Verdict, fmt.Sprintf("device %d ", p.Devices[0].Device))
			}
		}
		out[p.ID()] = r
	}
	return out
}

// InWords is a judgment in few words: "allocated +48 MiB a minute", and when its limit is
// reached: "in 40 min 53 s to 1 h 4 min". The second can be empty.
func InWords(e *finding.LevelsEvidence) (verdict, left string) {
	switch trend.Shape(e.Verdict) {
	case trend.Growth, trend.SawtoothGrowth:
		verdict = fmt.Sprintf("%s +%s", e.Column, units.Rate(*e.RatePerSecond))
	case trend.Plateau:
		verdict = fmt.Sprintf("%s levels off at %s", e.Column, units.Bytes(*e.LevelBytes))
	default:
		verdict = fmt.Sprintf("%s: %s", e.Column, e.Verdict)
	}
	if t := e.SecondsToLimit; t != nil {
		left = "in " + units.Seconds(*t[0])
		if t[1] != nil {
			left += " to " + units.Seconds(*t[1])
		}
	}
	return verdict, left
}

// trendOf is the largest of a process's series.
func (w *Watch) trendOf(p *sample.Process) []int64 {
	k := key{subject{process: p.ID(), device: -1}, anonymous}
	var most int64
	for _, d := range p.Devices {
		if d.Used != nil && *d.Used > most {
			most = *d.Used
			k = key{subject{process: p.ID(), device: d.Device}, used}
		}
	}
	if s := w.series[k]; s != nil {
		return trend.Thinned(s.levels)
	}
	return nil
}
