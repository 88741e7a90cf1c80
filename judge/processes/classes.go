package processes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/proc/footprint"
	"strandline/host/proc/procfs"
	"strandline/internal/sorts"
	"strandline/trend"
	"strandline/units"
)

// minClassBytes is the least growth of a class, in bytes, that is reported without a call
// that made it.
const minClassBytes = 4 << 20

// A host is what is known about a process's growth, from the calls that were traced and
// from looks at it from outside. Its looks are nil if there were none.
type host struct {
	sums  *ledger.Sums
	looks *footprint.Growth
	where map[*ledger.Use]map[finding.Kind]int64 // bytes of a use, by class of the memory
	// buffers are the uses that are one buffer which is being filled.
	buffers map[*ledger.Use]bool
}

// grew is how much a class grew, in bytes, as far as looks show it.
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

// steady is the confidence in a class that grew in each look; 0 for other classes.
func (h host) steady(kind finding.Kind) float64 {
	if h.looks == nil {
		return 0
	}
	for _, p := range h.looks.Parts {
		if p.Class == kind && p.Steady && p.Bytes >= minClassBytes {
			return p.Confidence
		}
	}
	return 0
}

// outgrew reports whether a class grew from look to look by more than twice what the calls
// of the trace made of it: an allocator that took a large mapping at once fills it
// later. The class is then judged by the looks.
func (h host) outgrew(g *hostGrowth) bool {
	came := g.resident + h.buffered()
	if g.from > 0 && g.from < len(h.sums.GrownAnon) { // looks may be too few to tell a warm-up apart
		came += max(0, min(g.early, h.sums.GrownAnon[g.from]))
	}
	return g.pooled() && h.steady(g.kind) > 0 && h.grew(g.kind) > 2*came
}

// kindOf is the kind of growth that the calls with a stack made. A stack shows who asked
// for memory; looks show what is in it: that most of it is free again, or belongs to
// Python, or is a huge page of which only a part is used.
func (h host) kindOf(u *ledger.Use) finding.Kind {
	kind := kindOfCall(u)
	if h.looks == nil {
		return kind
	}
	rather := kindOf(kind).rather
	if found, ok := h.dominantClass(u); ok && kind == finding.MmapLeak {
		if slices.Contains(rather, found) {
			return found
		}
		return kind
	}
	for _, other := range rather {
		if n := h.grew(other); n > 0 && 10*n >= 7*(n+h.grew(kind)) && 2*n >= residentOf(u) {
			return other
		}
	}
	return kind
}

// dominantClass is the class of the mappings that contain most of a use, if looks cover most of
// it.
func (h host) dominantClass(u *ledger.Use) (most finding.Kind, ok bool) {
	var all int64
	for class, n := range h.where[u] {
		if all += n; n > h.where[u][most] {
			most = class
		}
	}
	return most, 2*all >= residentOf(u) && 10*h.where[u][most] >= 7*all
}

// locate finds which classes of memory each use lies in, by bytes.
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
		if p.PID != h.subject() {
			continue
		}
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

// unattributed returns findings of classes that grew without a call being found for them, and
// the bytes of growth that no finding then covers.
func (h host) unattributed(found []finding.Finding) (out []finding.Finding, rest int64) {
	if h.looks == nil {
		return nil, 0
	}
	reported := map[finding.Kind]bool{finding.Unexplained: true}
	rest = h.looks.RSS
	for _, f := range found {
		reported[f.Kind] = true
		reported[finding.SharedMemory] = reported[finding.SharedMemory] || f.Kind == finding.Pinned // by calls, as which looks see it
		reported[finding.HeapLeak] = reported[finding.HeapLeak] || f.Kind == finding.AutogradGraph
		if e, ok := f.Evidence.(*finding.CallGrowthEvidence); ok {
			if rest -= e.ResidentBytes; e.EarlyBytes != nil {
				rest -= *e.EarlyBytes
			}
			if f.Kind == finding.Regrown { // most of it may be older than the trace, and the look may have seen the old and the new
				rest -= 2*e.MappedBytes - e.ResidentBytes
			}
		}
	}
	// If calls explain the growth, the remainder comes from looks and calls not being
	// from the same instant.
	explained := float64(rest) <= (1-unexplained)*float64(h.looks.RSS)
	for _, p := range h.looks.Parts {
		share := hostShare
		if p.Settled {
			share = settledShare
		}
		within := float64(p.Bytes) >= share*float64(max(h.looks.RSS, 0))
		if reported[p.Class] || p.Bytes < minClassBytes || !p.Outside && (!within || explained) {
			continue
		}
		if !p.Outside {
			if p.Bytes = min(p.Bytes, rest); p.Bytes < minClassBytes {
				continue
			}
			rest -= p.Bytes + p.Early
		}
		reported[p.Class] = p.Class != finding.CopyOnWrite // one for each process
		out = append(out, h.class(p))
	}
	return out, rest
}

// kinds states which classes the growth is in, as far as looks show it.
func (h host) kinds() []string {
	if h.looks == nil {
		return nil
	}
	var kinds []string
	for _, p := range h.looks.Parts {
		if bytes := p.Bytes + p.Early; !p.Outside && p.Class != finding.Unexplained && bytes >= minClassBytes {
			kinds = append(kinds, fmt.Sprintf("%s %s", units.Bytes(bytes), p.Class))
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	return []string{"observed from outside, it is " + strings.Join(kinds, ", ")}
}

// class is the finding of a class that grew.
func (h host) class(p footprint.Part) finding.Finding {
	e := &finding.SampledGrowthEvidence{GrownBytes: p.Bytes, RSSGrowthBytes: h.looks.RSS, OutsideRSS: p.Outside}
	f := finding.Finding{
		Kind: p.Class, Severity: finding.Warning, Confidence: p.Confidence,
		Bytes: finding.Int(p.Bytes), Title: h.classTitle(p),
		Basis:    seenOutside + "the class grew from sample to sample",
		Evidence: e, Process: h.looked(p),
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
	case finding.SharedMemory:
		if h.touched(p) {
			f.Title = units.Bytes(p.Bytes) + " of shared memory from before the trace became resident"
			f.Remedies = []finding.Remedy{h.longer(), finding.CodeChange("a pool of buffers, such as a database's, stops growing when all of it is used")}
		}
	case finding.MmapLeak:
		switch u := h.turning(p.Bytes); {
		case u != nil:
			f.Severity, f.Remedies = finding.Info, nil
			madeBy(&f, u)
		case h.filled():
			f.Remedies = []finding.Remedy{finding.CodeChange("find who fills them: a mapping stops growing when it is full, and a large one takes long")}
			if !p.Settled { // full, or growing by further mappings: a longer trace shows it
				f.Remedies = append([]finding.Remedy{h.longer()}, f.Remedies...)
			}
			f.Detail = h.bound()
		}
	}
	if p.Until > 0 {
		e.SettledSeconds = p.Until.Seconds()
	}
	if p.Early > 0 {
		e.EarlyBytes = p.Early
		f.Detail = append(f.Detail, earlier(p.Early, p.Until))
	}
	f.Detail = append(f.Detail, h.java(f.Kind)...)
	if !p.Settled && !p.Earlier {
		pace, text := h.pace(p.Bytes, h.checkpointAt(p.Until))
		e.RatePerSecond, e.LimitBytes, e.SecondsToLimit = pace.rate, pace.limit, pace.seconds
		if text != "" {
			f.Detail = append(f.Detail, text)
		}
	}
	requests := h.requests(p.Class)
	if len(requests) > 0 && len(requests[0].Frames) > 0 {
		madeBy(&f, requests[0])
		e.HeapEnlarged = enlarges(requests[0])
	}
	h.weigh(&f, p, cmp.Or(h.loading(p.Class, nil, p.Bytes), h.touches(p)))
	f.Remedies = append(f.Remedies, primitiveCache(requests)...)
	return f
}

// seenOutside begins the basis of findings of classes.
const seenOutside = "the process was observed from outside, for the whole trace; "

// weigh judges how likely the growth of a class is a leak. Loading is a sentence that says
// why it may be work that begins, or empty.
func (h host) weigh(f *finding.Finding, p footprint.Part, loading string) {
	switch {
	case p.Class == finding.ArenaRetention && p.Settled && h.retained(p.Bytes):
		f.Title += "; it came in the first " + units.Duration(p.Until) + " of the trace, and is kept"
		f.Basis = seenOutside + "the class grew at first, and a third or more of the arenas is free"
	case p.Earlier:
		f.Title += "; it came before the trace"
		f.Basis = "the process's own copies of memory that its parent also has"
	case p.Settled:
		f.Severity, f.Remedies = finding.Info, nil
		f.Title += fmt.Sprintf("; all of it came in the first %s of the trace, and none since", units.Duration(p.Until))
		f.Basis = seenOutside + "the class grew at first, and then stopped"
	case p.Class == finding.PageCache || p.Class == finding.FileMapping:
		f.Severity = finding.Info
	case p.Class == finding.ArenaRetention && 2*h.looks.After.Free() < h.looks.After.System():
		f.Detail = append(f.Detail, "most of the arenas is in use. Some free memory in between is usual where blocks of many sizes come and go")
	case p.Class == finding.MmapLeak && h.filled(), h.touched(p): // a leak would show calls
	case !p.Outside && p.Confidence < problemDespiteRelease && h.fell(p.Bytes):
		f.Confidence /= 2
		f.Basis = seenOutside + "the processes gave back as much in between"
		f.Remedies = append([]finding.Remedy{h.longer()}, f.Remedies...)
	case p.Steady && p.Confidence >= 0.7 && loading == "":
		f.Severity = finding.Problem
	case loading != "":
		f.Detail = append(f.Detail, loading)
		f.Remedies = append([]finding.Remedy{h.longer()}, f.Remedies...)
	case !p.Steady:
		f.Confidence /= 2
		f.Basis = seenOutside + "the class did not grow each time"
		f.Remedies = append([]finding.Remedy{h.longer()}, f.Remedies...)
	}
}

// From how much a child has copied of what it shared with its parent on, in bytes and as a
// share of its own memory, it is more than a child touches by running: the counts of
// references to the modules and the functions that it uses, say.
const (
	minCopies   = 8 << 20
	copiesShare = 0.05
)

// touches says why what a child copied need not go on; it is empty for other classes, and
// where it is much.
func (h host) touches(p footprint.Part) string {
	if p.Class != finding.CopyOnWrite || p.Bytes >= minCopies {
		return ""
	}
	i := slices.IndexFunc(h.sums.Processes, func(c ledger.Process) bool { return c.PID == uint32(p.Process) })
	if i < 0 {
		return "the process has ended since"
	}
	if share := float64(p.Bytes) / float64(h.sums.Processes[i].RSS); share < copiesShare {
		return fmt.Sprintf("that is %s of the process's memory; a child copies the pages that it touches, once", units.Percent(share))
	}
	return ""
}

// checkpointAt returns the first checkpoint that is not before a given time of the trace.
func (h host) checkpointAt(at time.Duration) int {
	i, _ := slices.BinarySearch(h.sums.Checkpoints, uint64(at))
	return i
}

// madeBy names the place that made what a finding reports.
func madeBy(f *finding.Finding, u *ledger.Use) {
	f.Stack, f.Site = HostFrames(u.Frames), HostSite(u.Frames)
	f.Title = located(f.Title, u)
}

// starter names the place that started the most threads.
func (h host) starter(f *finding.Finding) {
	var top *ledger.Use
	for i := range h.sums.Uses {
		if u := &h.sums.Uses[i]; kindOfCall(u) == finding.ThreadStacks && (top == nil || u.Live > top.Live) {
			top = u
		}
	}
	if top != nil {
		madeBy(f, top)
	}
}

// requests are the uses of the heap of malloc, or of another allocator, most bytes first, if
// that is what a class is.
func (h host) requests(class finding.Kind) (uses []*ledger.Use) {
	heap := []finding.Kind{finding.HeapLeak, finding.ArenaRetention, finding.AllocatorRetention}
	if !slices.Contains(heap, class) {
		return nil
	}
	for i := range h.sums.Uses {
		if u := &h.sums.Uses[i]; slices.Contains(heap, kindOfCall(u)) {
			uses = append(uses, u)
		}
	}
	sorts.StableBy(uses, func(a, b *ledger.Use) int { return cmp.Compare(residentOf(b), residentOf(a)) })
	return uses
}

// From how much freed memory that malloc keeps and that no longer grows a finding is
// made: bytes, and the number of arenas it is in, as programs with threads have them.
const (
	minRetained        = 16 << 20
	minRetainingArenas = 4
)

// retained reports whether malloc keeps more memory, in more arenas, than is usual, and
// at least a third of what it took is free: threads that take turns leave about half of
// their arenas free at any moment.
func (h host) retained(bytes int64) bool {
	if h.looks == nil || h.looks.After == nil || bytes < minRetained {
		return false
	}
	o := h.looks.After
	return len(o.Arenas) >= minRetainingArenas && 3*o.Free() >= o.System()
}

// filled reports whether mappings grew without calls that make them, given that such
// calls were watched.
func (h host) filled() bool { return !h.sums.Blind }

// touched reports whether shared memory became resident that no call of the trace mapped: a
// process has used more of what it had, which can be in memory already for others.
func (h host) touched(p footprint.Part) bool {
	if p.Class != finding.SharedMemory || p.Settled || h.sums.Blind {
		return false
	}
	var mapped int64
	for i := range h.sums.Uses {
		if u := &h.sums.Uses[i]; u.Kind == ledger.Shared || u.Kind == ledger.FileBacked {
			mapped += residentOf(u)
		}
	}
	return 2*mapped < p.Bytes
}

// turning is the largest of the places that unmap what they map and later map again, if
// what these places hold contains most of the given growth of mappings; otherwise nil.
func (h host) turning(growth int64) (top *ledger.Use) {
	var held int64
	for i := range h.sums.Uses {
		u := &h.sums.Uses[i]
		if h.kindOf(u) != finding.MmapLeak || trend.Judge(u.Population, trend.Past{}).Class != trend.Turnover {
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

// makers names the places that made the in-memory files that are held now but were not at
// first, most bytes first.
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
	made := sorts.Collect(maps.Values(places), func(a, b *place) int { return cmp.Compare(b.bytes, a.bytes) })
	if len(made) == 0 {
		return
	}
	madeBy(f, &ledger.Use{Stack: made[0].stack})
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
		return fmt.Sprintf("malloc keeps %s more that the program has freed: %s of %s in %s is free", size,
			units.Bytes(int64(free)), units.Bytes(int64(system)), units.Plural(int64(len(h.looks.After.Arenas)), "arena"))
	case finding.HeapLeak:
		return size + " more of malloc's blocks is in use"
	case finding.PythonObjects:
		return size + " more is in use by Python objects"
	case finding.AllocatorRetention:
		return fmt.Sprintf("%s more is held by %s; how much of it is free cannot be seen from outside", size, h.looks.After.Allocator)
	case finding.HugePages:
		return size + " of zeros is resident in partly used huge pages"
	case finding.Remap:
		return size + " was added to mappings that are enlarged repeatedly"
	case finding.MmapLeak:
		if h.turning(p.Bytes) != nil {
			return size + " is held where memory is mapped and unmapped repeatedly: a working set"
		}
		if h.filled() {
			return size + " became resident in mappings that are being filled; hardly any are new"
		}
		return size + " was mapped and not unmapped"
	case finding.Pinned:
		return size + " more is locked or pinned in memory"
	case finding.SharedMemory:
		return size + " more shared memory is mapped"
	case finding.MemoryFiles:
		return fmt.Sprintf("%s more is in unnamed files that are held open (memfd, or removed from /dev/shm)", size)
	case finding.FileMapping:
		return size + " more of mapped files is resident, which the kernel reclaims when memory is short"
	case finding.PageCache:
		return fmt.Sprintf("the cgroup's page cache grew by %s, by files that were read and written; the process did not grow", size)
	case finding.CopyOnWrite:
		return fmt.Sprintf("process %d now has its own copy of %s that it had shared with the process that forked it", p.Process, size)
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
