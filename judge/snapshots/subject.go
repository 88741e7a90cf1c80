package snapshots

import (
	"strandline/finding"
	"strandline/judge/verdict"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
)

// A subject is what a detector judges at once: the runs that files given as one process
// come from, or one device of a process, as which its pinned host memory counts. The fields that
// do not apply are nil.
type subject struct {
	book    *digest.Book
	options Options
	process *compare.Process
	runs    []*compare.Process // if the files come from more than one

	// One device of a process, or [snapshot.Host].
	device   int
	newest   *digest.Device    // its part in the newest file
	judged   verdict.Judged    // what the judgment of growth rests on
	leaks    []finding.Finding // what grows there, leaks among it
	anew     []finding.Finding // what is allocated again and again, larger each time
	failure  *digest.OOM       // the last one
	failedIn *digest.File      // the file that holds it
}

// minLooks is from how many looks at a process without a device its growth is judged.
const minLooks = 3

// subjects is everything that is judged. It also sets which processes were judged, and
// what the judgment of growth rests on.
func (a *Answer) subjects(b *digest.Book, processes []*compare.Process, o Options) (out []*subject) {
	for _, p := range processes {
		runs := p.Split()
		a.Processes = append(a.Processes, runs...)
		if len(runs) > 1 {
			out = append(out, &subject{process: p, runs: runs})
		}
	}
	for _, p := range a.Processes {
		devices := p.DeviceIndices()
		if p.OnHost() {
			devices = nil
			a.Judged = append(a.Judged, verdict.Judged{Process: p.Name, Device: snapshot.Host, OnHost: true, Checkpoints: len(p.Files), Enough: len(p.Files) >= minLooks})
		}
		for _, device := range devices {
			s := deviceSubject(b, p, device)
			s.options = o
			a.Judged = append(a.Judged, s.judged)
			out = append(out, s)
		}
		out = append(out, &subject{book: b, process: p, leaks: leaksOf(out, p)})
	}
	return out
}

// deviceSubject is a device of a process, with the judgment of its growth, which other
// detectors refer to.
func deviceSubject(b *digest.Book, p *compare.Process, device int) *subject {
	g := newGrowth(b, p.Whole(), device)
	s := &subject{book: b, process: p, device: device, newest: p.Newest().Device(device), judged: g.judged, leaks: g.findings()}
	s.anew = regrown(s)
	between := g.regrownBetween(s.anew)
	s.anew = append(s.anew, between...)
	s.judged.Open = g.judged.Open || len(g.open) > 0 || len(g.places) > 0 || len(between) > 0
	s.failure, s.failedIn = p.LastOOM(device)
	return s
}
