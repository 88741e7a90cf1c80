package profiles

import (
	"cmp"
	"fmt"
	"slices"

	"strandline/finding"
	"strandline/judge/trend"
	"strandline/profiles"
	"strandline/units"
)

// leastGrowth is the growth below which a kind of host memory is not mentioned, in
// bytes, and leastShare the share of what there was at first.
const (
	leastGrowth = 1 << 20
	leastShare  = 0.01
)

// A class is one kind of memory of the host, named as `strandline trace` names it.
type class struct {
	kind     finding.Kind
	what     string
	of       func(h *profiles.Host) *int64
	severity finding.Severity // at most
	remedy   string
}

var classes = []class{
	{finding.HeapLeak, "the heap of malloc", func(h *profiles.Host) *int64 { return h.Heap }, finding.Problem,
		"`strandline trace --pid PID` of the running process names the calls that make the heap larger, with the line of Python"},
	{finding.MmapLeak, "private memory outside the heap", outsideHeap, finding.Problem,
		"`strandline trace --pid PID` of the running process names the call that maps it, with the line of Python"},
	{finding.SharedMemory, "shared memory (tmpfs, /dev/shm)", func(h *profiles.Host) *int64 { return h.Shared }, finding.Problem,
		"look for files in /dev/shm that nobody removes: workers of a DataLoader and Ray's store put theirs there"},
	{finding.KernelMemory, "memory that the kernel holds", func(h *profiles.Host) *int64 { return h.Kernel }, finding.Warning,
		"slabtop and the process's descriptors, sockets and mappings say what it is for"},
	{finding.ThreadStacks, "the stacks of threads", func(h *profiles.Host) *int64 { return h.Stacks }, finding.Warning,
		"bound the pools of threads, and join threads that are done"},
	{finding.FileMapping, "pages of files", func(h *profiles.Host) *int64 { return h.File }, finding.Info, ""},
}

// outsideHeap is anonymous memory without malloc's heap, as far as that is known.
func outsideHeap(h *profiles.Host) *int64 {
	if h.Anonymous == nil || h.Heap == nil {
		return h.Anonymous
	}
	rest := max(*h.Anonymous-*h.Heap, 0)
	return &rest
}

// hostsOf are what the files of a series state of the host, oldest first.
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

// grown judges each kind of memory of a series; of total resident memory alone where
// the texts do not split it.
func grown(hosts []*profiles.Host) (out []finding.Finding) {
	if len(hosts) < enough {
		return nil
	}
	for _, c := range classes {
		if f, ok := c.judge(hosts); ok {
			out = append(out, f)
		}
	}
	if len(out) == 0 && hosts[0].Anonymous == nil {
		c := class{finding.Unexplained, "resident memory", func(h *profiles.Host) *int64 { return h.RSS }, finding.Warning,
			"save /proc/PID/smaps instead: it tells private memory, files and shared memory apart"}
		if f, ok := c.judge(hosts); ok {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b finding.Finding) int { return cmp.Compare(*b.Bytes, *a.Bytes) })
	return out
}

// judge judges the levels of one kind. Levels have no identities: of memory that
// becomes less the oldest is taken to go first.
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
	growth := (pages[n] - pages[0]) * page
	if growth < leastGrowth || float64(growth) < leastShare*float64(pages[0]*page) {
		return f, false
	}
	pop := trend.NewPopulation(len(pages))
	add(pop, pages, page)
	v := trend.Judge(pop, trend.Past{})
	if v.Class != trend.Leak {
		return f, false
	}
	rate := growth / int64(n)
	f = finding.Finding{
		Kind: c.kind, Severity: c.severity, Confidence: v.Confidence, Basis: v.Basis(), Bytes: &growth, BytesPerStep: &rate, Trend: pop.Bytes,
		Title:    fmt.Sprintf("%s grew by %s over %s, %s from one to the next", c.what, units.Bytes(growth), units.Plural(int64(len(pages)), "text"), units.Bytes(rate)),
		Evidence: evidence(pop, v),
	}
	if f.Severity == finding.Problem && f.Confidence < surely {
		f.Severity = finding.Warning
	}
	if c.remedy != "" {
		f.Remedies = []finding.Remedy{finding.CodeChange(c.remedy)}
	} else {
		f.Detail = []string{"the kernel takes pages of files back when memory is short"}
	}
	return f, true
}

// resident is what a text states in all.
func resident(h *profiles.Host) int64 {
	switch {
	case h.RSS != nil:
		return *h.RSS
	case h.Anonymous != nil:
		return *h.Anonymous
	}
	return 0
}

// hostParts says in words what a text states.
func hostParts(h *profiles.Host) (out []string) {
	for _, x := range []struct {
		n    *int64
		what string
	}{
		{h.RSS, "resident"}, {h.Anonymous, "private, no file"}, {h.File, "pages of files"}, {h.Shared, "shared memory"},
		{h.Total, "in all"}, {h.Available, "available"},
	} {
		if x.n != nil {
			out = append(out, units.Bytes(*x.n)+" "+x.what)
		}
	}
	return out
}
