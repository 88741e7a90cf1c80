package outside

import (
	"strandline/host/code/cpython"
	"strandline/host/code/image"
	"strandline/host/gpu/cudaalloc"
	"strandline/host/proc/procfs"
)

// An Offer states what a process has that a recording from outside needs.
type Offer struct {
	Library string // of the allocator
	Version string // of PyTorch; empty if not known
	Minor   int    // of Python: 13 is 3.13; 0 where its stacks cannot be read
	State   bool   // what the allocator holds can be read
	Untried string // why to check the result, where this release of PyTorch was not tried
}

// Examine looks at a process without watching it. The error is why it cannot be
// recorded.
func Examine(pid int) (Offer, error) {
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(procfs.Process(pid), files)
	if err != nil {
		return Offer{}, readError(pid, err)
	}
	defer im.Close()
	var o Offer
	if r, err := cpython.Find(im); err == nil {
		o.Minor = int(r.Minor)
	}
	a, err := cudaalloc.Find(im)
	if err != nil {
		return o, err
	}
	o.Library, o.Version, o.Untried = a.Library, a.Version, cudaalloc.Untried(a.Version)
	for range 100 { // it runs meanwhile, and what is read can contradict itself
		if _, err = a.State(); err == nil {
			o.State = true
			break
		}
	}
	return o, nil
}
