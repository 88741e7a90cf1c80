package compare

import (
	"encoding/json"
	"slices"
	"strings"

	"strandline/torch/digest"
)

// Held is what the recorder found, when it took a snapshot, of who keeps the tensors
// of the places that grow.
type Held struct {
	Holders []Holder `json:"holders"`
	Graphs  []Holder `json:"graphs"`  // that tensors keep, the largest first
	Growing []Holder `json:"growing"` // containers that grew, of a process that was recorded from outside
	Host    []Holder `json:"host"`    // of tensors in main memory, those of most bytes first
	// Sampled are the addresses of the blocks that were looked into. Those of no
	// holder have no Python object that refers to them.
	Sampled []uint64 `json:"blocks_sampled"`
	Bound   string   `json:"bound"` // that ended the search early; "" if none did
}

// A Holder is a path of names to some of the sampled blocks, or to tensors that keep
// an autograd graph.
type Holder struct {
	Kind   string   `json:"kind"` // "garbage" for reference cycles that no name leads to
	Path   string   `json:"path"`
	File   string   `json:"file"`
	Line   int64    `json:"line"`  // that puts tensors there; 0 if unknown
	Lines  []int64  `json:"lines"` // if several may
	Blocks []uint64 `json:"blocks"`

	// Of a graph.
	Nodes       int64  `json:"nodes"`        // of which each counts for one path
	ChainLength int64  `json:"chain_length"` // nodes of the type Node on the longest path
	Node        string `json:"node"`
	Grew        *int64 `json:"grew"` // the chain, since the snapshot before; nil if unknown
	Tensors     int64  `json:"tensors"`
	// Estimated reports whether the chain was measured in part: by its newest nodes.
	Estimated bool `json:"estimated"`

	// Graphs reports, of a container that grew, whether it holds tensors with graphs.
	Graphs bool `json:"graphs"`

	// Of tensors in main memory.
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

// ReadHeld reads what a recorder noted with a snapshot, or returns nil if its form is
// not known.
func ReadHeld(data []byte) *Held {
	h := &Held{}
	if len(data) == 0 || json.Unmarshal(data, h) != nil {
		return nil
	}
	return h
}

// LastHeld returns the holders of a kind that were there last, each as it was found last. A
// look that was cut short missed some, and at the exit functions have returned.
func (p *Process) LastHeld(kind func(*Held) []Holder) (out []Holder) {
	for _, f := range slices.Backward(p.Files) {
		h := p.HeldIn(f)
		if h == nil {
			continue
		}
		later := out
		for _, x := range kind(h) {
			if Find(later, &x) == nil {
				out = append(out, x)
			}
		}
		if h.Bound == "" && f != p.About.Exit {
			break
		}
	}
	return out
}

// Find returns what another search found of a holder: at the same path, otherwise the only one with
// the same last name whose tensors the same line puts there. Where many paths lead to an object, as in
// a trainer, each search may come upon another.
func Find(all []Holder, x *Holder) (found *Holder) {
	for i := range all {
		y := &all[i]
		switch {
		case y.Path == x.Path:
			return y
		case x.Line > 0 && y.Line == x.Line && y.File == x.File && lastName(y.Path) == lastName(x.Path):
			if found != nil {
				return nil
			}
			found = y
		}
	}
	return found
}

// lastName is a path from its last attribute on, without the function that it begins in.
func lastName(path string) string {
	path, _, _ = strings.Cut(strings.ReplaceAll(path, "[...]", "[]"), " in ")
	return path[strings.LastIndexByte(path, '.')+1:]
}

// HeldIn returns what is known of who keeps what in a file of the process, or nil.
func (p *Process) HeldIn(f *digest.File) *Held {
	if p.About == nil {
		return nil
	}
	return p.About.Held[f]
}
