package soak

import (
	"fmt"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/judge/gate"
	"strandline/judge/samples"
)

// caching doubts a leak of a server that is known to fill a cache, such as llama.cpp's of prompts:
// its growth so far is within the bound.
func (e *experiment) caching(j *judged) {
	last := len(e.doc.Waves) - 1
	before, known := j.level(&e.doc.Waves[min(e.life, last)])
	now, ok := j.level(&e.doc.Waves[last])
	doubted := j.Verdict == finding.Unknown && j.Course.Growing == undecided && now-before >= gate.Grain // for its content
	if !known || !ok || !grows(&j.Judgment) && !doubted {
		return
	}
	for i := range e.caches {
		p := &e.caches[i]
		if text := samples.CacheDoubt(p, now-before); text != "" && within(e.doc.Waves[last].Processes, p) {
			j.Verdict, j.Course.Growing = finding.Unknown, undecided
			j.Why = fmt.Sprintf("grows by %s. %s", j.Growth, text)
			return
		}
	}
}

// within reports whether a process is one of those of a wave.
func within(all []api.SoakProcess, p *sample.Process) bool {
	for i := range all {
		if all[i].PID == p.PID {
			return true
		}
	}
	return false
}
