package detect

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"strandline/bpf"
	"strandline/finding"
	"strandline/footprint"
	"strandline/hostleak"
	"strandline/recording"
	"strandline/stack"
	"strandline/trend"
	"strandline/units"
)

// The least of it that is worth a finding: bytes, and the share of the process's
// growth.
const (
	hostWorth = 1 << 20
	hostShare = 0.05
	// unexplained is the explained share below which a finding says so.
	unexplained = 0.8
	// fewMarks are too few to say so: a program that starts reads its files.
	fewMarks = 4
)

// Host judges what a trace of a process found, together with looks at it from
// outside, if there were any. Known are the libraries in it that hook memory
// functions.
func Host(s *hostleak.Sums, looks *footprint.Growth, known []hostleak.Known) []finding.Finding {
	h := host{s, looks}
	groups := map[string][]*hostleak.Use{}
	var order []string
	for i := range s.Uses {
		u := &s.Uses[i]
		kind := h.classOf(u)
		key := string(kind)
		if kind == finding.MmapLeak || kind == finding.Remap {
			key += fmt.Sprint(i) // each place by itself
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], u)
	}
	var out []finding.Finding
	for _, key := range order {
		if f, ok := h.growing(groups[key], known); ok {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b finding.Finding) int {
		if a.Severity != b.Severity {
			return int(b.Confidence*1000) - int(a.Confidence*1000)
		}
		return int(*b.Bytes>>10) - int(*a.Bytes>>10)
	})
	unmade := h.unmade(out)
	if f, ok := notExplained(s); ok && (looks == nil || looks.Explained() < unexplained || len(unmade) == 0) {
		unmade = append(unmade, f)
	}
	return append(out, unmade...)
}

var (
	mallocs   = regexp.MustCompile(`^(__libc_)?(malloc|calloc|realloc|memalign|aligned_alloc|posix_memalign|valloc|pvalloc|reallocarray)$|^operator new|^_int_(malloc|memalign|realloc)$|^sysmalloc`)
	python    = regexp.MustCompile(`^(lib)?python3(\.\d+)?t?($|\.|d)`)
	arenas    = regexp.MustCompile(`^_?PyObject_(Arena|Malloc|Realloc|Calloc)|^_PyMem_ArenaAlloc|^new_arena|^pymalloc_alloc`)
	threads   = regexp.MustCompile(`^(__)?pthread_create|^allocate_stack`)
	allocator = regexp.MustCompile(`(jemalloc|tcmalloc|mimalloc|rpmalloc)[^/]*$`)
	library   = regexp.MustCompile(`^(libc[.-]|libpthread|ld-linux|libstdc\+\+|libgcc_s|libm[.-])`)
)

// pythonArena are the sizes in which Python maps memory for its objects.
func pythonArena(size int64) bool { return size == 1<<20 || size == 256<<10 }

// classOf is what kind of growth the calls with a stack are.
func classOf(u *hostleak.Use) finding.Kind {
	switch {
	case u.Op == bpf.Remap:
		return finding.Remap
	case u.Kind == hostleak.FileBacked:
		return finding.FileMapping
	case u.Kind == hostleak.Shared:
		return finding.SharedMemory
	}
	calls := 0
	for _, f := range u.Frames {
		object := filepath.Base(f.Object)
		switch {
		case threads.MatchString(f.Function):
			return finding.ThreadStacks
		case allocator.MatchString(object):
			return finding.AllocatorRetention
		case arenas.MatchString(f.Function), calls < 4 && python.MatchString(object) && pythonArena(u.Size) && u.Op == bpf.Map && onlyLibrary(u.Frames):
			return finding.PythonObjects
		case mallocs.MatchString(f.Function):
			return finding.HeapLeak
		}
		calls++
	}
	if u.Kind == hostleak.Heap || u.Op == bpf.Protect {
		return finding.HeapLeak
	}
	return finding.MmapLeak
}

// onlyLibrary tells whether the interpreter itself called mmap: between it and
// the call stands the C library at most.
func onlyLibrary(frames []hostleak.Frame) bool {
	for _, f := range frames {
		if object := filepath.Base(f.Object); !library.MatchString(object) {
			return python.MatchString(object)
		}
	}
	return false
}

// growing judges the uses of one class, or of one place.
func (h host) growing(uses []*hostleak.Use, known []hostleak.Known) (f finding.Finding, ok bool) {
	s, kind := h.sums, h.classOf(uses[0])
	all := trend.NewPopulation(len(s.Marks))
	var live, count, resident int64
	for _, u := range uses {
		all.Merge(u.Population)
		live += u.Live
		count += u.Count
		resident += max(u.Resident, 0)
	}
	if resident < hostWorth || float64(resident) < hostShare*float64(max(s.Growth, 0)) {
		return f, false
	}
	v := trend.Judge(all, trend.Past{})
	confidence := v.Confidence
	if kind == finding.Remap {
		confidence = rising(all.Bytes)
		v.Class = trend.Leak
	}
	if sure := h.steady(kind); sure > 0 {
		confidence, v.Class = max(confidence, sure), trend.Leak
	}
	if v.Class != trend.Leak || confidence < 0.2 {
		return f, false
	}
	top := uses[0]
	f = finding.Finding{
		Kind: kind, Severity: finding.Warning, Confidence: confidence, Basis: v.Basis(),
		Bytes: finding.Int(live), Count: finding.Int(count), Trend: all.Bytes,
		Stack: hostFrames(top.Frames), Site: HostSite(top.Frames),
		Evidence: map[string]any{
			"resident_bytes": resident, "rss_growth_bytes": s.Growth, "largest_bytes": top.Size, "calls": top.Calls,
			"stack_complete": top.Complete, "assumed_bytes": top.Assumed, "stacks": stackIDs(uses),
		},
	}
	switch {
	case kind == finding.FileMapping:
		f.Severity = finding.Info // the kernel takes it back when memory is short
	case confidence >= 0.5:
		f.Severity = finding.Problem
	}
	f.Title = hostTitle(s, kind, uses, live, count, resident)
	f.Detail = hostDetail(kind, top)
	for _, k := range known {
		if leaksHere(k, top) {
			f.Detail = append([]string{k.Leaks}, f.Detail...)
		}
	}
	f.Remedies = hostRemedies(kind, top, known)
	for _, u := range uses {
		if site := HostSite(u.Frames); site != nil && len(uses) > 1 {
			f.Sites = append(f.Sites, finding.Place{Site: *site, Bytes: u.Live, Count: u.Count})
		}
	}
	return f, true
}

// rising is how sure a curve goes up: by the share of its steps that do.
func rising(bytes []int64) float64 {
	up, n := 0, len(bytes)-1
	for i := 1; i <= n; i++ {
		if bytes[i] > bytes[i-1] {
			up++
		}
	}
	if n < 3 || bytes[n] <= bytes[n/2] {
		return 0
	}
	return float64(up) / float64(n)
}

func hostTitle(s *hostleak.Sums, kind finding.Kind, uses []*hostleak.Use, live, count, resident int64) string {
	title := "memory grew by " + units.Bytes(resident)
	if s.Growth >= resident/2 && s.Growth > 0 {
		title = fmt.Sprintf("resident memory grew by %s; %s of it is ", units.Bytes(s.Growth), units.Percent(min(float64(resident)/float64(s.Growth), 1)))
	} else {
		title += ": "
	}
	top := uses[0]
	switch kind {
	case finding.HeapLeak:
		title += "the heap of malloc, which takes more and gives nothing back"
	case finding.PythonObjects:
		title += fmt.Sprintf("%s of Python's objects that stay", plural(count, "arena"))
	case finding.AllocatorRetention:
		title += "taken by another allocator than the C library's"
	case finding.Remap:
		title += fmt.Sprintf("one mapping that mremap made larger time and again, to %s", units.Bytes(top.Size))
	case finding.ThreadStacks:
		title += fmt.Sprintf("the stacks of %s", plural(count, "thread"))
	case finding.SharedMemory:
		title += "shared memory that stays mapped"
	case finding.FileMapping:
		title += "files that stay mapped"
	case finding.ArenaRetention:
		title += "kept by malloc after the program freed it"
	case finding.HugePages:
		title += "huge pages of which a part is used"
	case finding.Pinned:
		title += "memory that is locked or pinned"
	case finding.MemoryFiles:
		title += "files without a name that live in memory"
	default:
		title += plural(count, "mapping")
		if average := live / max(count, 1); count > 1 && top.Size-average < average/20 {
			title += " of " + units.Bytes(average)
		}
		title += " that nobody unmapped"
	}
	if where := through(top.Frames); where != "" {
		title += "; made here: " + where
	}
	return title
}

// through are the functions that lead to a call: of the native ones those that
// have a name and are not the C library's, and the lines of Python.
func through(frames []hostleak.Frame) string {
	const mostNative, mostPython = 6, 2
	var native, lines []string
	for _, f := range frames {
		switch {
		case f.Object == "" && f.File != "":
			if stack.OriginOf(f.Frame) == stack.Own && len(lines) < mostPython {
				lines = append(lines, fmt.Sprintf("%s %s:%d", f.Function, filepath.Base(f.File), f.Line))
			}
		case len(lines) > 0 || len(native) == mostNative || strings.Contains(f.Function, "+0x") || outermost[f.Function] ||
			library.MatchString(filepath.Base(f.Object)) && !mallocs.MatchString(f.Function):
		case len(native) == 0 || native[len(native)-1] != f.Function:
			native = append(native, f.Function)
		}
	}
	return strings.Join(append(native, lines...), " ← ")
}

// outermost are the functions in which every stack ends.
var outermost = map[string]bool{"_start": true, "Py_RunMain": true, "Py_BytesMain": true, "Py_Main": true}

func hostDetail(kind finding.Kind, u *hostleak.Use) (out []string) {
	if !u.Complete && len(u.Frames) > 0 {
		out = append(out, "the stack is not complete: its outermost frames are missing")
	}
	if u.Assumed > u.Live/2 {
		out = append(out, fmt.Sprintf("the stack was copied of some of these calls; %s are of others from the same instruction and of the same size", units.Bytes(u.Assumed)))
	}
	if kind == finding.HeapLeak {
		out = append(out, "these are the calls that made the heap larger; who else holds what lies in it is not seen")
	}
	return out
}

func hostRemedies(kind finding.Kind, u *hostleak.Use, known []hostleak.Known) (out []finding.Remedy) {
	for _, k := range known {
		if !leaksHere(k, u) {
			continue
		}
		for _, text := range k.Remedies {
			r := finding.Remedy{Kind: "setting", Text: text}
			if m := setting.FindString(text); m != "" {
				r.Setting = m
			}
			out = append(out, r)
		}
	}
	switch kind {
	case finding.HeapLeak:
		out = append(out, finding.CodeChange("free what is allocated here; a heap profiler (heaptrack, memray --native, jemalloc's prof) names each allocation"))
	case finding.PythonObjects:
		out = append(out, finding.CodeChange("drop the references: tracemalloc or memray names what holds the objects; look for lists and dicts that only grow"))
	case finding.Remap:
		out = append(out, finding.CodeChange("bound the buffer or list that is made larger here"))
	case finding.ThreadStacks:
		out = append(out, finding.CodeChange("bound the pools of threads (OMP_NUM_THREADS, TOKENIZERS_PARALLELISM, executors), and join threads that are done"))
	case finding.MmapLeak:
		if len(out) == 0 {
			out = append(out, finding.CodeChange("unmap what is mapped here, or reuse it; heap profilers do not see it, as no malloc is called"))
		}
	default:
		out = append(out, classRemedies(kind)...)
	}
	return out
}

// leaksHere tells whether a stack is that of a library that is known to leak, as
// it keeps something for what is unmapped. Its hooks alone say nothing: they
// stand in every stack of the process.
func leaksHere(k hostleak.Known, u *hostleak.Use) bool {
	return k.Leaks != "" && classOf(u) == finding.MmapLeak && slices.ContainsFunc(u.Frames, func(f hostleak.Frame) bool {
		return sameFamily(f.Object, k.Object) && keepsUnmapped.MatchString(f.Function)
	})
}

var keepsUnmapped = regexp.MustCompile(`munmap|_unmapped_`)

var setting = regexp.MustCompile(`\b[A-Z][A-Z0-9_]+=[^\s,;]+`)

// sameFamily tells libraries that are parts of one: libucm, libucs, libucp.
func sameFamily(a, b string) bool {
	a, b = filepath.Base(a), filepath.Base(b)
	return a != "." && (a == b || len(a) > 5 && len(b) > 5 && a[:5] == b[:5])
}

// notExplained says of what class growth is that no call explains.
func notExplained(s *hostleak.Sums) (f finding.Finding, ok bool) {
	if s.Explained == nil || *s.Explained >= unexplained || s.Growth < 4*hostWorth || len(s.Marks) < fewMarks {
		return f, false
	}
	var kinds []string
	for _, k := range []struct {
		name  string
		bytes int64
	}{{"private memory", s.Anon}, {"pages of files", s.File}, {"shared memory", s.Shared}} {
		if k.bytes >= hostWorth {
			kinds = append(kinds, units.Bytes(k.bytes)+" of "+k.name)
		}
	}
	f = finding.Finding{
		Kind: finding.Unexplained, Severity: finding.Warning, Confidence: 1 - *s.Explained,
		Title: fmt.Sprintf("resident memory grew by %s, of which the calls that were seen explain %s", units.Bytes(s.Growth), units.Percent(*s.Explained)),
		Bytes: finding.Int(int64(float64(s.Growth) * (1 - *s.Explained))),
		Evidence: map[string]any{
			"rss_growth_bytes": s.Growth, "older_bytes": s.Older, "unnamed_bytes": s.Unnamed,
			"anonymous_bytes": s.Anon, "file_bytes": s.File, "shared_bytes": s.Shared,
		},
	}
	if len(kinds) > 0 {
		f.Detail = append(f.Detail, "the growth is "+strings.Join(kinds, ", "))
	}
	if s.Older > s.Growth/5 {
		f.Detail = append(f.Detail, units.Bytes(s.Older)+" came into memory in mappings that were there before: a heap with room in it, or a mapping that is filled")
	}
	if s.Unnamed > s.Growth/5 {
		f.Detail = append(f.Detail, units.Bytes(s.Unnamed)+" were mapped by calls whose stack was not copied")
	}
	f.Remedies = []finding.Remedy{finding.CodeChange("trace for longer: what goes on growing is mapped while it is watched")}
	return f, true
}

// Recorded is the verdict on a recording, of which a document holds the findings.
func Recorded(run *recording.Run) Verdict {
	switch {
	case slices.ContainsFunc(run.Document.Findings, func(f finding.Finding) bool { return f.Severity == finding.Problem }):
		return Leaking
	case len(run.Marks) < fewRecorded:
		return Unknown
	}
	return OK
}

// fewRecorded are too few marks of a recording to judge growth.
const fewRecorded = 3

// stackIDs are the numbers of the stacks of uses, of which the first holds the
// most: its own, and those that grow by themselves. 0 is none.
func stackIDs(uses []*hostleak.Use) []int {
	out := []int{}
	for i, u := range uses {
		if u.ID > 0 && (i == 0 || trend.Judge(u.Population, trend.Past{}).Class == trend.Leak) {
			out = append(out, u.ID)
		}
	}
	return out
}

func hostFrames(frames []hostleak.Frame) []finding.Frame {
	out := make([]finding.Frame, len(frames))
	for i, f := range frames {
		out[i] = hostFrame(f)
	}
	return out
}

func hostFrame(f hostleak.Frame) finding.Frame {
	file := f.File
	if file == "" {
		file = f.Object
	}
	return finding.Frame{File: file, Line: f.Line, Function: f.Function}
}

// HostSite is the innermost line of Python that is the user's own, or else the
// innermost function that is none of the C library's.
func HostSite(frames []hostleak.Frame) *finding.Site {
	for _, f := range frames {
		if f.Line > 0 && stack.OriginOf(f.Frame) == stack.Own {
			site := hostFrame(f)
			return &site
		}
	}
	for _, f := range frames {
		if f.Function != "" && !library.MatchString(filepath.Base(f.Object)) {
			site := hostFrame(f)
			return &site
		}
	}
	return nil
}
