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
	"slices"
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

// Graphs recognizes tensors of a process that keep a graph.
type Graphs struct {
	image  *image.Image
	tables tables // nil until they are needed
}

// GraphsOf returns what recognizes the tensors of a process.
func GraphsOf(im *image.Image) *Graphs { return &Graphs{image: im} }

// In has g read the same process through an image that was opened later. What it knows of the
// libraries stays.
func (g *Graphs) In(im *image.Image) *Graphs {
	if g.image = im; len(g.tables) == 0 {
		g.tables = nil // PyTorch may have been loaded meanwhile
	}
	return g
}

// The words that lead from a Python object of a tensor to its node: it refers to the tensor,
// that to what autograd knows of it, and that to the node. Where they are differs by release;
// the last one is certain, as no other object begins with the table of a node.
const (
	objectWords = 5  // of the Python object
	tensorWords = 6  // of the tensor
	metaWords   = 12 // of what autograd knows
)

// Keeps reports whether the Python object of a tensor keeps the graph that it was computed by.
func (g *Graphs) Keeps(object uint64) bool {
	if g.tables == nil {
		g.tables = tablesIn(g.image)
	}
	for _, tensor := range g.pointers(object+16, objectWords) { // behind its count and type
		for _, meta := range g.pointers(tensor+8, tensorWords) {
			for _, node := range g.pointers(meta+8, metaWords) {
				if table := g.words(node, 1); len(table) > 0 && g.tables[table[0]] == computed {
					return true
				}
			}
		}
	}
	return false
}

// pointers are the words at an address that may be addresses of objects.
func (g *Graphs) pointers(at uint64, n int) []uint64 {
	return slices.DeleteFunc(g.words(at, n), func(w uint64) bool { return w%8 != 0 || w < 1<<16 || w>>47 != 0 })
}

func (g *Graphs) words(at uint64, n int) []uint64 {
	b := make([]byte, 8*n)
	if g.image.Read(b, at) != nil {
		return nil
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out
}

// tables are what the first words of nodes point to, and what kind of node it is.
type tables map[uint64]node

type node uint8

const (
	none     node = iota
	leaf          // of a tensor that was not computed
	computed      // of one that was
)

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
			if kind := nodeOf(s.Name); s.Defined && kind != none {
				const head = 16 // the offset to the object's beginning, and its type
				out[s.Addr+head+place.Bias(m.Start)] = kind
			}
		}
	}
	return out
}

// nodeOf is the kind of node of whose class a symbol is the table.
func nodeOf(symbol string) node {
	class, ok := strings.CutPrefix(symbol, "_ZTVN5torch8autograd")
	switch {
	case !ok:
	case strings.Contains(class, "AccumulateGrad"):
		return leaf
	case strings.Contains(class, "Backward") || strings.Contains(class, "CopySlices") || strings.Contains(class, "6PyNode"):
		return computed
	}
	return none
}

// count returns how many blocks in some memory, which begins at a multiple of a page,
// begin with one of the tables.
func (t tables) count(b []byte) (n uint64) {
	for ; len(b) >= 8; b = b[min(aligned, len(b)):] {
		if t[binary.LittleEndian.Uint64(b)] != none {
			n++
		}
	}
	return n
}
