package trace

import (
	"strandline/finding"
	"strandline/host/code/cpython"
	"strandline/host/code/image"
	"strandline/host/proc/autograd"
	"strandline/host/proc/procfs"
	"strandline/judge/processes"
)

// lookAtContainers counts the objects in the containers of the first process, if it runs
// Python, and in those of the child that grows most.
func (w *Session) lookAtContainers() {
	if !w.running() {
		return
	}
	w.countContainers(w.trace.Root)
	if p, ok := w.growing(); ok {
		w.countContainers(p)
	}
}

func (w *Session) countContainers(p procfs.Process) {
	h := w.containers[p]
	if h == nil {
		if w.containers == nil {
			w.containers, w.graphs = map[procfs.Process]*cpython.History{}, map[procfs.Process]*autograd.Graphs{}
		}
		h = &cpython.History{}
		w.containers[p], w.graphs[p] = h, &autograd.Graphs{}
	}
	h.WhenDue(func() {
		files := image.NewFiles()
		defer files.Close()
		im, err := image.Open(p, files)
		if err != nil {
			return
		}
		defer im.Close()
		if r, err := cpython.Find(im); err == nil {
			h.Count(r, im, w.graphs[p].In(im).Keeps)
		}
	})
}

// nameContainers names the containers that keep what grows.
func (w *Session) nameContainers(found []finding.Finding) {
	for p, h := range w.containers {
		growing := processes.Growing(h)
		for i := range found {
			if pid := processes.PIDOf(found[i].Process); pid == int(p) || pid == 0 && p == w.trace.Root {
				processes.NameContainers(&found[i], growing)
				if h.Unread != "" && found[i].Kind == finding.PythonObjects {
					found[i].Detail = append(found[i].Detail, "which containers keep them is unknown: they are not read from "+h.Unread+". memray names the lines")
				}
			}
		}
	}
}
