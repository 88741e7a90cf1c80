package trace

import (
	"slices"
	"time"

	"strandline/host/event"
	"strandline/host/footprint"
	"strandline/host/hooks"
	"strandline/host/image"
	"strandline/host/procfs"
)

const (
	// maxLooks at the process from outside are kept; they are firstLooks apart at
	// most, until there are more.
	maxLooks   = 6
	firstLooks = 10 * time.Second
)

// running reports whether the process still runs: its number can be given to
// another.
func (w *Session) running() bool { return !w.trace.Processes[uint32(w.trace.Root)].Ended }

// learn looks for libraries that hook memory functions. It is done first and
// last: the process can end, and can load more.
func (w *Session) learn() {
	if !w.running() {
		return
	}
	if known := knownLibraries(w.trace.Root); known != nil {
		w.known = known
	}
}

// knownLibraries are those in a process that hook memory functions; none of one
// that cannot be read any more.
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

// look looks at the process from outside, if it still runs.
func (w *Session) look() {
	o, err := footprint.Observe(w.trace.Root)
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
	// A last look that follows close upon another takes its place.
	if n := len(w.looks); n > 2 && 2*(o.At-w.looks[n-1].At) < w.looks[n-1].At-w.looks[n-2].At {
		w.looks = w.looks[:n-1]
	}
	w.looks = append(w.looks, o)
}

// thinLooks leaves out every second look when there are many, and reports whether
// it did.
func (w *Session) thinLooks() bool {
	if len(w.looks) < maxLooks {
		return false
	}
	odd := true
	w.looks = slices.DeleteFunc(w.looks, func(*footprint.Observation) bool {
		odd = !odd
		return odd
	})
	return true
}

// grown is what the looks show from the first to the last; nil if the process
// ended too soon.
func (w *Session) grown() *footprint.Growth {
	if len(w.looks) < 2 {
		return nil
	}
	memory, err := w.trace.Root.Memory()
	if err != nil || !w.running() {
		return footprint.Over(w.looks, nil)
	}
	defer memory.Close()
	return footprint.Over(w.looks, memory)
}
