package compare

import (
	"iter"
	"slices"
	"sort"

	"strandline/stack"
	"strandline/torch/digest"
)

// gaps are the events between each file and the one before, on a device, without those
// that mark a snapshot; -1 if that is unknown, as for the first.
func (p *Process) gaps(device int) []int {
	out := make([]int, len(p.Files))
	out[0] = -1
	for j := 1; j < len(p.Files); j++ {
		old, cur := p.Files[j-1].Device(device), p.Files[j].Device(device)
		out[j] = cur.Events - cur.Marks
		if cur.Start <= old.Start { // one history that grows
			out[j] -= old.Events - old.Marks
		}
		if cur.Events == 0 || out[j] < 0 || cur.RingFull {
			out[j] = -1
		}
	}
	return out
}

// Checkpoints are the files at which growth can be judged: those between which the
// program worked. A file is left out if very little happened from it to the
// next.
func (p *Process) Checkpoints(device int) (out []int) {
	gaps := p.gaps(device)
	typical := p.Interval(device)
	for j := range p.Files {
		if j+1 < len(gaps) && gaps[j+1] >= 0 && (gaps[j+1] == 0 || 10*gaps[j+1] < typical) {
			continue
		}
		out = append(out, j)
	}
	return out
}

// Work is how much the program did on a device up to each of some files since the one
// before: in steps if those of all files were counted, otherwise in events; nil if neither is
// known.
func (p *Process) Work(device int, files []int) []float64 {
	if p.About != nil {
		done := make([]int, len(p.Files))
		for _, j := range files {
			done[j] = p.About.Steps[p.Files[j]]
		}
		if work := differences(done, files); work != nil {
			return work
		}
	}
	gaps, done := p.gaps(device), make([]int, len(p.Files))
	for j := files[0] + 1; j < len(done); j++ {
		if gaps[j] < 0 {
			return nil
		}
		done[j] = done[j-1] + gaps[j]
	}
	return differences(done, files)
}

// differences are those between some files; nil unless the figure grows.
func differences(done, files []int) []float64 {
	out := make([]float64, len(files))
	for i := 1; i < len(files); i++ {
		if out[i] = float64(done[files[i]] - done[files[i-1]]); out[i] <= 0 {
			return nil
		}
	}
	return out
}

// Covered reports whether the newest history on a device reaches back to a file, so that
// the lifetimes of all that was freed since are known.
func (p *Process) Covered(device, file int) bool {
	first, newest := p.Files[file].Device(device), p.Newest().Device(device)
	return newest.Complete || newest.Events > 0 && newest.HasTime && first.End > 0 && newest.Start <= first.End
}

// Since is the first event of the newest history on a device that follows a file; -1 if unknown.
func (p *Process) Since(device, file int) int {
	old, newest := p.Files[file].Device(device), p.Newest().Device(device)
	switch {
	case newest.HasTime && newest.Start > old.End:
		return 0
	case newest.Start == old.Start && !newest.RingFull:
		return old.Events
	}
	return -1
}

// apart yields, newest first, the histories on a device that do not overlap a newer one
// that was yielded.
func (p *Process) apart(device int) iter.Seq[*digest.Device] {
	return func(yield func(*digest.Device) bool) {
		covered := int64(-1) // from this time on the histories yielded so far suffice
		for _, file := range slices.Backward(p.Files) {
			d := file.Device(device)
			if d.Events == 0 || covered >= 0 && d.End > covered {
				continue
			}
			covered = d.Start
			if !yield(d) {
				return
			}
		}
	}
}

// StepsSeen returns how many steps of the program end in the files' histories on a
// device, one more where the first file has none of them, as it was taken between
// steps; known is false where no history shows steps by annotations, updates or
// backward passes.
func (p *Process) StepsSeen(device int) (steps int, known bool) {
	for d := range p.apart(device) {
		if n := len(d.Steps.Ends); n > 0 && d.Steps.Known() {
			steps, known = steps+n, true
		}
	}
	if p.Files[0].Device(device).Events == 0 {
		steps++
	}
	return steps, known
}

// CoarserThanSteps reports whether the steps of the newest history on a device, which reaches back
// to the first of some files, show more than those files do: few of them end different steps. Files
// that a person wrote show moments that were chosen.
func (p *Process) CoarserThanSteps(device int, files []int) bool {
	newest := p.Newest().Device(device)
	if p.About == nil || !newest.Steps.Known() || !newest.Steps.Enough() || !newest.HasTime || !p.Covered(device, files[0]) {
		return false
	}
	const minIntervals, finer = 4, 4 // intervals that suffice, and steps for each that are clearly more
	intervals, before := 0, 0
	for _, j := range files {
		d := p.Files[j].Device(device)
		if d.Start != newest.Start {
			return false
		}
		ended := sort.SearchInts(newest.Steps.Ends, d.Events-d.Marks)
		if ended > before {
			intervals++
		}
		before = ended
	}
	return intervals < minIntervals && len(newest.Steps.Ends) >= finer*intervals
}

// Interval returns the typical number of events between two files on a device between
// which something happened, 0 if it is unknown.
func (p *Process) Interval(device int) int {
	var gaps []int
	for _, gap := range p.gaps(device) {
		if gap > 0 {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	sort.Ints(gaps)
	return gaps[len(gaps)/2]
}

// Deaths are the lifetimes of what was freed inside the histories, by stack.
// Where the histories overlap, the longest is taken.
func (p *Process) Deaths(device int) map[stack.ID]*digest.Lifetimes {
	out := map[stack.ID]*digest.Lifetimes{}
	for d := range p.apart(device) {
		for id, l := range d.Deaths {
			if out[id] == nil {
				out[id] = new(digest.Lifetimes)
			}
			for i, n := range l {
				out[id][i] += n
			}
		}
	}
	return out
}

// LastOOM is the newest failure that any file of a process records on a
// device, from the file that was dumped closest to it, and that file's part.
func (p *Process) LastOOM(device int) (*digest.OOM, *digest.File) {
	var last *digest.OOM
	var in *digest.File
	for j := len(p.Files) - 1; j >= 0; j-- {
		o := p.Files[j].Device(device).LastOOM
		switch {
		case o == nil:
		case last == nil || o.Exact && !last.Exact && o.Time != 0 && o.Time == last.Time:
			after := 0
			if last != nil {
				after = last.After
			}
			known := *o
			known.After = max(after, o.After)
			last, in = &known, p.Files[j]
		}
	}
	return last, in
}
