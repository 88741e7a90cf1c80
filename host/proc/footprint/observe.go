// Package footprint classifies the growth of a process's memory: Python objects, blocks
// that malloc handed out and that were not freed, memory that an allocator keeps,
// mappings that were never unmapped, huge pages of which only a part is used, and so
// on.
//
// It compares two observations of a process, made from outside without stopping it: its
// mappings and how much of them is resident, the arenas of its malloc, its open files,
// its cgroup, and samples of the new memory. It does not know what allocated the
// memory; a trace of the process's calls adds that.
package footprint

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"time"

	"strandline/host/code/image"
	"strandline/host/proc/glibcheap"
	"strandline/host/proc/hsperf"
	"strandline/host/proc/procfs"
	"strandline/host/proc/vmmap"
	"strandline/internal/sorts"
)

// An Observation is the memory of a process at one moment.
type Observation struct {
	PID     procfs.Process
	At      time.Duration // since the process was first watched; set by the caller
	age     time.Duration // of the process; 0 if unknown
	status  procfs.Status
	rollup  procfs.Usage
	regions []procfs.Usage    // by address
	Arenas  []glibcheap.Arena // nil if the process has none, or they cannot be read
	Open    procfs.Descriptors
	moved   uint64 // bytes, from and to files on disks, since the start
	read    uint64 // bytes, by calls, from any source, since the start
	cgroup  string // the folder of its control group, to which group applies
	group   *procfs.GroupMemory
	Room    *procfs.Room // how much more memory it can take; nil if unknown
	// Allocator is the library of a malloc other than glibc's, such as
	// "libjemalloc.so.2".
	Allocator string
	// children are the descendants, by process, with what they share.
	children map[procfs.Process]procfs.Usage
	// copied states how much of what it shared with the process a child has copied, in
	// bytes, by child; only for those that have most private memory.
	copied map[procfs.Process]uint64
	// Remapped is how many bytes calls of mremap have added since the process was first
	// traced; nil if it is not traced.
	Remapped *uint64
	// Nodes are how many nodes of PyTorch's autograd graph were in the heap at each look
	// up to this one that counted them.
	Nodes []int64
	// Graphs reports whether a container that grew holds tensors with graphs of autograd; set by
	// the caller.
	Graphs bool
	// Java is what a Java virtual machine manages itself; nil if the process is none, or that is
	// unknown.
	Java *hsperf.Heap
	// Missing states what could not be read, and why.
	Missing []string

	mapped *vmmap.Map // the result of layout
}

// Observe looks at a process. It returns an error if the process has ended; anything
// else that cannot be read is left out and named.
func Observe(p procfs.Process) (*Observation, error) {
	o := &Observation{PID: p}
	var err error
	if o.status, err = p.Status(); err != nil {
		return nil, err
	}
	if o.regions, err = p.Smaps(); err != nil && len(o.regions) == 0 {
		o.missing("the use of its mappings", err)
	}
	if o.rollup, err = p.Rollup(); err != nil {
		o.missing("what it shares", err)
	}
	if open, err := p.Descriptors(); err != nil {
		o.missing("its open files", err)
	} else {
		o.Open = *open
	}
	if o.moved, err = p.FileBytes(); err == nil {
		o.read, err = p.ReadBytes()
	}
	if err != nil {
		o.missing("what it reads and writes", err)
	}
	o.age, _ = p.Age()
	if err := o.charged(); err != nil {
		o.missing("its control group", err)
	}
	o.Allocator = allocator(o.regions)
	if err := o.arenas(); err != nil && !errors.Is(err, glibcheap.ErrNone) {
		o.missing("the arenas of malloc", err)
	}
	mappings := make([]procfs.Mapping, len(o.regions))
	for i, r := range o.regions {
		mappings[i] = r.Mapping
	}
	if o.Java, err = hsperf.Of(p, mappings); err != nil && !errors.Is(err, hsperf.ErrNone) {
		o.missing("Java's heap", err)
	}
	o.children = map[procfs.Process]procfs.Usage{}
	children, err := p.Descendants()
	if err != nil {
		o.missing("its children", err)
	}
	for _, child := range children[:min(len(children), maxChildren)] {
		if u, err := child.Rollup(); err == nil {
			o.children[child] = u
		}
	}
	o.copied = o.copies()
	return o, nil
}

// maxChildren bounds the processes whose shared pages are counted: the kernel has to
// walk their page tables for it.
const maxChildren = 256

func (o *Observation) missing(what string, err error) {
	reason := err.Error()
	if errors.Is(err, fs.ErrPermission) {
		reason = "not permitted"
	}
	o.Missing = append(o.Missing, what+": "+reason)
}

func (o *Observation) charged() error {
	g, err := o.PID.Cgroup()
	o.Room, _ = procfs.RoomIn(g)
	if err != nil {
		return err
	}
	o.cgroup = g.Folder
	o.group, err = g.Memory()
	return err
}

func (o *Observation) arenas() error {
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(o.PID, files)
	if err != nil {
		return err
	}
	defer im.Close()
	o.Arenas, err = glibcheap.Arenas(im)
	return err
}

// System returns how much the arenas took from the kernel, in bytes.
func (o *Observation) System() (bytes uint64) {
	for _, a := range o.Arenas {
		bytes += a.System
	}
	return bytes
}

// Free returns how much is free in arenas, in bytes.
func (o *Observation) Free() (bytes uint64) {
	for _, a := range o.Arenas {
		bytes += a.Free
	}
	return bytes
}

// stacks returns the address space that thread stacks take, in bytes.
func (o *Observation) stacks() (bytes int64) {
	kinds := o.layout()
	for _, r := range o.regions {
		if kinds.Kind(r.Mapping) == vmmap.Thread {
			bytes += int64(r.Size())
		}
	}
	return bytes
}

// layout returns the regions as a map that can be searched.
func (o *Observation) layout() *vmmap.Map {
	if o.mapped == nil {
		mappings := make([]procfs.Mapping, len(o.regions))
		for i, r := range o.regions {
			mappings[i] = r.Mapping
		}
		o.mapped = vmmap.New(mappings)
	}
	return o.mapped
}

// allocator returns the library among the mapped files that replaces malloc.
func allocator(regions []procfs.Usage) string {
	for _, r := range regions {
		if name := vmmap.Allocator(r.Path); r.Inode != 0 && name != "" {
			return name
		}
	}
	return ""
}

// A region is one mapping that grew.
type region struct {
	procfs.Usage
	kind  vmmap.Kind
	grown int64 // resident bytes
	huge  int64 // the part of grown in huge pages
	// pinned is the part of grown that is locked.
	pinned int64
	// same states that a mapping already began there, so that this one grew at its end or
	// inside.
	same bool
	// wider states that it contains a whole mapping that was there before, and more: the
	// kernel merged what is new with it, at either end.
	wider bool
}

// A Mapping is one that grew.
type Mapping struct {
	procfs.Usage
	Kind  vmmap.Kind
	Grown int64 // resident bytes
}

// Mappings returns the mappings that grew, those that grew most first, and at most some.
func (g *Growth) Mappings(maxMappings int) []Mapping {
	sorted := slices.Clone(g.grown)
	sorts.StableBy(sorted, func(a, b region) int { return cmp.Compare(b.grown, a.grown) })
	var out []Mapping
	for _, r := range sorted[:min(maxMappings, len(sorted))] {
		out = append(out, Mapping{r.Usage, r.kind, r.grown})
	}
	return out
}

// grownRegions returns the regions with more resident memory than what was there before.
func grownRegions(before, after *Observation) (out []region) {
	kinds := after.layout()
	i := 0
	for _, r := range after.regions {
		for i < len(before.regions) && before.regions[i].End <= r.Start {
			i++
		}
		x := region{Usage: r, kind: kinds.Kind(r.Mapping), grown: int64(r.RSS), huge: int64(r.AnonymousHuge), pinned: int64(r.Locked)}
		for j := i; j < len(before.regions) && before.regions[j].Start < r.End; j++ {
			b := before.regions[j]
			if b.Size() == 0 {
				continue
			}
			common := float64(min(b.End, r.End)-max(b.Start, r.Start)) / float64(b.Size())
			x.grown -= int64(common * float64(b.RSS))
			x.huge -= int64(common * float64(b.AnonymousHuge))
			x.pinned -= int64(common * float64(b.Locked))
			x.same = x.same || b.Start == r.Start
			x.wider = x.wider || b.Start >= r.Start && b.End <= r.End && b.Size() < r.Size()
		}
		if x.grown > 0 {
			out = append(out, x)
		}
	}
	return out
}
