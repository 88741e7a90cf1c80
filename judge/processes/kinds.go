package processes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/internal/lazyregexp"
	"strandline/units"
)

// A kind is a kind of growth: how it is recognized, and what is reported of it.
type kind struct {
	of finding.Kind
	// call reports whether a call is of the kind by what it does. Otherwise the first
	// frame that any kind knows decides, of which above frames are nearer to the call.
	// A kind that has neither is what looks from outside show.
	call  func(u *ledger.Use) bool
	frame func(u *ledger.Use, f symbolize.Frame, above int) bool
	// byPlace is true if each place is judged separately.
	byPlace bool
	// rather are the kinds that looks can show the memory to be instead.
	rather []finding.Kind
	// title is what follows the bytes in the title.
	title func(g *hostGrowth) string
	// detail and remedies are those of this kind alone; remedies is nil if they are those
	// of [finding.HostRemedies]. With settings, they are left out if the library that
	// leaks has some of its own.
	detail   func(u *ledger.Use) []string
	remedies func(u *ledger.Use) []finding.Remedy
	settings bool
	// cause is true if the kind itself says why memory stays, so that no line is needed.
	cause bool
}

// kinds are all of them. A call, and then a frame, is of the first that fits.
var kinds = []kind{
	{
		of: finding.Remap, byPlace: true,
		call: func(u *ledger.Use) bool { return u.Op == event.Remap },
		title: func(g *hostGrowth) string {
			if g.count > 1 {
				return fmt.Sprintf("%s that mremap enlarged, to at most %s each", units.Plural(g.count, "mapping"), units.Bytes(g.uses[0].Size))
			}
			return fmt.Sprintf("one mapping that mremap enlarged repeatedly, to %s", units.Bytes(g.uses[0].Size))
		},
		remedies: func(u *ledger.Use) []finding.Remedy {
			if u.Count > 1 {
				return []finding.Remedy{finding.CodeChange("free the buffers or lists that grow here and are kept")}
			}
			return []finding.Remedy{finding.CodeChange("limit the buffer or list that grows here")}
		},
	},
	{
		of: finding.Regrown, byPlace: true, // its title is regrownTitle
		call:     func(u *ledger.Use) bool { return u.Op == event.Map && u.Kind == ledger.Anonymous && regrows(u) > 0 },
		detail:   regrownDetail,
		remedies: advice(regrownRemedies...),
	},
	{
		// The driver maps what it pins, as shared memory or as a file of its device.
		of: finding.Pinned, cause: true,
		call: func(u *ledger.Use) bool {
			return (u.Kind == ledger.Shared || u.Kind == ledger.FileBacked) && slices.ContainsFunc(u.Frames, pinning)
		},
		frame: func(_ *ledger.Use, f symbolize.Frame, _ int) bool { return pinning(f) },
		title: func(g *hostGrowth) string {
			if slices.ContainsFunc(g.uses[0].Frames, pinning) {
				return "host memory that CUDA pinned and that stays"
			}
			return "memory that is locked or pinned"
		},
	},
	{
		of: finding.FileMapping, rather: []finding.Kind{finding.SharedMemory, finding.MemoryFiles}, // a removed file of /dev/shm looks like one of a disk
		call: func(u *ledger.Use) bool { return u.Kind == ledger.FileBacked },
		title: func(g *hostGrowth) string {
			if loaded(g.kind, g.uses[0]) {
				return fmt.Sprintf("files that stay mapped, of libraries that were loaded (%s)", units.Plural(g.count, "mapping"))
			}
			return "files that stay mapped"
		},
		remedies: func(u *ledger.Use) []finding.Remedy {
			if loaded(finding.FileMapping, u) {
				return loadedRemedies
			}
			return finding.HostRemedies(finding.FileMapping)
		},
	},
	{
		of: finding.SharedMemory, rather: []finding.Kind{finding.MemoryFiles},
		call: func(u *ledger.Use) bool { return u.Kind == ledger.Shared },
		title: func(g *hostGrowth) string {
			if slices.ContainsFunc(g.uses[0].Frames, ofDriver) {
				return "shared memory that NVIDIA's driver mapped, its use unknown"
			}
			return "shared memory that stays mapped"
		},
		remedies: func(*ledger.Use) []finding.Remedy { // judging by calls, it need not belong to a worker
			return append([]finding.Remedy{finding.CodeChange("unmap the mappings made here after use")}, finding.HostRemedies(finding.SharedMemory)...)
		},
	},
	{
		of: finding.ThreadStacks, cause: true,
		frame:    func(_ *ledger.Use, f symbolize.Frame, _ int) bool { return threads.MatchString(f.Function) },
		title:    func(g *hostGrowth) string { return "the stacks of " + units.Plural(g.count, "thread") },
		remedies: advice(finding.CodeChange("limit the thread pools (OMP_NUM_THREADS, TOKENIZERS_PARALLELISM, executors), and join threads that are done")),
	},
	{
		of: finding.AllocatorRetention,
		frame: func(_ *ledger.Use, f symbolize.Frame, _ int) bool {
			return allocator.MatchString(filepath.Base(f.Object))
		},
		title: words("taken by an allocator other than the C library's"),
	},
	{
		of: finding.PythonObjects,
		frame: func(u *ledger.Use, f symbolize.Frame, above int) bool {
			return arenas.MatchString(f.Function) ||
				above < 4 && python.MatchString(filepath.Base(f.Object)) && pythonArena(u.Size) && u.Op == event.Map && onlyLibrary(u.Frames)
		},
		title:    func(g *hostGrowth) string { return units.Plural(g.count, "arena") + " of Python objects that stay" },
		remedies: advice(finding.CodeChange("drop the references: tracemalloc or memray names the holders; look for lists and dicts that only grow")),
	},
	{
		of: finding.HeapLeak, rather: []finding.Kind{finding.ArenaRetention, finding.PythonObjects, finding.Pinned, finding.AllocatorRetention},
		frame: func(_ *ledger.Use, f symbolize.Frame, _ int) bool { return mallocs.MatchString(f.Function) },
		title: func(g *hostGrowth) string {
			heap := "the heap of malloc"
			if c := collectorOf(g.uses[0]); c != nil {
				heap = c.heap
			}
			if g.shape == grows {
				return heap + ", which takes more and returns nothing"
			}
			return heap
		},
		detail: func(u *ledger.Use) []string {
			if collectorOf(u) != nil {
				return nil
			}
			if enlarges(u) {
				return []string{"the heap had no room left at this place. Others also fill it, and their shares are not seen"}
			}
			return []string{"these are the calls that grew the heap; its other contents are not seen"}
		},
		remedies: func(u *ledger.Use) []finding.Remedy {
			if c := collectorOf(u); c != nil {
				return []finding.Remedy{c.remedy()}
			}
			where := "free the memory that is allocated here"
			if enlarges(u) {
				where = "free the memory that stays in the heap; it need not come from the line that enlarged it"
			}
			return []finding.Remedy{finding.CodeChange(where + "; a heap profiler (heaptrack, memray --native, jemalloc's prof) names each allocation")}
		},
	},
	{
		of: finding.MmapLeak, byPlace: true, // any other mapping
		rather: []finding.Kind{finding.PythonObjects, finding.HeapLeak, finding.ArenaRetention, finding.HugePages, finding.Pinned, finding.AllocatorRetention},
		title:  mappings,
		remedies: func(u *ledger.Use) []finding.Remedy {
			if c := collectorOf(u); c != nil {
				return []finding.Remedy{c.remedy()}
			}
			return []finding.Remedy{finding.CodeChange("unmap the mappings made here, or reuse them; heap profilers do not see it, since malloc is not called")}
		},
		settings: true,
	},

	// What looks from outside show.
	{of: finding.AutogradGraph, cause: true, title: words("autograd's graph and the tensors in it, which are kept from step to step"), remedies: advice(graphRemedies...)},
	{of: finding.ArenaRetention, cause: true, title: words("kept by malloc after the program freed it")},
	{of: finding.HugePages, cause: true, title: words("partly used huge pages")},
	{of: finding.MemoryFiles, cause: true, title: words("unnamed files that live in memory")},
}

// pinning reports whether a frame is of a function that pins new host memory.
func pinning(f symbolize.Frame) bool { return pinners.MatchString(f.Function) }

// ofDriver reports whether a frame is of NVIDIA's driver.
func ofDriver(f symbolize.Frame) bool {
	return strings.HasPrefix(filepath.Base(f.Object), "libcuda.so")
}

func mappings(g *hostGrowth) string {
	title := units.Plural(g.count, "mapping")
	if average := g.mapped / max(g.count, 1); g.count > 1 && g.uses[0].Size-average < average/20 {
		title += " of " + units.Bytes(average)
	}
	if c := collectorOf(g.uses[0]); c != nil {
		title += " for " + c.heap
	}
	return title + " that were not unmapped"
}

func words(text string) func(*hostGrowth) string { return func(*hostGrowth) string { return text } }

func advice(remedies ...finding.Remedy) func(*ledger.Use) []finding.Remedy {
	return func(*ledger.Use) []finding.Remedy { return remedies }
}

// kindOf is a kind in the table; one that is not there is of mappings, without advice of
// its own.
func kindOf(of finding.Kind) *kind {
	for i := range kinds {
		if kinds[i].of == of {
			return &kinds[i]
		}
	}
	return &kind{of: of, title: mappings}
}

// kindOfCall is the kind of growth that the calls with a stack made.
func kindOfCall(u *ledger.Use) finding.Kind {
	for i := range kinds {
		if k := &kinds[i]; k.call != nil && k.call(u) {
			return k.of
		}
	}
	for above, f := range u.Frames {
		for i := range kinds {
			if k := &kinds[i]; k.frame != nil && k.frame(u, f, above) {
				return k.of
			}
		}
	}
	if u.Kind == ledger.Heap || u.Op == event.Protect {
		return finding.HeapLeak
	}
	return finding.MmapLeak
}

var (
	mallocs   = lazyregexp.New(`^(__libc_)?(malloc|calloc|realloc|memalign|aligned_alloc|posix_memalign|valloc|pvalloc|reallocarray)$|^operator new|^_int_(malloc|memalign|realloc)$|^sysmalloc`)
	pinners   = lazyregexp.New(`^(cudaHostAlloc|cudaMallocHost|cuMemHostAlloc|cuMemAllocHost(_v2)?)(_ptsz)?$`)
	python    = lazyregexp.New(`^(lib)?python3(\.\d+)?t?($|\.|d)`)
	arenas    = lazyregexp.New(`^_?PyObject_(Arena|Malloc|Realloc|Calloc)|^_PyMem_ArenaAlloc|^new_arena|^pymalloc_alloc`)
	threads   = lazyregexp.New(`^(__)?pthread_create|^allocate_stack`)
	allocator = lazyregexp.New(`(jemalloc|tcmalloc|mimalloc|rpmalloc)[^/]*$`)
	library   = lazyregexp.New(`^(libc[.-]|(memfd:|lib)strandline-malloc|libpthread|ld-linux|libstdc\+\+|libgcc_s|libm[.-])`)
)

// pythonArena reports whether Python maps memory for its objects in units of this size.
func pythonArena(size int64) bool { return size == 1<<20 || size == 256<<10 }

// onlyLibrary reports whether the interpreter itself called mmap: at most the C library
// stands between it and the call.
func onlyLibrary(frames []symbolize.Frame) bool {
	for _, f := range frames {
		if object := filepath.Base(f.Object); !library.MatchString(object) {
			return python.MatchString(object)
		}
	}
	return false
}
