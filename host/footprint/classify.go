package footprint

import (
	"cmp"
	"io"
	"slices"
	"time"

	"strandline/finding"
	"strandline/host/procfs"
	"strandline/host/vmmap"
)

// A Part is the growth of one class.
type Part struct {
	Class finding.Kind
	// Bytes that the class grew by. They are resident, but for thread-stacks
	// (mapped), page-cache and kernel (charged to the cgroup) and memfd.
	Bytes int64
	// Outside says that the bytes are not in the growth of the process's RSS.
	Outside bool
	Count   int // of mappings, files, threads or processes; 0 if it says nothing
	Process procfs.Process
	// Sure is how sure the class is, from 0 to 1.
	Sure float64
	// Steady says that the class grew from look to look, up to the last. Settled
	// says that it grew until some look, and not since.
	Steady, Settled bool
	// Early are the bytes that it grew by faster, until some look, and that are none
	// of Bytes.
	Early int64
	Until time.Duration // from the first look to the one that Settled or Early is of
}

// A Spot is what a private mapping grew by that is of one class.
type Spot struct {
	Start, End uint64 // of the mapping
	Class      finding.Kind
	Bytes      int64
}

// Growth is what changed between two observations.
type Growth struct {
	Before, After                   *Observation
	RSS, Anon, File, Shared, Mapped int64         // bytes; Mapped is of the address space
	Parts                           []Part        // by bytes
	Spots                           []Spot        // by address
	Age                             time.Duration // of the process in the end; 0 if unknown
	Read                            int64         // bytes, by calls

	grown  []Region
	least  int64
	traced bool  // calls of mremap are known
	remaps int64 // bytes that they added and that no part has yet
}

// least is the growth below which no class is told: a program that starts a
// thread or loads a library grows by some MiB.
const least = 4 << 20

// manyThreads are more than a pool that is made while we look.
const manyThreads = 16

// between tells the classes of which something grew by some bytes or more.
func between(before, after *Observation, memory io.ReaderAt, least int64) *Growth {
	a, b := &after.Status, &before.Status
	g := &Growth{
		Before: before, After: after, grown: grown(before, after), least: least,
		RSS: delta(a.RSS, b.RSS), Anon: delta(a.Anon, b.Anon), File: delta(a.File, b.File), Shared: delta(a.Shared, b.Shared),
		Mapped: delta(a.VMSize, b.VMSize), Age: after.Age, Read: delta(after.Read, before.Read),
	}
	if a, b := after.Remapped, before.Remapped; a != nil && b != nil {
		g.traced, g.remaps = true, delta(*a, *b)
	}
	g.anonymous(memory)
	g.shared()
	if g.File >= g.least {
		g.add(Part{Class: finding.FileMapping, Bytes: g.File, Sure: 0.9})
	}
	g.outside()
	g.children()
	slices.SortStableFunc(g.Parts, func(a, b Part) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return g
}

func delta(after, before uint64) int64 { return int64(after) - int64(before) }

func (g *Growth) add(p Part) {
	if p.Bytes > 0 {
		g.Parts = append(g.Parts, p)
	}
}

// Explained is the share of the growth of resident memory that has a class.
func (g *Growth) Explained() float64 {
	if g.RSS < g.least {
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

// anonymous tells the classes of private memory without a file.
func (g *Growth) anonymous(memory io.ReaderAt) {
	if g.Anon < g.least {
		return
	}
	if pinned := delta(g.After.Status.Pinned, g.Before.Status.Pinned); 2*pinned >= g.Anon {
		g.add(Part{Class: finding.Pinned, Bytes: min(pinned, g.RSS), Sure: 0.9})
		return
	}
	sums := map[finding.Kind]*Part{}
	take := func(class finding.Kind, bytes int64, count int, sure float64) {
		if bytes <= 0 {
			return
		}
		p := sums[class]
		if p == nil {
			p = &Part{Class: class, Sure: sure}
			sums[class] = p
		}
		p.Bytes += bytes
		p.Count += count
		p.Sure = min(p.Sure, sure)
	}
	var heap, kept int64
	for _, r := range g.grown {
		switch {
		case r.Kind == vmmap.Heap || r.Kind == vmmap.Arena:
			heap += r.Grown
		case r.Kind == vmmap.Thread || r.Kind == vmmap.Stack:
			take(finding.ThreadStacks, r.Grown, 1, 0.8)
		case r.Kind == vmmap.Anonymous:
			g.region(memory, &r, func(class finding.Kind, bytes int64, count int, sure float64) {
				take(class, bytes, count, sure)
				if bytes > 0 {
					g.Spots = append(g.Spots, Spot{r.Start, r.End, class, bytes})
				}
			})
		case r.Kind == vmmap.File && r.Anonymous > 0 && !r.Shared:
			take(finding.Unexplained, r.Grown, 1, 0.5) // data of a library that is written to
		}
	}
	if g.Before.Arenas != nil && g.After.Arenas != nil {
		kept = delta(g.After.Free(), g.Before.Free())
		kept = max(0, min(kept, heap))
	}
	take(finding.ArenaRetention, kept, len(g.After.Arenas), 0.9)
	sure := 0.9
	if g.After.Arenas == nil {
		sure = 0.5
	}
	take(finding.HeapLeak, heap-kept, 0, sure)
	for _, p := range sums {
		p.Bytes = min(p.Bytes, g.Anon)
		g.add(*p)
	}
}

// region tells the classes of an anonymous mapping that grew.
func (g *Growth) region(memory io.ReaderAt, r *Region, take func(finding.Kind, int64, int, float64)) {
	var c contents
	if memory != nil {
		c = look(memory, r, g.Before.layout())
	}
	rest := r.Grown
	if n := min(rest, r.Pinned); n > 0 {
		take(finding.Pinned, n, 1, 0.9)
		rest -= n
	}
	if c.zero >= 0.75 {
		take(finding.HugePages, int64(c.zero*float64(min(rest, r.Huge))), 1, 0.8)
		rest -= int64(c.zero * float64(min(rest, r.Huge)))
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

// remapped tells a mapping that mremap made larger: it begins where it did, and
// ends later; or it ends later than what was there, or holds what one held that
// is gone. Mappings that the kernel merged begin earlier, and end where they did;
// so does a buffer that was moved to and fro, which a trace of calls alone tells.
func (g *Growth) remapped(r *Region) bool {
	if r.Same {
		return true
	}
	for _, b := range g.Before.Regions {
		if b.Start < r.End && r.Start < b.End {
			return b.End < r.End
		}
	}
	now := g.After.layout()
	for _, b := range g.Before.Regions {
		gone := b.Size()
		now.Within(b.Start, b.End, func(start, end uint64) { gone -= end - start })
		if vmmap.KindOf(b.Mapping) == vmmap.Anonymous && int64(b.RSS) >= g.least/4 && int64(gone) >= g.least/4 && gone < r.Size() {
			return true
		}
	}
	return false
}

// shared tells the classes of memory that is shared, mapped or held open.
func (g *Growth) shared() {
	held := g.After.held() - g.Before.held()
	named := int64(0)
	for _, r := range g.grown {
		if r.Kind == vmmap.Memfd {
			named += r.Grown
		}
	}
	if named = min(named, max(g.Shared, 0)); named >= g.least {
		g.add(Part{Class: finding.MemoryFiles, Bytes: named, Sure: 0.9})
	}
	if rest := g.Shared - named; rest >= g.least {
		g.add(Part{Class: finding.SharedMemory, Bytes: rest, Sure: 0.9})
	}
	if held >= g.least {
		g.add(Part{Class: finding.MemoryFiles, Bytes: held, Count: len(g.After.Open.Memory) - len(g.Before.Open.Memory), Outside: true, Sure: 0.9})
	}
}

// held is what files in memory take that the process holds and does not map.
func (o *Observation) held() (n int64) {
	mapped := map[uint64]bool{} // by number of the file
	for _, r := range o.Regions {
		mapped[r.Inode] = true
	}
	for _, f := range o.Open.Memory {
		if !mapped[f.ID.Inode] {
			n += int64(f.Bytes)
		}
	}
	return n
}

// outside tells what grows without the process's RSS.
func (g *Growth) outside() {
	threads := g.After.Status.Threads - g.Before.Status.Threads
	if stacks := g.After.stacks() - g.Before.stacks(); int64(threads) >= manyThreads*g.least/least && stacks >= 4*max(g.RSS, g.least) {
		g.add(Part{Class: finding.ThreadStacks, Bytes: stacks, Count: threads, Outside: true, Sure: 0.9})
	}
	a, b := g.After.Charged, g.Before.Charged
	if a == nil || b == nil || g.Before.Cgroup != g.After.Cgroup {
		return
	}
	moved := delta(g.After.Moved, g.Before.Moved)
	if cache := delta(a.Cache, b.Cache) - max(g.File, 0); cache >= g.least && 2*moved >= cache {
		g.add(Part{Class: finding.PageCache, Bytes: cache, Outside: true, Sure: 0.8})
	}
	// Page tables and stacks of threads come with the memory and the threads.
	if a.Kernel == nil || b.Kernel == nil {
		return
	}
	kernel := delta(*a.Kernel, *b.Kernel) - max(g.RSS, 0)/64 - 32<<10*int64(max(0, g.After.Status.Threads-g.Before.Status.Threads))
	opened := g.After.Open.Sockets + g.After.Open.Pipes - g.Before.Open.Sockets - g.Before.Open.Pipes
	if opened < 8 { // others of the cgroup have such memory, too: of this process are its page tables
		opened, kernel = 0, min(kernel, delta(g.After.Status.PageTables, g.Before.Status.PageTables))
	}
	if kernel >= g.least && 4*kernel >= g.RSS {
		g.add(Part{Class: finding.KernelMemory, Bytes: kernel, Count: opened, Outside: true, Sure: 0.7})
	}
}

// children tells pages that a process has no longer in common with others
// because one of them wrote to it. Both then have a page for themselves; it is
// laid to the child. When a process ends, those with whom it had pages in common
// have more for themselves, too: that is told by the end.
func (g *Growth) children() {
	diverged, ended := false, false
	for p, before := range g.Before.Children {
		after, lives := g.After.Children[p]
		ended = ended || !lives
		if n := g.parted(before, after); lives && n > 0 {
			diverged = true
			g.add(Part{Class: finding.CopyOnWrite, Bytes: n, Process: p, Outside: true, Sure: 0.9})
		}
	}
	parent := g.After.Status.Parent
	if diverged || ended || parent <= 1 || parent != g.Before.Status.Parent {
		return
	}
	if n := g.parted(g.Before.Rollup, g.After.Rollup); n > 0 {
		g.add(Part{Class: finding.CopyOnWrite, Bytes: n, Process: g.After.PID, Outside: true, Sure: 0.9})
	}
}

// parted are the bytes that were written to and shared, and are private now.
func (g *Growth) parted(before, after procfs.Usage) int64 {
	private := delta(after.PrivateDirty, before.PrivateDirty)
	shared := delta(before.SharedDirty, after.SharedDirty)
	if grew := delta(after.RSS, before.RSS); private >= g.least && shared >= private/2 && grew < private/2 {
		return min(private, shared)
	}
	return 0
}
