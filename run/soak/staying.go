package soak

import (
	"fmt"
	"slices"

	"strandline/face/api"
	"strandline/finding"
	"strandline/judge/gate"
	"strandline/units"
)

// staying judges the processes that are there after each wave, where all together cannot be
// judged because others come and go; j is the judgment of all. A leak of theirs is one of
// the server. If they do not leak, what comes and goes may still add up.
func (e *experiment) staying(j *judged) []judged {
	if j.Verdict != finding.Unknown || len(j.Series.Bytes) == 0 || j.Growth.Unit == "" {
		return nil
	}
	stay, least, most := e.stay()
	if len(stay) == 0 || most == 0 {
		return nil
	}
	held := func(w *api.SoakWave) (int64, bool) {
		var sum int64
		for i := range w.Processes {
			if slices.Contains(stay, w.Processes[i].PID) {
				sum += w.Processes[i].HostBytes
			}
		}
		return sum, w.HostBytes != nil
	}
	k := e.judgeOne(gate.Host, nil, held)
	e.compiling(&k)
	k.Series.Process, k.Series.PID = units.Plural(int64(len(stay)), "process")+" that stay", 0
	last := e.doc.Waves[len(e.doc.Waves)-1].Processes
	if i := slices.IndexFunc(last, func(p api.SoakProcess) bool { return p.PID == stay[0] }); i >= 0 && len(stay) == 1 {
		k.Series.Process, k.Series.PID = name(&last[i])+" alone", stay[0]
	}
	j.Why += fmt.Sprintf("; processes that come and go hold %s to %s of it. Let the server keep its workers (no request limit), or send enough requests that each wave sees the same workers", units.Bytes(least), units.Bytes(most))
	return []judged{k}
}

// stay are the processes that were there after each wave since the server was started
// last, and what the others held at least and at most.
func (e *experiment) stay() (stay []int, least, most int64) {
	var waves []*api.SoakWave
	for i := e.life; i < len(e.doc.Waves); i++ {
		if w := &e.doc.Waves[i]; w.HostBytes != nil && w.Load != nil {
			waves = append(waves, w)
		}
	}
	for i, w := range waves {
		now := map[int]bool{}
		for k := range w.Processes {
			now[w.Processes[k].PID] = true
			if i == 0 {
				stay = append(stay, w.Processes[k].PID)
			}
		}
		stay = slices.DeleteFunc(stay, func(pid int) bool { return !now[pid] })
	}
	for i, w := range waves {
		var others int64
		for k := range w.Processes {
			if !slices.Contains(stay, w.Processes[k].PID) {
				others += w.Processes[k].HostBytes
			}
		}
		if i == 0 || others < least {
			least = others
		}
		most = max(most, others)
	}
	return stay, least, most
}
