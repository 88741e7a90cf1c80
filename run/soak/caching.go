package soak

import (
	"fmt"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/judge/gate"
	"strandline/judge/samples"
)

// caching doubts a leak of a server of which most is of a process that is known to fill a cache, such
// as llama.cpp's of prompts: its growth so far is within the bound.
func (e *experiment) caching(j *judged) {
	last := len(e.doc.Waves) - 1
	first, now := &e.doc.Waves[min(e.life, last)], &e.doc.Waves[last]
	before, known := j.level(first)
	after, ok := j.level(now)
	doubted := j.Verdict == finding.Unknown && j.Course.Growing == undecided && after-before >= gate.Grain // for its content
	if !known || !ok || !grows(&j.Judgment) && !doubted {
		return
	}
	for i := range e.caches {
		p := &e.caches[i]
		grew := hostBytes(now, p) - hostBytes(first, p)
		if text := samples.CacheDoubt(samples.Caches(p), grew); text != "" && 2*grew >= after-before {
			j.Verdict, j.Course.Growing = finding.Unknown, undecided
			j.Why = fmt.Sprintf("grows by %s. %s", j.Growth, text)
			return
		}
	}
}

// hostBytes is what a process had in a wave, 0 if it was not there.
func hostBytes(w *api.SoakWave, of *sample.Process) int64 {
	for i := range w.Processes {
		if p := &w.Processes[i]; p.PID == of.PID {
			return p.HostBytes
		}
	}
	return 0
}
