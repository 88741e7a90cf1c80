package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/footprint"
	"strandline/host/ledger"
	"strandline/host/procfs"
	"strandline/host/symbolize"
	"strandline/judge/trend"
	"strandline/units"
)

// classWorth is the growth of a class, in bytes, from which on it is told without
// a call that made it.
const classWorth = 4 << 20

// A host is what is known of a process's growth: by the calls that were traced,
// and by looks at it from outside. Looks are nil where there were none.
type host struct {
	sums  *ledger.Sums
	looks *footprint.Growth
	where map[*ledger.Use]map[finding.Kind]int64 // bytes of a use, by class of the memory
}

// grew is what a class grew by, as far as looks tell, in bytes.
func (h host) grew(kind finding.Kind) (bytes int64) {
	if h.looks == nil {
		return 0
	}
	for _, p := range h.looks.Parts {
		if p.Class == kind {
			bytes += p.Bytes
		}
	}
	return bytes
}

// steady is how sure a class is that grew in each look; 0 for others.
func (h host) steady(kind finding.Kind) float64 {
	if h.looks == nil {
		return 0
	}
	for _, p := range h.looks.Parts {
		if p.Class == kind && p.Steady && p.Bytes >= classWorth {
			return p.Sure
		}
	}
	return 0
}

// classOf is what kind of growth the calls with a stack are. A stack tells who
// asked for memory; that most of it is free again, or Python's, or a huge page
// of which a byte is used, tells what is in it.
func (h host) classOf(u *ledger.Use) finding.Kind {
	kind := classOf(u)
	if h.looks == nil {
		return kind
	}
	var rather []finding.Kind
	switch kind {
	case finding.HeapLeak:
		rather = []finding.Kind{finding.ArenaRetention, finding.PythonObjects, finding.Pinned, finding.AllocatorRetention}
	case finding.MmapLeak:
		rather = []finding.Kind{finding.PythonObjects, finding.HeapLeak, finding.ArenaRetention, finding.HugePages, finding.Pinned, finding.AllocatorRetention}
	case finding.FileMapping: // a removed file of /dev/shm looks like one of a disk
		rather = []finding.Kind{finding.SharedMemory, finding.MemoryFiles}
	case finding.SharedMemory:
		rather = []finding.Kind{finding.MemoryFiles}
	}
	if found, ok := h.lies(u); ok && kind == finding.MmapLeak {
		if slices.Contains(rather, found) {
			return found
		}
		return kind
	}
	for _, other := range rather {
		if n := h.grew(other); n > 0 && 10*n >= 7*(n+h.grew(kind)) && 2*n >= u.Resident {
			return other
		}
	}
	return kind
}

// lies is the class of the mappings in which most of a use lies, where looks tell
// of most of it.
func (h host) lies(u *ledger.Use) (most finding.Kind, ok bool) {
	var all int64
	for class, n := range h.where[u] {
		if all += n; n > h.where[u][most] {
			most = class
		}
	}
	return most, 2*all >= u.Resident && 10*h.where[u][most] >= 7*all
}

// locate tells, of each use, in what classes of memory it lies, by bytes.
func (h *host) locate() {
	h.where = map[*ledger.Use]map[finding.Kind]int64{}
	if h.looks == nil {
		return
	}
	grown := map[uint64]int64{} // by the beginning of a mapping
	for _, s := range h.looks.Spots {
		grown[s.Start] += s.Bytes
	}
	spots := h.looks.Spots
	for _, p := range h.sums.Pieces {
		for len(spots) > 0 && spots[0].End <= p.Start {
			spots = spots[1:]
		}
		u := &h.sums.Uses[p.Use]
		for _, s := range spots {
			if s.Start >= p.End {
				break
			}
			if h.where[u] == nil {
				h.where[u] = map[finding.Kind]int64{}
			}
			h.where[u][s.Class] += int64(float64(p.Resident) * float64(s.Bytes) / float64(grown[s.Start]))
		}
	}
}

// unmade are findings of classes that grew and of which no call was found, and the
// bytes of growth that no finding tells of then.
func (h host) unmade(found []finding.Finding) (out []finding.Finding, rest int64) {
	if h.looks == nil {
		return nil, 0
	}
	told := map[finding.Kind]bool{finding.Unexplained: true}
	rest = h.looks.RSS
	for _, f := range found {
		told[f.Kind] = true
		if e, ok := f.Evidence.(*finding.CallGrowthEvidence); ok {
			if rest -= e.ResidentBytes; e.EarlyBytes != nil {
				rest -= *e.EarlyBytes
			}
		}
	}
	// What is left of a growth that calls explain is that looks and calls are not
	// of the same instant.
	explained := float64(rest) <= (1-unexplained)*float64(h.looks.RSS)
	for _, p := range h.looks.Parts {
		share := hostShare
		if p.Settled {
			share = settledShare
		}
		within := float64(p.Bytes) >= share*float64(max(h.looks.RSS, 0))
		if told[p.Class] || p.Bytes < classWorth || !p.Outside && (!within || explained) {
			continue
		}
		if !p.Outside {
			if p.Bytes = min(p.Bytes, rest); p.Bytes < classWorth {
				continue
			}
			rest -= p.Bytes + p.Early
		}
		told[p.Class] = p.Class != finding.CopyOnWrite // each process by itself
		out = append(out, h.class(p))
	}
	return out, rest
}

// kinds say of what classes the growth is, as far as looks tell.
func (h host) kinds() []string {
	if h.looks == nil {
		return nil
	}
	var kinds []string
	for _, p := range h.looks.Parts {
		if bytes := p.Bytes + p.Early; !p.Outside && p.Class != finding.Unexplained && bytes >= classWorth {
			kinds = append(kinds, fmt.Sprintf("%s %s", units.Bytes(bytes), p.Class))
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	return []string{"seen from outside it is " + strings.Join(kinds, ", ")}
}

// class is the finding of a class that grew.
func (h host) class(p footprint.Part) finding.Finding {
	const looked = "the process was looked at from outside, from when the trace began to its end; "
	e := &finding.SampledGrowthEvidence{GrownBytes: p.Bytes, RSSGrowthBytes: h.looks.RSS, OutsideRSS: p.Outside}
	f := finding.Finding{
		Kind: p.Class, Severity: finding.Warning, Confidence: p.Sure,
		Bytes: finding.Int(p.Bytes), Title: h.classTitle(p),
		Basis:    looked + "the class grew from look to look",
		Evidence: e,
		Remedies: hostRemedies(p.Class, &ledger.Use{}, nil),
	}
	if p.Count > 0 {
		f.Count = finding.Int(int64(p.Count))
	}
	switch p.Class {
	case finding.MemoryFiles:
		h.makers(&f)
	case finding.ThreadStacks:
		h.starter(&f)
	case finding.MmapLeak:
		switch u := h.turning(p.Bytes); {
		case u != nil:
			f.Severity, f.Remedies = finding.Info, nil
			madeHere(&f, u.Frames)
		case h.filled():
			f.Remedies = []finding.Remedy{finding.CodeChange("see what fills them: a mapping is full at its size, and one that is made large enough grows for long")}
		}
	}
	if p.Until > 0 {
		e.SettledSeconds = p.Until.Seconds()
	}
	if p.Early > 0 {
		e.EarlyBytes = p.Early
		f.Detail = append(f.Detail, earlier(p.Early, p.Until))
	}
	loading := h.loading(nil, p.Bytes)
	switch {
	case p.Settled:
		f.Severity, f.Remedies = finding.Info, nil
		f.Title += fmt.Sprintf("; all came in the first %s of the trace, and none since", units.Duration(p.Until))
		f.Basis = looked + "the class grew at first, and then no more"
	case p.Class == finding.PageCache || p.Class == finding.FileMapping:
		f.Severity = finding.Info
	case p.Class == finding.ArenaRetention && 2*h.looks.After.Free() < h.looks.After.System():
		f.Detail = append(f.Detail, "most of the arenas is in use; what lies free between that is as usual where blocks of many sizes come and go")
	case p.Class == finding.MmapLeak && h.filled(): // a leak would have calls
	case p.Steady && p.Sure >= 0.7 && loading == "":
		f.Severity = finding.Problem
	case loading != "":
		f.Detail = append(f.Detail, loading)
		f.Remedies = append([]finding.Remedy{traceLonger}, f.Remedies...)
	case !p.Steady:
		f.Confidence /= 2
		f.Basis = looked + "the class did not grow each time"
		f.Remedies = append([]finding.Remedy{traceLonger}, f.Remedies...)
	}
	return f
}

// madeHere names the place that made what a finding tells of.
func madeHere(f *finding.Finding, frames []symbolize.Frame) {
	f.Stack, f.Site = hostFrames(frames), HostSite(frames)
	if where := through(frames); where != "" {
		f.Title += "; made here: " + where
	}
}

// starter names the place that started the most threads.
func (h host) starter(f *finding.Finding) {
	var top *ledger.Use
	for i := range h.sums.Uses {
		if u := &h.sums.Uses[i]; classOf(u) == finding.ThreadStacks && (top == nil || u.Live > top.Live) {
			top = u
		}
	}
	if top != nil {
		madeHere(f, top.Frames)
	}
}

// filled reports whether mappings grew without calls that make them, where these were
// watched.
func (h host) filled() bool { return !h.sums.Blind }

// turning is the largest of the places that unmap what they map, later, and map
// again, if most of some growth of mappings lies in what they hold; else nil.
func (h host) turning(growth int64) (top *ledger.Use) {
	var held int64
	for i := range h.sums.Uses {
		u := &h.sums.Uses[i]
		if h.classOf(u) != finding.MmapLeak || trend.Judge(u.Population, trend.Past{}).Class != trend.Turnover {
			continue
		}
		if held += residentOf(u); top == nil || residentOf(u) > residentOf(top) {
			top = u
		}
	}
	if 2*held < growth {
		return nil
	}
	return top
}

// makers names the places that made the files in memory that are held now and were
// not at first, the most bytes first.
func (h host) makers(f *finding.Finding) {
	type place struct {
		stack        symbolize.Stack
		bytes, count int64
	}
	old := map[procfs.FileID]bool{}
	for _, file := range h.looks.Before.Open.Memory {
		old[file.ID] = true
	}
	places := map[string]*place{}
	for _, file := range h.looks.After.Open.Memory {
		stack := h.sums.Files[file.ID]
		if site := HostSite(stack.Frames); site != nil && !old[file.ID] {
			key := fmt.Sprint(stack.Frames)
			if places[key] == nil {
				places[key] = &place{stack: stack}
			}
			places[key].bytes += int64(file.Bytes)
			places[key].count++
		}
	}
	made := slices.SortedFunc(maps.Values(places), func(a, b *place) int { return cmp.Compare(b.bytes, a.bytes) })
	if len(made) == 0 {
		return
	}
	madeHere(f, made[0].stack.Frames)
	for _, m := range made {
		if len(made) > 1 {
			f.Sites = append(f.Sites, finding.Place{Site: *HostSite(m.stack.Frames), Bytes: m.bytes, Count: m.count})
		}
	}
}

func (h host) classTitle(p footprint.Part) string {
	size := units.Bytes(p.Bytes)
	switch p.Class {
	case finding.ArenaRetention:
		system, free := h.looks.After.System(), h.looks.After.Free()
		return fmt.Sprintf("malloc keeps %s more that the program has freed: %s of %s in %s are free", size,
			units.Bytes(int64(free)), units.Bytes(int64(system)), units.Plural(int64(len(h.looks.After.Arenas)), "arena"))
	case finding.HeapLeak:
		return size + " more of malloc's blocks are in use"
	case finding.PythonObjects:
		return size + " more are in use by objects of Python"
	case finding.AllocatorRetention:
		return fmt.Sprintf("%s more are held by %s; what of it is free it does not tell from outside", size, h.looks.After.Allocator)
	case finding.HugePages:
		return size + " of zeros are resident in huge pages of which a part is used"
	case finding.Remap:
		return size + " were added to mappings that are made larger time and again"
	case finding.MmapLeak:
		if h.turning(p.Bytes) != nil {
			return size + " are held where mappings are made and unmapped time and again: a working set"
		}
		if h.filled() {
			return size + " came into memory in mappings that are being filled; hardly any are new"
		}
		return size + " were mapped and not unmapped"
	case finding.Pinned:
		return size + " more are locked or pinned in memory"
	case finding.SharedMemory:
		return size + " more of shared memory are mapped"
	case finding.MemoryFiles:
		return fmt.Sprintf("%s more live in files without a name that are held open (memfd, or removed from /dev/shm)", size)
	case finding.FileMapping:
		return size + " more of mapped files are resident, which the kernel takes back when memory is short"
	case finding.PageCache:
		return fmt.Sprintf("the cgroup grew by %s of page cache, by files that were read and written; the process did not grow", size)
	case finding.CopyOnWrite:
		return fmt.Sprintf("process %d has %s for itself that it had in common with the one that forked it", p.Process, size)
	case finding.ThreadStacks:
		return fmt.Sprintf("%s of address space for the stacks of %s more", size, units.Plural(int64(p.Count), "thread"))
	case finding.KernelMemory:
		if p.Count > 0 {
			return fmt.Sprintf("the kernel holds %s more for the cgroup, and the process has %d more sockets and pipes", size, p.Count)
		}
		return "the page tables of the process grew by " + size
	}
	return size + " grew"
}

func classRemedies(kind finding.Kind) []finding.Remedy {
	switch kind {
	case finding.ArenaRetention:
		return []finding.Remedy{
			finding.SettingChange("MALLOC_ARENA_MAX=2", "have fewer arenas, so that what one thread frees another uses"),
			finding.SettingChange("MALLOC_TRIM_THRESHOLD_=131072", "give the end of the heap back from this size on"),
			finding.CodeChange("call malloc_trim(0) after a burst, off the event loop; or preload jemalloc"),
		}
	case finding.AllocatorRetention:
		return []finding.Remedy{
			finding.SettingChange("MALLOC_CONF=background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:5000", "for jemalloc: give freed memory back after five seconds"),
			finding.CodeChange("ask the allocator itself what is in use: malloc_stats_print of jemalloc, MallocExtension of tcmalloc"),
		}
	case finding.HugePages:
		return []finding.Remedy{
			finding.CodeChange("do not ask for huge pages (MADV_HUGEPAGE) for memory that is touched here and there; prctl(PR_SET_THP_DISABLE) switches them off for the process"),
			finding.CodeChange("where /sys/kernel/mm/transparent_hugepage/enabled is `always`, set it to `madvise`"),
		}
	case finding.Pinned:
		return []finding.Remedy{finding.CodeChange("bound what is pinned: pinned host tensors go to a cache when they are deleted, which rounds up to powers of two; reuse buffers, and use fewer that pin (pin_memory workers, prefetch)")}
	case finding.SharedMemory:
		return []finding.Remedy{finding.CodeChange("drop batches in the consumer, use fewer workers or less prefetch, and unlink what is left in /dev/shm")}
	case finding.MemoryFiles:
		return []finding.Remedy{finding.CodeChange("close the files: as long as one is open its memory stays, mapped or not")}
	case finding.PageCache, finding.FileMapping:
		return []finding.Remedy{finding.CodeChange("nothing is lost; if the cgroup's limit is near, read with posix_fadvise(POSIX_FADV_DONTNEED) or set memory.high")}
	case finding.CopyOnWrite:
		return []finding.Remedy{finding.CodeChange("hold the data that workers share in arrays (numpy, torch, Arrow) instead of objects of Python, whose counts of references are written to; call gc.freeze() before the fork")}
	case finding.KernelMemory:
		return []finding.Remedy{finding.CodeChange("close the sockets, pipes and files that pile up (ls -l /proc/PID/fd), and map less, in fewer pieces")}
	}
	return nil
}
