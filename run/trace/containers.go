package trace

import (
	"slices"
	"time"

	"strandline/finding"
	"strandline/host/code/cpython"
	"strandline/host/code/image"
	"strandline/host/proc/procfs"
	"strandline/judge/processes"
)

// A look at containers follows the one before after some time, and takes a small share of it.
const (
	containersEvery = 2 * time.Second
	containersShare = 20
)

// lookAtContainers looks at those of the first process, and of the child that grows most.
func (w *Session) lookAtContainers() {
	if time.Now().Before(w.nextContainers) || !w.running() {
		return
	}
	began := time.Now()
	w.countContainers(w.trace.Root)
	if p, ok := w.growing(); ok {
		w.countContainers(p)
	}
	w.nextContainers = time.Now().Add(max(containersEvery, containersShare*time.Since(began)))
}

// countContainers notes how many objects the containers of a Python program hold.
func (w *Session) countContainers(p procfs.Process) {
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(p, files)
	if err != nil {
		return
	}
	defer im.Close()
	r, err := cpython.Find(im)
	if err != nil {
		return
	}
	counts := map[cpython.Kept]int64{}
	for _, k := range r.Kept(im) {
		counts[cpython.Kept{Path: k.Path, Kind: k.Kind}] += k.Count
	}
	if w.containers == nil {
		w.containers = map[procfs.Process]map[cpython.Kept][]int64{}
	}
	if w.containers[p] == nil {
		w.containers[p] = map[cpython.Kept][]int64{}
	}
	for k, n := range counts {
		all := append(w.containers[p][k], n)
		if len(all) > 2*maxLooks {
			odd := true
			all = slices.DeleteFunc(all, func(int64) bool { odd = !odd; return odd })
		}
		w.containers[p][k] = all
	}
}

// nameContainers names the containers that keep what grows.
func (w *Session) nameContainers(found []finding.Finding) {
	for p, counts := range w.containers {
		var all []processes.Container
		for k, n := range counts {
			all = append(all, processes.Container{Path: k.Path, Kind: k.Kind, Counts: n})
		}
		growing := processes.Growing(all)
		for i := range found {
			if pid := processes.PIDOf(found[i].Process); pid == int(p) || pid == 0 && p == w.trace.Root {
				processes.NameContainers(&found[i], growing)
			}
		}
	}
}
