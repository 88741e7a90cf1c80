package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/trend"
	"strandline/units"
)

// minGrowth is the growth, in bytes, below which a kind of host memory is not
// mentioned, and minShare the same as a share of what there was at first.
const (
	minGrowth = 1 << 20
	minShare  = 0.01
)

// A class is one kind of memory of the host, named as `strandline trace` names it.
type class struct {
	kind     finding.Kind
	what     string
	of       func(h *profiles.Host) *int64
	severity finding.Severity // at most
	remedy   string
}

// trace is what to do about memory that a text does not break down further.
const trace = "`strandline trace --pid PID` of the running process names the call that takes it, with its Python line"

// addressed are findings whose commands have the process ID that all texts state.
func addressed(all []finding.Finding, hosts []*profiles.Host) []finding.Finding {
	if len(hosts) == 0 {
		return all
	}
	pid := hosts[0].PID
	if pid == 0 || slices.ContainsFunc(hosts, func(h *profiles.Host) bool { return h.PID != pid }) {
		return all
	}
	for i := range all {
		for k := range all[i].Remedies {
			r := &all[i].Remedies[k]
			r.Text = strings.ReplaceAll(r.Text, "PID", strconv.Itoa(pid))
		}
	}
	return all
}

// saveSmaps and findProcess are what to do about a total.
const (
	saveSmaps   = "save /proc/PID/smaps instead: it separates anonymous, file and shared memory"
	findProcess = "find the process: `ps aux --sort=-rss`, and then " + trace
)

// classesOf are the classes that a series is judged by. The class of anonymous memory
// outside the heap depends on what else the texts state.
func classesOf(files []*profiles.File, hosts []*profiles.Host) []class {
	anonymous, ok := growing(files, hosts)
	if !ok {
		anonymous = private(hosts[0], hosts[len(hosts)-1])
	}
	return []class{
		{finding.HeapLeak, "the heap of malloc", func(h *profiles.Host) *int64 { return h.Heap }, finding.Problem,
			"`strandline trace --pid PID` of the running process names the calls that grow the heap, by Python line, and its free part"},
		anonymous,
		{finding.MemoryFiles, "files in memory (memfd)", func(h *profiles.Host) *int64 { return h.Memfd }, finding.Problem,
			"close the descriptors and mappings of memfd_create that are no longer used; `strandline trace --pid PID` names the call that makes them"},
		{finding.SharedMemory, "shared memory (tmpfs, /dev/shm)", otherShared, finding.Problem,
			"look for files in /dev/shm that are never removed: DataLoader workers and Ray's object store put theirs there"},
		{finding.KernelMemory, "memory that the kernel holds", func(h *profiles.Host) *int64 { return h.Kernel }, finding.Warning,
			"look at slabtop, and at the process's descriptors, sockets and mappings"},
		stacks(hosts[0], hosts[len(hosts)-1]),
		{finding.PageCache, "the page cache", func(h *profiles.Host) *int64 { return h.Cache }, finding.Info, ""},
		{finding.FileMapping, "pages of files", mappedFiles, finding.Info, ""},
	}
}

// outsideHeap is anonymous memory without malloc's heap and stacks, as far as they are
// known.
func outsideHeap(h *profiles.Host) *int64 {
	if h.Anonymous == nil {
		return nil
	}
	rest := *h.Anonymous
	for _, part := range []*int64{h.Heap, h.Stacks} {
		if part != nil {
			rest = max(rest-*part, 0)
		}
	}
	return &rest
}

// otherShared is shared memory without memfd.
func otherShared(h *profiles.Host) *int64 {
	if h.Shared == nil || h.Memfd == nil {
		return h.Shared
	}
	rest := max(*h.Shared-*h.Memfd, 0)
	return &rest
}

// mappedFiles is the file pages of a process; those of a cgroup are in its cache.
func mappedFiles(h *profiles.Host) *int64 {
	if h.Cache != nil {
		return nil
	}
	return h.File
}

// growth is how much a size that both texts state grew, 0 if one does not state it.
func growth(first, last *int64) int64 {
	if first == nil || last == nil {
		return 0
	}
	return *last - *first
}

// minThreads is more threads than a pool that starts while the texts are taken has.
const minThreads = 16

// stacks is the class of thread stacks: their address space if there are many more
// threads and far more address space than memory, otherwise their resident memory.
func stacks(first, last *profiles.Host) class {
	c := class{finding.ThreadStacks, "the stacks of threads", func(h *profiles.Host) *int64 { return h.Stacks }, finding.Warning, "limit the thread pools, and join threads that are done"}
	n, space := growth(first.Threads, last.Threads), growth(first.Writable, last.Writable)
	if n >= minThreads && space >= 4*max(growth(first.RSS, last.RSS), 4<<20) {
		c.what, c.severity = fmt.Sprintf("the address space, with the stacks of %s more,", units.Plural(n, "thread")), finding.Problem
		c.of = func(h *profiles.Host) *int64 { return h.Writable }
	}
	return c
}

// private is the class of anonymous memory outside the heap: locked memory, or that of
// another malloc, if the texts show that, otherwise mappings; unexplained if the texts do
// not separate the heap.
func private(first, last *profiles.Host) class {
	c := class{finding.MmapLeak, "anonymous memory outside the heap", outsideHeap, finding.Problem, trace}
	more := growth(outsideHeap(first), outsideHeap(last))
	switch {
	case more > 0 && 2*growth(first.Pinned, last.Pinned) >= more:
		c.kind, c.what = finding.Pinned, "memory that is locked (mlock, pinned for a device)"
	case last.Allocator != "":
		c.kind, c.what = finding.AllocatorRetention, "anonymous memory, most of it from the allocator "+last.Allocator+","
	case last.Heap == nil:
		c.kind, c.what = finding.Unexplained, "anonymous memory (malloc's heap or other mappings)"
		c.remedy += "; /proc/PID/smaps separates the heap from mappings"
	}
	return c
}

// hostsOf are what the files of a series state about the host, oldest first.
func hostsOf(files []*profiles.File) (out []*profiles.Host) {
	for _, f := range files {
		for i := range f.Earlier {
			out = append(out, &f.Earlier[i])
		}
		if f.Host != nil {
			out = append(out, f.Host)
		}
	}
	return out
}

// judgeGrowth judges each kind of memory in a series, and the rest of the growth of resident
// memory if the texts do not break it down.
func judgeGrowth(files []*profiles.File, hosts []*profiles.Host) (out []finding.Finding) {
	if len(hosts) < minMoments {
		return nil
	}
	first, last := hosts[0], hosts[len(hosts)-1]
	rest := growth(first.RSS, last.RSS)
	tables := rest / 64 // page tables come with the memory
	for _, c := range classesOf(files, hosts) {
		if f, ok := c.judge(hosts); ok && (c.kind != finding.KernelMemory || *f.Bytes > tables) {
			f.Detail = append(f.Detail, unsaid(c.kind, first, last, *f.Bytes)...)
			out = append(out, f)
			rest -= *f.Bytes
		}
	}
	for _, c := range []class{
		copyOnWrite(parted(first, last)),
		{finding.Unexplained, "resident memory", undivided(rest, first, last), finding.Warning, saveSmaps},
		{finding.Unexplained, "memory in use on the machine", inUse, finding.Warning, findProcess},
	} {
		if f, ok := c.judge(hosts); ok {
			out = append(out, f)
		}
	}
	sorts.StableBy(out, func(a, b finding.Finding) int { return cmp.Compare(*b.Bytes, *a.Bytes) })
	return out
}

// unsaid is what the texts cannot show about growth of a kind.
func unsaid(kind finding.Kind, first, last *profiles.Host, bytes int64) (out []string) {
	switch kind {
	case finding.HeapLeak:
		out = append(out, "malloc's free memory is part of it: these texts do not show how much")
	case finding.MmapLeak:
		out = append(out, "it may be Python's objects, large blocks of malloc or mappings of a library: these texts do not show which")
	case finding.AllocatorRetention:
		out = append(out, "these texts do not tell memory in use from the allocator's cache")
	default:
		return nil
	}
	if huge := growth(first.HugePages, last.HugePages); 4*huge >= 3*bytes {
		out = append(out, fmt.Sprintf("%s of it are in huge pages, of which a program may use only a part", units.Bytes(huge)))
	}
	return out
}

// copyOnWrite is the class of pages that were shared with another process.
func copyOnWrite(of func(*profiles.Host) *int64) class {
	return class{finding.CopyOnWrite, "memory that was shared with another process and is written to", of, finding.Warning,
		"a fork copies each page that it writes to, and reference counts write. Share memory outside Python's objects, or call gc.freeze() before the fork"}
}

// parted are the pages that only this process has, if the pages that it shares with
// others decreased by about as much and its size did not change as much.
func parted(first, last *profiles.Host) func(*profiles.Host) *int64 {
	private, shared := growth(first.PrivateDirty, last.PrivateDirty), growth(last.SharedDirty, first.SharedDirty)
	if private < minGrowth || shared < private/2 || growth(first.RSS, last.RSS) >= private/2 {
		return unknown
	}
	return func(h *profiles.Host) *int64 { return h.PrivateDirty }
}

// undivided is resident memory, if most of its growth has no class.
func undivided(rest int64, first, last *profiles.Host) func(*profiles.Host) *int64 {
	if 2*rest < growth(first.RSS, last.RSS) || first.Heap != nil {
		return unknown
	}
	return func(h *profiles.Host) *int64 { return h.RSS }
}

// inUse is the memory of a machine that is not available, if nothing more is stated.
func inUse(h *profiles.Host) *int64 {
	if h.Anonymous != nil || h.Total == nil || h.Available == nil {
		return nil
	}
	n := max(*h.Total-*h.Available, 0)
	return &n
}

func unknown(*profiles.Host) *int64 { return nil }

// judge judges the levels of one kind. Levels have no identities: when memory shrinks,
// the oldest is assumed to go first.
func (c class) judge(hosts []*profiles.Host) (f finding.Finding, ok bool) {
	const page = 4096
	pages := make([]int64, len(hosts))
	for i, h := range hosts {
		n := c.of(h)
		if n == nil {
			return f, false
		}
		pages[i] = *n / page
	}
	n := len(pages) - 1
	more := (pages[n] - pages[0]) * page
	if more < minGrowth || float64(more) < minShare*float64(pages[0]*page) {
		return f, false
	}
	pop := trend.NewPopulation(len(pages))
	add(pop, pages, page)
	v := trend.Judge(pop, trend.Past{})
	if v.Class != trend.Leak {
		return f, false
	}
	rate := more / int64(n)
	f = finding.Finding{
		Kind: c.kind, Severity: c.severity, Confidence: v.Confidence, Basis: v.Basis(), Bytes: &more, BytesPerStep: &rate, Trend: pop.Bytes,
		Title:    fmt.Sprintf("%s grew by %s over %s, %s between one and the next", c.what, units.Bytes(more), units.Plural(int64(len(pages)), "text"), units.Bytes(rate)),
		Evidence: evidence(pop, v),
	}
	if f.Severity == finding.Problem && f.Confidence < problemConfidence {
		f.Severity = finding.Warning
	}
	if c.remedy != "" {
		f.Remedies = []finding.Remedy{finding.CodeChange(c.remedy)}
	} else {
		f.Detail = []string{"the kernel reclaims file pages when memory is short"}
	}
	return f, true
}

// resident is the total that a text states.
func resident(h *profiles.Host) int64 {
	switch {
	case h.RSS != nil:
		return *h.RSS
	case h.Anonymous != nil:
		return *h.Anonymous
	}
	return 0
}

// hostParts describes in words what a text states.
func hostParts(h *profiles.Host) (out []string) {
	for _, x := range []struct {
		n    *int64
		what string
	}{
		{h.RSS, "resident"}, {h.Anonymous, "anonymous"}, {h.File, "file"}, {h.Cache, "page cache"}, {h.Shared, "shared"}, {h.Kernel, "held by the kernel (slabs)"},
		{h.Total, "in total"}, {h.Available, "available"},
	} {
		if x.n != nil && (*x.n > 0 || x.n == h.RSS) {
			out = append(out, units.Bytes(*x.n)+" "+x.what)
		}
	}
	return out
}
