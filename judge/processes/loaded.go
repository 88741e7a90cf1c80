package processes

import (
	"slices"

	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/internal/lazyregexp"
)

// minLoaded is the number of mappings, about five per library, from which loading
// libraries again and again is more than a program's start.
const minLoaded = 40

// loads matches the functions of the C library that load libraries.
var loads = lazyregexp.New(`^(_dl_map_object|_?dl_open_worker|_dl_open|_?dlopen|__libc_dlopen)`)

// loaded reports whether calls mapped libraries that a program loads while it runs.
func loaded(kind finding.Kind, u *ledger.Use) bool {
	return kind == finding.FileMapping && slices.ContainsFunc(u.Frames, func(f symbolize.Frame) bool {
		return loads.MatchString(f.Function) && InLibrary(f)
	})
}

var loadedRemedies = []finding.Remedy{
	finding.CodeChange("load each library once: a copy under another name is another library to the loader"),
	finding.CodeChange("dlclose libraries that are done with (in Python _ctypes.dlclose), or load them in a process that ends"),
}

// ofPrimitives matches the functions of oneDNN, and those of PyTorch that call it.
var ofPrimitives = lazyregexp.New(`dnnl|mkldnn|ideep`)

// primitiveCache advises on oneDNN's cache of primitives, if its convolutions and matrix
// products hold a part of some memory: it keeps one primitive for each shape.
func primitiveCache(uses []*ledger.Use) []finding.Remedy {
	var all, some int64
	for _, u := range uses {
		all += residentOf(u)
		if slices.ContainsFunc(u.Frames, func(f symbolize.Frame) bool { return ofPrimitives.MatchString(f.Function) }) {
			some += residentOf(u)
		}
	}
	if some < minClassBytes || 10*some < all {
		return nil
	}
	return primitiveRemedies
}

var primitiveRemedies = []finding.Remedy{
	finding.CodeChange("pad inputs to a few shapes: oneDNN keeps a compiled primitive, with buffers, for each shape"),
	finding.SettingChange("ONEDNN_PRIMITIVE_CACHE_CAPACITY=64", "keep fewer of them (1024 by default); LRU_CACHE_CAPACITY=64 before PyTorch 2.0"),
}
