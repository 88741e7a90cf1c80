package check

import (
	"cmp"
	"math"
	"slices"
	"time"

	"strandline/finding"
	"strandline/host/calls/malloc"
	"strandline/internal/sorts"
	"strandline/judge/processes"
)

// sampleMallocs samples calls of malloc from the moment on at which a command looks as if it
// leaked, except while a process traces its objects, since the memory of a trace would be taken
// for that of the lines which are traced.
func (w *watch) sampleMallocs() {
	if w.mallocs == nil || w.follower == nil {
		return
	}
	w.mallocs.Sample(!w.session.TracesObjects())
}

// maxError is how far the estimate of what a line keeps may be off, as a share of it: the
// standard deviation that comes of the sampling.
const maxError = 0.3

// byMalloc names the line of a leak whose allocations malloc made, and reports whether there is one.
func (j *judging) byMalloc(f *finding.Finding) bool {
	pid := cmp.Or(j.run.grower(f), j.run.alike(f, func(pid int) bool { return len(j.run.sampled(pid).places) > 0 }))
	if pid == 0 {
		return false
	}
	g := j.run.sampled(pid)
	if j.run.containers != nil && len(j.run.containers(pid)) > 0 {
		// A thread of a library that works for Python says less than who keeps what it makes.
		g.places = slices.DeleteFunc(g.places, func(p finding.Place) bool { return p.Line == 0 })
	}
	return byKept(f, g, "sampled", j.seriesOf(f))
}

// mallocKeeps reports whether malloc's own account shows that most of a process's growth is in use.
func (j *judging) mallocKeeps(f *finding.Finding) bool {
	g := j.run.sampled(j.run.grower(f))
	return g.most != nil && g.bytes > 0 && float64(*g.most) >= minLeakShare*float64(g.bytes)
}

// sampled is what a process kept according to the samples of malloc's calls.
func (r *Run) sampled(pid int) (g grown) {
	levels := r.levelsOf(pid)
	if r.kept == nil || len(levels) == 0 {
		return g
	}
	kept, spans := r.kept(pid, levels[len(levels)-1-len(levels)/16].at) // at the very end processes free what they hold
	var inUse int64
	known := len(spans) > 0
	for _, s := range spans {
		if known = known && s.InUse != nil; known {
			inUse += *s.InUse
		}
		g.seconds += s.To.Sub(s.From).Seconds()
		g.bytes += heldAt(levels, s.To) - heldAt(levels, s.From)
	}
	if known { // a cache keeps what is new, and frees what was there before
		g.most = &inUse
	}
	return g.of(kept)
}

// of is what grew with the places of what malloc made, without those of which too little was sampled.
func (g grown) of(kept []malloc.Kept) grown {
	type sum struct{ bytes, count, variance, most float64 }
	sums := map[finding.Site]*sum{}
	g.stacks = map[finding.Site][]finding.Frame{}
	for _, k := range kept {
		site := processes.HostSite(k.Frames)
		if site == nil {
			continue
		}
		s := sums[*site]
		if s == nil {
			s = &sum{}
			sums[*site] = s
		}
		if k.Bytes > s.most {
			s.most, g.stacks[*site] = k.Bytes, processes.HostFrames(k.Frames)
		}
		s.bytes, s.count, s.variance = s.bytes+k.Bytes, s.count+k.Count, s.variance+k.Variance
	}
	for site, s := range sums {
		if s.bytes > 0 && math.Sqrt(s.variance) <= maxError*s.bytes {
			g.places = append(g.places, finding.Place{Site: site, Bytes: int64(s.bytes), Count: int64(math.Ceil(s.count))})
		}
	}
	sorts.StableBy(g.places, func(a, b finding.Place) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return g
}

// A level is what a process held at a moment, in bytes.
type level struct {
	at    time.Time
	bytes int64
}

// levelsOf returns the levels of a process, oldest first.
func (m *Measured) levelsOf(pid int) (out []level) {
	for _, s := range m.Samples.Samples {
		for i, b := range s.Bytes {
			if m.Samples.Processes[i].PID == pid {
				out = append(out, level{s.At, b})
			}
		}
	}
	return out
}

// heldAt is the level at a time, by the nearest.
func heldAt(levels []level, t time.Time) int64 {
	i, _ := slices.BinarySearchFunc(levels, t, func(l level, t time.Time) int { return l.at.Compare(t) })
	if i == len(levels) || i > 0 && t.Sub(levels[i-1].at) < levels[i].at.Sub(t) {
		i--
	}
	return levels[i].bytes
}
