package trace

import (
	"slices"
	"time"

	"strandline/host/calls/event"
	"strandline/host/code/image"
	"strandline/host/proc/autograd"
	"strandline/host/proc/footprint"
	"strandline/host/proc/hooks"
	"strandline/host/proc/procfs"
	"strandline/judge/processes"
)

const (
	// maxLooks is how many looks at the process from outside are kept; until there are
	// more, they are at most firstLooks apart.
	maxLooks   = 6
	firstLooks = 2 * time.Second
)

// running reports whether the process is still running: after it ends, its number can be
// given to another process.
func (w *Session) running() bool { return !w.trace.Processes[uint32(w.trace.Root)].Ended }

// learn looks for libraries that hook memory functions. It runs first and last, as the
// process can end, and can load more libraries.
func (w *Session) learn() {
	if !w.running() {
		return
	}
	if known := knownLibraries(w.trace.Root); known != nil {
		w.known = known
	}
}

// knownLibraries returns the libraries in a process that hook memory functions; none if
// the process can no longer be read.
func knownLibraries(p procfs.Process) []hooks.Library {
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(p, files)
	if err != nil {
		return nil
	}
	defer im.Close()
	pages, err := p.Pages()
	if err != nil {
		return nil
	}
	defer pages.Close()
	found, err := hooks.Find(im, pages)
	if err != nil {
		return nil
	}
	return found.Libraries
}

// look looks from outside at the process, if it is still running, and at the child that
// has grown most, if that has grown more than the process.
func (w *Session) look() {
	if !w.running() {
		return
	}
	w.lookAt(w.trace.Root)
	if p, ok := w.growing(); ok {
		w.lookAt(p)
	}
}

// minChildGrowth is the least growth, in bytes, at which a child is looked at.
const minChildGrowth = 2 << 20

// growing returns the child that has grown most, if it has grown more than the first
// process.
func (w *Session) growing() (procfs.Process, bool) {
	if w.sums == nil || len(w.sums.Processes) < 2 {
		return 0, false
	}
	first, child := &w.sums.Processes[0], &w.sums.Processes[1]
	return procfs.Process(child.PID), child.Growth >= minChildGrowth && child.Growth > first.Growth
}

func (w *Session) lookAt(p procfs.Process) {
	o, err := footprint.Observe(p)
	if err != nil || !w.running() {
		return
	}
	if w.backend != Polling && w.sums != nil {
		var n uint64
		for i := range w.sums.Uses {
			if u := &w.sums.Uses[i]; u.Op == event.Remap {
				n += uint64(u.Live)
			}
		}
		o.Remapped = &n
	}
	o.At = time.Since(w.began)
	looks := w.looks[p]
	if len(looks) > 0 {
		o.Nodes = slices.Clone(looks[len(looks)-1].Nodes)
	}
	if n, err := autograd.Nodes(p); err == nil {
		o.Nodes = append(o.Nodes, n)
	}
	// A last look that closely follows another replaces it.
	if n := len(looks); n > 2 && 2*(o.At-looks[n-1].At) < looks[n-1].At-looks[n-2].At {
		looks = looks[:n-1]
	}
	w.looks[p] = append(looks, o)
}

// thinLooks drops every second look when there are many, and reports whether it did so
// for the first process.
func (w *Session) thinLooks() bool {
	thinned := false
	for p, looks := range w.looks {
		if len(looks) < maxLooks {
			continue
		}
		odd := true
		w.looks[p] = slices.DeleteFunc(looks, func(*footprint.Observation) bool {
			odd = !odd
			return odd
		})
		thinned = thinned || p == w.trace.Root
	}
	return thinned
}

const (
	// minLooks is the number of looks below which a child is not judged.
	minLooks = 3
	// dominant is the share of all growth at which a child is judged in place of the
	// first process.
	dominant = 0.7
)

// subject returns the process that is judged by looks: the first, or the child that
// accounts for most of the growth of all processes.
func (w *Session) subject() procfs.Process {
	if p, ok := w.growing(); ok && len(w.looks[p]) >= minLooks && float64(w.sums.Processes[1].Growth) >= dominant*float64(w.sums.Growth) {
		return p
	}
	return w.trace.Root
}

// grown returns the growth from the first look to the last; nil if the process
// ended too soon.
func (w *Session) grown() *footprint.Growth {
	p := w.subject()
	if len(w.looks[p]) < 2 {
		return nil
	}
	if h := w.containers[p]; h != nil {
		last := w.looks[p][len(w.looks[p])-1]
		last.Graphs = slices.ContainsFunc(processes.Growing(h), func(c processes.Container) bool { return c.Graph })
	}
	memory, err := p.Memory()
	if err != nil || !w.running() {
		return footprint.Grown(w.looks[p], nil)
	}
	defer memory.Close()
	return footprint.Grown(w.looks[p], memory)
}
