// Package footprint classifies the growth of a process's memory: objects of Python,
// blocks that malloc gave and nobody freed, memory that an allocator keeps, mappings
// that were never unmapped, huge pages of which only a part is used, and so on.
//
// It compares two observations of a process, made from outside without stopping it:
// its mappings with what is resident of them, the arenas of its malloc, its open
// files, its cgroup, and samples of the memory that is new. It does not know what made
// the memory; a trace of its calls adds that.
package footprint

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"strandline/host/glibcheap"
	"strandline/host/image"
	"strandline/host/procfs"
	"strandline/host/vmmap"
)

// An Observation is the memory of a process at one moment.
type Observation struct {
	PID     procfs.Process
	At      time.Duration // since the process is watched; its caller knows
	Age     time.Duration // of the process; 0 if unknown
	Status  procfs.Status
	Rollup  procfs.Usage
	Regions []procfs.Usage    // by address
	Arenas  []glibcheap.Arena // nil if the process has none, or they cannot be read
	Open    procfs.Descriptors
	Moved   uint64 // bytes, from and to files of disks, since the start
	Read    uint64 // bytes, by calls, from whatever, since the start
	Cgroup  string // the folder of its control group, which Charged is of
	Charged *procfs.GroupMemory
	// Allocator is the library of another malloc than glibc's, such as
	// "libjemalloc.so.2".
	Allocator string
	// Children are the descendants, by process, with what they share.
	Children map[procfs.Process]procfs.Usage
	// Remapped is how many bytes calls of mremap have added since the process is
	// traced; nil if it is not.
	Remapped *uint64
	// Missing says what could not be read, and why.
	Missing []string

	mapped *vmmap.Map // what layout gave
}

// Observe looks at a process. It is an error if that has ended; what else cannot
// be read is left out and named.
func Observe(p procfs.Process) (*Observation, error) {
	o := &Observation{PID: p}
	var err error
	if o.Status, err = p.Status(); err != nil {
		return nil, err
	}
	if o.Regions, err = p.Smaps(); err != nil && len(o.Regions) == 0 {
		o.lacks("the use of its mappings", err)
	}
	if o.Rollup, err = p.Rollup(); err != nil {
		o.lacks("what it shares", err)
	}
	if open, err := p.Descriptors(); err != nil {
		o.lacks("its open files", err)
	} else {
		o.Open = *open
	}
	if o.Moved, err = p.FileBytes(); err == nil {
		o.Read, err = p.ReadBytes()
	}
	if err != nil {
		o.lacks("what it reads and writes", err)
	}
	o.Age, _ = p.Age()
	if err := o.charged(); err != nil {
		o.lacks("its control group", err)
	}
	o.Allocator = allocator(o.Regions)
	if err := o.arenas(); err != nil && !errors.Is(err, glibcheap.ErrNone) {
		o.lacks("the arenas of malloc", err)
	}
	o.Children = map[procfs.Process]procfs.Usage{}
	children := p.Descendants()
	for _, child := range children[:min(len(children), mostChildren)] {
		if u, err := child.Rollup(); err == nil {
			o.Children[child] = u
		}
	}
	return o, nil
}

// mostChildren bounds the processes whose shared pages are counted: the kernel
// walks their page tables for it.
const mostChildren = 256

func (o *Observation) lacks(what string, err error) {
	reason := err.Error()
	if errors.Is(err, fs.ErrPermission) {
		reason = "not permitted"
	}
	o.Missing = append(o.Missing, what+": "+reason)
}

func (o *Observation) charged() error {
	g, err := o.PID.Cgroup()
	if err != nil {
		return err
	}
	o.Cgroup = g.Folder
	o.Charged, err = g.Memory()
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

// System is what arenas took from the kernel, in bytes.
func (o *Observation) System() (bytes uint64) {
	for _, a := range o.Arenas {
		bytes += a.System
	}
	return bytes
}

// Free is what is free in arenas, in bytes.
func (o *Observation) Free() (bytes uint64) {
	for _, a := range o.Arenas {
		bytes += a.Free
	}
	return bytes
}

// stacks is the address space that stacks of threads take, in bytes.
func (o *Observation) stacks() (bytes int64) {
	kinds := o.layout()
	for _, r := range o.Regions {
		if kinds.Kind(r.Mapping) == vmmap.Thread {
			bytes += int64(r.Size())
		}
	}
	return bytes
}

// layout is the regions, to be searched.
func (o *Observation) layout() *vmmap.Map {
	if o.mapped == nil {
		mappings := make([]procfs.Mapping, len(o.Regions))
		for i, r := range o.Regions {
			mappings[i] = r.Mapping
		}
		o.mapped = vmmap.New(mappings)
	}
	return o.mapped
}

// allocators are libraries that take the place of glibc's malloc.
var allocators = []string{"libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc", "libhoard", "libsnmalloc", "librpmalloc"}

func allocator(regions []procfs.Usage) string {
	for _, r := range regions {
		name := path.Base(r.Path)
		for _, a := range allocators {
			if r.Inode != 0 && strings.HasPrefix(name, a) {
				return name
			}
		}
	}
	return ""
}

// A Region is one mapping that grew.
type Region struct {
	procfs.Usage
	Kind  vmmap.Kind
	Grown int64 // resident bytes
	Huge  int64 // of them, in huge pages
	// Pinned are those of them that are locked.
	Pinned int64
	// Same says that a mapping began there before, and so that this one grew at its
	// end or inside.
	Same bool
}

// grown are the regions with more resident memory than what was there before.
func grown(before, after *Observation) (out []Region) {
	kinds := after.layout()
	i := 0
	for _, r := range after.Regions {
		for i < len(before.Regions) && before.Regions[i].End <= r.Start {
			i++
		}
		x := Region{Usage: r, Kind: kinds.Kind(r.Mapping), Grown: int64(r.RSS), Huge: int64(r.AnonymousHuge), Pinned: int64(r.Locked)}
		for j := i; j < len(before.Regions) && before.Regions[j].Start < r.End; j++ {
			b := before.Regions[j]
			if b.Size() == 0 {
				continue
			}
			common := float64(min(b.End, r.End)-max(b.Start, r.Start)) / float64(b.Size())
			x.Grown -= int64(common * float64(b.RSS))
			x.Huge -= int64(common * float64(b.AnonymousHuge))
			x.Pinned -= int64(common * float64(b.Locked))
			x.Same = x.Same || b.Start == r.Start
		}
		if x.Grown > 0 {
			out = append(out, x)
		}
	}
	return out
}
