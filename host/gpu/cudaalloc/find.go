// Package cudaalloc finds PyTorch's caching allocator for CUDA in a running process,
// and reads what it holds: nothing was prepared in the process, and nothing runs in it.
//
// The starting point is a variable that PyTorch's libraries share and export:
// c10::cuda::CUDACachingAllocator::allocator points to an object, and that to the table
// of its virtual functions. Their code leads to the functions that every request and
// every release passes through. This needs no private symbol and no table of offsets
// for each version of PyTorch.
package cudaalloc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"strandline/host/calls/bpf"
	"strandline/host/code/image"
	"strandline/host/proc/procfs"
)

const (
	// variable is c10::cuda::CUDACachingAllocator::allocator.
	variable = "_ZN3c104cuda20CUDACachingAllocator9allocatorE"
	// native is the class of the caching allocator itself, as named in its type
	// information.
	native = "N3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE"
)

// Why an allocator was not found. Each is a sentence for the user.
var (
	errNoTorch = errors.New("no library of the process exports PyTorch's CUDA allocator (c10::cuda::CUDACachingAllocator::allocator): PyTorch is not loaded yet, or is linked into the program without that symbol")
	errCPUOnly = errors.New("the process runs a PyTorch without CUDA: there is no device memory to record")
	errCode    = errors.New("the code of the allocator is not of a known form")
)

// An otherClass is an allocator that is not the caching one.
type otherClass struct{ Name string }

func (e otherClass) Error() string {
	return fmt.Sprintf("the process allocates by %s and not by PyTorch's caching allocator, which alone can be recorded", e.Name)
}

// An Allocator is the allocator of a process.
type Allocator struct {
	Library string             // the path of the file that contains its code
	Mapping procfs.Mapping     // of that file
	Places  []bpf.RequestPlace // in the file
	Slow    []bpf.RequestPlace // those of them that the kernel has to single-step, which takes about 10 µs
	Version string             // of PyTorch, according to its package; empty if not found

	im      *image.Image
	code    *image.Object
	bias    uint64 // of the code
	address uint64 // of the allocator
	devices uint64 // relative to address: the vector of per-device state; 0 if not known
}

// maxSlots bounds how many virtual functions are examined.
const maxSlots = 96

// Find finds the allocator of a process.
func Find(im *image.Image) (*Allocator, error) {
	pointer, err := findVariable(im)
	if err != nil {
		return nil, err
	}
	a := &Allocator{im: im}
	w := words{im: im}
	a.address = w.at(pointer)
	if w.err == nil && a.address == 0 {
		return nil, errNoTorch
	}
	table := w.at(a.address)
	if err := a.checkClass(&w, table); err != nil {
		return nil, err
	}
	var slots []uint64
	for i := range uint64(maxSlots) {
		f := w.at(table + 8*i)
		if m, ok := im.Map.Find(f); w.err != nil || !ok || !m.Exec {
			break
		}
		slots = append(slots, f)
	}
	if err := a.findCode(slots); err != nil {
		return nil, err
	}
	a.Version = version(im)
	return a, nil
}

// usual is the beginning of the name of the library that exports the variable, unless
// PyTorch is linked in another way.
const usual = "libc10_cuda"

// findVariable returns the address of the variable in the process.
func findVariable(im *image.Image) (uint64, error) {
	cpu := false
	var first, others []procfs.Mapping
	for _, m := range im.Map.Mappings {
		name := filepath.Base(m.Path)
		switch {
		case !m.Exec || m.Inode == 0:
		case strings.HasPrefix(name, usual):
			first = append(first, m)
		default:
			others = append(others, m)
			cpu = cpu || strings.HasPrefix(name, "libtorch_cpu")
		}
	}
	seen := map[*image.Object]bool{}
	for _, m := range append(first, others...) {
		place, _ := im.Locate(m.Start)
		if place.Object == nil || seen[place.Object] {
			continue
		}
		seen[place.Object] = true
		if linked, ok := place.Object.Data(variable); ok && linked != 0 {
			return linked + place.Bias(m.Start), nil
		}
	}
	if cpu {
		return 0, errCPUOnly
	}
	return 0, errNoTorch
}

// checkClass makes sure that the allocator is the caching one, by the name in its type
// information, which comes before the virtual functions.
func (a *Allocator) checkClass(w *words, table uint64) error {
	name := w.text(w.at(w.at(table-8) + 8))
	if w.err != nil {
		return fmt.Errorf("read PyTorch's CUDA allocator: %w", w.err)
	}
	if name = strings.TrimPrefix(name, "*"); name != native {
		return otherClass{readable(name)}
	}
	return nil
}

// readable turns the name of a class in type information into a readable one.
func readable(mangled string) string {
	switch {
	case strings.Contains(mangled, "CudaMallocAsync"):
		return "cudaMallocAsync (backend:cudaMallocAsync)"
	case strings.Contains(mangled, "CUDAPluggableAllocator"):
		return "a pluggable allocator (torch.cuda.memory.CUDAPluggableAllocator)"
	}
	return mangled
}

// findCode finds the functions by following the virtual ones.
func (a *Allocator) findCode(slots []uint64) error {
	const allocate = 2 // after two destructors
	if len(slots) <= allocate {
		return errCode
	}
	place, ok := a.im.Locate(slots[allocate])
	if !ok || place.Object == nil {
		return errCode
	}
	a.code, a.Mapping, a.Library, a.bias = place.Object, place.Mapping, place.Mapping.Path, place.Bias(slots[allocate])
	linked := make([]uint64, len(slots))
	for i, f := range slots {
		if p, ok := a.im.Locate(f); ok && p.Object == a.code {
			linked[i] = p.Linked
		}
	}
	found, err := findFunctions(a.code, linked, allocate)
	if err != nil {
		return err
	}
	a.devices = found.devices
	for _, p := range found.places {
		offset, ok := a.code.Offset(p.at)
		if !ok {
			return errCode
		}
		at := bpf.RequestPlace{At: p.kind, File: offset}
		a.Places = append(a.Places, at)
		if !p.cheap {
			a.Slow = append(a.Slow, at)
		}
	}
	return nil
}

// words reads words of a process; err is the error of the first that cannot be read.
type words struct {
	im  *image.Image
	err error
}

func (w *words) at(addr uint64) uint64 {
	var b [8]byte
	if w.err == nil {
		w.err = w.im.Read(b[:], addr)
	}
	if w.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// text reads a string that ends with a zero byte; at most 256 bytes.
func (w *words) text(addr uint64) string {
	b := make([]byte, 256)
	for n := len(b); n > 0 && w.err == nil; n /= 2 { // the string can be at the end of what is mapped
		if w.im.Read(b[:n], addr) == nil {
			text, _, _ := bytes.Cut(b[:n], []byte{0})
			return string(text)
		}
	}
	return ""
}
