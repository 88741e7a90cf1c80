package samples

import (
	"fmt"
	"strings"

	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/trend"
	"strandline/units"
)

// A Row is what is known of a process so far, in few words.
type Row struct {
	// Verdict states what grows and how fast, or what does not: "allocated +48 MiB a
	// minute"; Left when its limit is reached. Both can be empty.
	Verdict, Left string
	Severity      finding.Severity // of the weightiest finding; empty if there is none
	// Trend is what it holds over time, in at most [RowPoints] points: on devices, or if it
	// holds nothing there, on the host.
	Trend []int64
}

// RowPoints is how many points of a course a row has.
const RowPoints = 12

// Rows are those of the processes of the last sample, by findings that were made of it.
func (w *Watch) Rows(findings []finding.Finding) map[sample.ID]Row {
	if w.last == nil {
		return map[sample.ID]Row{}
	}
	first := make(map[string]int, len(findings))
	for i := range findings {
		if _, ok := first[findings[i].Process]; !ok {
			first[findings[i].Process] = i
		}
	}
	out := make(map[sample.ID]Row, len(w.last.Processes))
	points := make([]int64, 0, RowPoints*len(w.last.Processes))
	for i := range w.last.Processes {
		p := &w.last.Processes[i]
		from := len(points)
		points = w.appendTrend(points, p)
		r := Row{Trend: points[from:len(points):len(points)]}
		if at, ok := first[name(p)]; ok {
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

// appendTrend appends points of the largest of a process's series.
func (w *Watch) appendTrend(points []int64, p *sample.Process) []int64 {
	k := key{subject{process: p.ID(), device: -1}, anonymous}
	var most int64
	for _, d := range p.Devices {
		if d.Used != nil && *d.Used > most {
			most = *d.Used
			k = key{subject{process: p.ID(), device: d.Device}, used}
		}
	}
	s := w.series[k]
	if s == nil {
		return points
	}
	n := min(RowPoints, len(s.levels))
	for i := range n {
		points = append(points, int64(s.levels[i*(len(s.levels)-1)/max(n-1, 1)]))
	}
	return points
}
