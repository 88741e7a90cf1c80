// Package autograd counts the nodes of PyTorch's autograd graph in the heap of a process.
//
// A node is a C++ object on the heap of malloc whose first word points into the table of
// its class's virtual functions, and PyTorch's libraries export these tables, such as that
// of torch::autograd::generated::AddBackward0. When malloc frees a block it overwrites the
// first words, so what is counted is live.
package autograd

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"

	"strandline/host/code/image"
	"strandline/host/proc/procfs"
	"strandline/host/proc/vmmap"
)

// errNone reports that a process has not loaded PyTorch.
var errNone = errors.New("PyTorch is not loaded")

// The libraries that export the tables of nodes, by the beginning of their names.
var libraries = []string{"libtorch_cpu.", "libtorch_python."}

const (
	maxBytes = 64 << 20 // of heap that are read
	window   = 64 << 10 // bytes that are read at once
	aligned  = 16       // what the address of a block is a multiple of
)

// Nodes returns about how many nodes of the graph are in the heap of a process: of a large
// heap, windows at equal distances are read. The error is [errNone], or why the process
// cannot be read.
func Nodes(p procfs.Process) (int64, error) {
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(p, files)
	if err != nil {
		return 0, err
	}
	defer im.Close()
	tables := tablesIn(im)
	if len(tables) == 0 {
		return 0, errNone
	}
	var heap []procfs.Mapping
	var size uint64
	for _, m := range im.Map.Mappings {
		if kind := im.Map.Kind(m); m.Read && (kind == vmmap.Heap || kind == vmmap.Arena) {
			heap = append(heap, m)
			size += m.Size()
		}
	}
	every := max(1, (size+maxBytes-1)/maxBytes) // windows
	var found, i uint64
	buf := make([]byte, window)
	for _, m := range heap {
		for at := m.Start; at < m.End; at += window {
			if i++; i%every != 0 {
				continue
			}
			b := buf[:min(window, m.End-at)]
			if im.Read(b, at) == nil { // a heap can become smaller meanwhile
				found += tables.count(b)
			}
		}
	}
	return int64(found * every), nil
}

// tables are what the first words of nodes point to.
type tables map[uint64]bool

// tablesIn returns the tables of the libraries in a process.
func tablesIn(im *image.Image) tables {
	out := tables{}
	seen := map[*image.Object]bool{}
	for _, m := range im.Map.Mappings {
		name := filepath.Base(m.Path)
		if !m.Exec || m.Inode == 0 || !strings.HasPrefix(name, libraries[0]) && !strings.HasPrefix(name, libraries[1]) {
			continue
		}
		place, ok := im.Locate(m.Start)
		if !ok || place.Object == nil || seen[place.Object] {
			continue
		}
		seen[place.Object] = true
		symbols, err := place.Object.Dynamics()
		if err != nil {
			continue
		}
		for _, s := range symbols {
			if s.Defined && isNodeTable(s.Name) {
				const head = 16 // the offset to the object's beginning, and its type
				out[s.Addr+head+place.Bias(m.Start)] = true
			}
		}
	}
	return out
}

// isNodeTable reports whether a symbol is the table of a class of nodes.
func isNodeTable(symbol string) bool {
	class, ok := strings.CutPrefix(symbol, "_ZTVN5torch8autograd")
	return ok && (strings.Contains(class, "Backward") || strings.Contains(class, "AccumulateGrad") || strings.Contains(class, "CopySlices") || strings.Contains(class, "6PyNode"))
}

// count returns how many blocks in some memory, which begins at a multiple of a page,
// begin with one of the tables.
func (t tables) count(b []byte) (n uint64) {
	for ; len(b) >= 8; b = b[min(aligned, len(b)):] {
		if t[binary.LittleEndian.Uint64(b)] {
			n++
		}
	}
	return n
}
