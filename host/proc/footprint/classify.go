package footprint

import (
	"cmp"
	"io"
	"time"

	"strandline/finding"
	"strandline/host/proc/procfs"
	"strandline/host/proc/vmmap"
	"strandline/internal/sorts"
)

// A Part is the growth of one class.
type Part struct {
	Class finding.Kind
	// Bytes that the class grew by. They are resident, except for thread-stacks
	// (mapped), page-cache and kernel (charged to the cgroup) and memfd.
	Bytes int64
	// Outside states that the bytes are not part of the growth of the process's RSS.
	Outside bool
	Count   int // of mappings, files, threads or processes; 0 if a count would mean nothing
	Process procfs.Process
	// Confidence is how sure the class is, from 0 to 1.
	Confidence float64
	// Steady states that the class grew from sample to sample, up to the last one.
	// Settled states that it grew until one of the looks, and not since.
	Steady, Settled bool
	// Earlier states that the growth happened before the first look.
	Earlier bool
	// Early is how many bytes it grew by while it grew faster, until one of the looks;
	// they are not included in Bytes.
	Early int64
	Until time.Duration // from the first look to the one that Settled or Early refers to
}

// A Spot is the growth of one class in a private mapping.
type Spot struct {
	Start, End uint64 // of the mapping
	Class      finding.Kind
	Bytes      int64
}

// Growth is what changed between two observations.
type Growth struct {
	Before, After                   *Observation
	RSS, Anon, File, Shared, mapped int64         // bytes; mapped is address space
	Parts                           []Part        // by bytes
	Spots                           []Spot        // by address
	Age                             time.Duration // of the process at the end; 0 if unknown
	Read                            int64         // bytes, by calls

	grown    []region
	minBytes int64
	traced   bool  // calls of mremap are known
	remaps   int64 // bytes that they added and that are not yet in any part
}

// minGrowth is the growth below which no class is reported: a program that starts a thread
// or loads a library grows by a few MiB.
const minGrowth = 4 << 20

// minThreads is more than the size of a thread pool that may be created while we look.
const minThreads = 16

// classifyGrowth returns the classes that grew by at least a number of bytes.
func classifyGrowth(before, after *Observation, memory io.ReaderAt, minBytes int64) *Growth {
	a, b := &after.status, &before.status
	g := &Growth{
		Before: before, After: after, grown: grownRegions(before, after), minBytes: minBytes,
		RSS: delta(a.RSS, b.RSS), Anon: delta(a.Anon, b.Anon), File: delta(a.File, b.File), Shared: delta(a.Shared, b.Shared),
		mapped: delta(a.VMSize, b.VMSize), Age: after.age, Read: delta(after.read, before.read),
	}
	if a, b := after.Remapped, before.Remapped; a != nil && b != nil {
		g.traced, g.remaps = true, delta(*a, *b)
	}
	g.anonymous(memory)
	g.shared()
	if g.File >= g.minBytes {
		g.add(Part{Class: finding.FileMapping, Bytes: g.File, Confidence: 0.9})
	}
	g.addOutsideRSS()
	g.children()
	sorts.StableBy(g.Parts, func(a, b Part) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return g
}

func delta(after, before uint64) int64 { return int64(after) - int64(before) }

func (g *Growth) add(p Part) {
	if p.Bytes > 0 {
		g.Parts = append(g.Parts, p)
	}
}

// Explained returns the share of the growth of resident memory that has a class.
func (g *Growth) Explained() float64 {
	if g.RSS < g.minBytes {
		return 1
	}
	var sum int64
	for _, p := range g.Parts {
		if !p.Outside && p.Class != finding.Unexplained {
			sum += p.Bytes + p.Early
		}
	}
	return min(1, float64(sum)/float64(g.RSS))
}

// anonymous returns the classes of private memory without a file.
func (g *Growth) anonymous(memory io.ReaderAt) {
	if g.Anon < g.minBytes {
		return
	}
	if pinned := delta(g.After.status.Pinned, g.Before.status.Pinned); 2*pinned >= g.Anon {
		g.add(Part{Class: finding.Pinned, Bytes: min(pinned, g.RSS), Confidence: 0.9})
		return
	}
	sums := map[finding.Kind]*Part{}
	take := func(class finding.Kind, bytes int64, count int, confidence float64) {
		if bytes <= 0 {
			return
		}
		p := sums[class]
		if p == nil {
			p = &Part{Class: class, Confidence: confidence}
			sums[class] = p
		}
		p.Bytes += bytes
		p.Count += count
		p.Confidence = min(p.Confidence, confidence)
	}
	var heap, kept int64
	for _, r := range g.grown {
		switch {
		case r.kind == vmmap.Heap || r.kind == vmmap.Arena:
			heap += r.grown
		case r.kind == vmmap.Thread || r.kind == vmmap.Stack:
			take(finding.ThreadStacks, r.grown, 1, 0.8)
		case r.kind == vmmap.Anonymous:
			g.region(memory, &r, func(class finding.Kind, bytes int64, count int, confidence float64) {
				take(class, bytes, count, confidence)
				if bytes > 0 {
					g.Spots = append(g.Spots, Spot{r.Start, r.End, class, bytes})
				}
			})
		case r.kind == vmmap.File && r.Anonymous > 0 && !r.Shared:
			take(finding.Unexplained, r.grown, 1, 0.5) // data of a library that was written to
		}
	}
	if g.Before.Arenas != nil && g.After.Arenas != nil {
		kept = delta(g.After.Free(), g.Before.Free())
		kept = max(0, min(kept, heap))
	}
	take(finding.ArenaRetention, kept, len(g.After.Arenas), 0.9)
	confidence := 0.9
	if g.After.Arenas == nil {
		confidence = 0.5
	}
	take(finding.HeapLeak, heap-kept, 0, confidence)
	for _, p := range sums {
		p.Bytes = min(p.Bytes, g.Anon)
		g.add(*p)
	}
}

// region returns the classes of an anonymous mapping that grew.
func (g *Growth) region(memory io.ReaderAt, r *region, take func(finding.Kind, int64, int, float64)) {
	var c contents
	if memory != nil {
		c = look(memory, r, g.Before.layout())
	}
	rest := r.grown
	if n := min(rest, r.pinned); n > 0 {
		take(finding.Pinned, n, 1, 0.9)
		rest -= n
	}
	if c.zero >= 0.75 {
		take(finding.HugePages, int64(c.zero*float64(min(rest, r.huge))), 1, 0.8)
		rest -= int64(c.zero * float64(min(rest, r.huge)))
	}
	if c.python >= 0.2 {
		take(finding.PythonObjects, int64(c.python*float64(rest)), 1, 0.9)
		rest -= int64(c.python * float64(rest))
	}
	take(finding.HeapLeak, min(rest, c.malloc), 1, 0.9)
	rest -= min(rest, c.malloc)
	switch {
	case g.After.Allocator != "":
		take(finding.AllocatorRetention, rest, 1, 0.7)
	case g.traced:
		n := min(rest, g.remaps)
		g.remaps -= n
		take(finding.Remap, n, 1, 0.9)
		take(finding.MmapLeak, rest-n, 1, 0.9)
	case g.remapped(r):
		take(finding.Remap, rest, 1, 0.5)
	default:
		take(finding.MmapLeak, rest, 1, 0.6)
	}
}

// remapped reports whether mremap made a mapping larger: either it begins where it did
// and ends later; or it ends later than what was there; or it holds the content of one
// that is gone. Mappings that the kernel merged begin earlier and end where they did;
// so does a buffer that was moved back and forth, which only a trace of calls shows.
func (g *Growth) remapped(r *region) bool {
	if r.same {
		return true
	}
	for _, b := range g.Before.regions {
		if b.Start < r.End && r.Start < b.End {
			return b.End < r.End
		}
	}
	now := g.After.layout()
	for _, b := range g.Before.regions {
		gone := b.Size()
		now.Within(b.Start, b.End, func(start, end uint64) { gone -= end - start })
		if vmmap.KindOf(b.Mapping) == vmmap.Anonymous && int64(b.RSS) >= g.minBytes/4 && int64(gone) >= g.minBytes/4 && gone < r.Size() {
			return true
		}
	}
	return false
}

// shared returns the classes of memory that is shared, mapped or held open.
func (g *Growth) shared() {
	held := g.After.openFileBytes() - g.Before.openFileBytes()
	named := int64(0)
	for _, r := range g.grown {
		if r.kind == vmmap.Memfd {
			named += r.grown
		}
	}
	if named = min(named, max(g.Shared, 0)); named >= g.minBytes {
		g.add(Part{Class: finding.MemoryFiles, Bytes: named, Confidence: 0.9})
	}
	if rest := g.Shared - named; rest >= g.minBytes {
		g.add(Part{Class: finding.SharedMemory, Bytes: rest, Confidence: 0.9})
	}
	if held >= g.minBytes {
		g.add(Part{Class: finding.MemoryFiles, Bytes: held, Count: len(g.After.Open.Memory) - len(g.Before.Open.Memory), Outside: true, Confidence: 0.9})
	}
}

// openFileBytes returns how much memory is taken by in-memory files that the process holds open
// and does not map.
func (o *Observation) openFileBytes() (n int64) {
	mapped := map[uint64]bool{} // by inode number
	for _, r := range o.regions {
		mapped[r.Inode] = true
	}
	for _, f := range o.Open.Memory {
		if !mapped[f.ID.Inode] {
			n += int64(f.Bytes)
		}
	}
	return n
}

// addOutsideRSS returns what grows outside the process's RSS.
func (g *Growth) addOutsideRSS() {
	threads := g.After.status.Threads - g.Before.status.Threads
	if stacks := g.After.stacks() - g.Before.stacks(); int64(threads) >= minThreads*g.minBytes/minGrowth && stacks >= 4*max(g.RSS, g.minBytes) {
		g.add(Part{Class: finding.ThreadStacks, Bytes: stacks, Count: threads, Outside: true, Confidence: 0.9})
	}
	a, b := g.After.group, g.Before.group
	if a == nil || b == nil || g.Before.cgroup != g.After.cgroup {
		return
	}
	moved := delta(g.After.moved, g.Before.moved)
	if cache := delta(a.Cache, b.Cache) - max(g.File, 0); cache >= g.minBytes && 2*moved >= cache {
		g.add(Part{Class: finding.PageCache, Bytes: cache, Outside: true, Confidence: 0.8})
	}
	// Page tables and thread stacks grow along with the memory and the threads.
	if a.Kernel == nil || b.Kernel == nil {
		return
	}
	kernel := delta(*a.Kernel, *b.Kernel) - max(g.RSS, 0)/64 - 32<<10*int64(max(0, g.After.status.Threads-g.Before.status.Threads))
	opened := g.After.Open.Sockets + g.After.Open.Pipes - g.Before.Open.Sockets - g.Before.Open.Pipes
	if opened < 8 { // other processes of the cgroup have such memory too; what certainly is this process's are its page tables
		opened, kernel = 0, min(kernel, delta(g.After.status.PageTables, g.Before.status.PageTables))
	}
	if kernel >= g.minBytes && 4*kernel >= g.RSS {
		g.add(Part{Class: finding.KernelMemory, Bytes: kernel, Count: opened, Outside: true, Confidence: 0.7})
	}
}

// children returns pages that a process no longer shares with others because one of
// them wrote to them. Each then has a page of its own; the growth is attributed to the
// child. When a process ends, those that shared pages with it also have more of their
// own: the end is what shows that.
func (g *Growth) children() {
	diverged, ended := false, false
	for p, before := range g.Before.children {
		after, lives := g.After.children[p]
		ended = ended || !lives
		if n := max(g.parted(before, after), g.copying(p)); lives && n >= g.minBytes {
			diverged = true
			g.add(Part{Class: finding.CopyOnWrite, Bytes: n, Process: p, Outside: true, Confidence: 0.9})
		}
	}
	for p := range g.After.copied {
		if _, old := g.Before.children[p]; old {
			continue
		}
		if n := g.copying(p); n >= g.minBytes {
			diverged = true
			g.add(Part{Class: finding.CopyOnWrite, Bytes: n, Process: p, Outside: true, Confidence: 0.9})
		}
	}
	parent := g.After.status.Parent
	if diverged || ended || parent <= 1 || parent != g.Before.status.Parent {
		return
	}
	if n := g.parted(g.Before.rollup, g.After.rollup); n > 0 {
		g.add(Part{Class: finding.CopyOnWrite, Bytes: n, Process: g.After.PID, Outside: true, Confidence: 0.9})
	}
}

// parted returns the number of bytes that were dirty and shared, and are private now.
func (g *Growth) parted(before, after procfs.Usage) int64 {
	private := delta(after.PrivateDirty, before.PrivateDirty)
	shared := delta(before.SharedDirty, after.SharedDirty)
	if grew := delta(after.RSS, before.RSS); private >= g.minBytes && shared >= private/2 && grew < private/2 {
		return min(private, shared)
	}
	return 0
}
