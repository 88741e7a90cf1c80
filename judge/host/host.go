package host

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"strandline/finding"
	"strandline/host/event"
	"strandline/host/footprint"
	"strandline/host/hooks"
	"strandline/host/ledger"
	"strandline/host/recording"
	"strandline/host/symbolize"
	"strandline/stack"
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
func Host(s *ledger.Sums, looks *footprint.Growth, known []hooks.Library) []finding.Finding {
	h := host{sums: s, looks: looks}
	h.locate()
	groups := map[string][]*ledger.Use{}
	var order []string
	for i := range s.Uses {
		u := &s.Uses[i]
		kind := h.classOf(u)
		key := string(kind)
		if byPlace(kind) {
			key += fmt.Sprint(i)
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
		return cmp.Or(cmp.Compare(severe(b), severe(a)), cmp.Compare(*b.Bytes, *a.Bytes))
	})
	unmade, rest := h.unmade(out)
	told := looks != nil && (rest < classWorth || float64(rest) <= (1-unexplained)*float64(looks.RSS))
	if f, ok := notExplained(s); ok && !told {
		f.Detail = append(f.Detail, h.kinds()...)
		unmade = append(unmade, f)
	}
	return append(out, unmade...)
}

// byPlace tells kinds of which each place is judged by itself.
func byPlace(kind finding.Kind) bool { return kind == finding.MmapLeak || kind == finding.Remap }

// severe orders findings: what is wrong comes first.
func severe(f finding.Finding) int {
	return slices.Index([]finding.Severity{finding.Info, finding.Warning, finding.Problem}, f.Severity)
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
func classOf(u *ledger.Use) finding.Kind {
	switch {
	case u.Op == event.Remap:
		return finding.Remap
	case u.Kind == ledger.FileBacked:
		return finding.FileMapping
	case u.Kind == ledger.Shared:
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
		case arenas.MatchString(f.Function), calls < 4 && python.MatchString(object) && pythonArena(u.Size) && u.Op == event.Map && onlyLibrary(u.Frames):
			return finding.PythonObjects
		case mallocs.MatchString(f.Function):
			return finding.HeapLeak
		}
		calls++
	}
	if u.Kind == ledger.Heap || u.Op == event.Protect {
		return finding.HeapLeak
	}
	return finding.MmapLeak
}

// onlyLibrary reports whether the interpreter itself called mmap: between it and
// the call stands the C library at most.
func onlyLibrary(frames []symbolize.Frame) bool {
	for _, f := range frames {
		if object := filepath.Base(f.Object); !library.MatchString(object) {
			return python.MatchString(object)
		}
	}
	return false
}

// growing judges the uses of one class, or of one place.
func (h host) growing(uses []*ledger.Use, known []hooks.Library) (f finding.Finding, ok bool) {
	g := h.growthOf(uses)
	if !g.worth(h.sums.Growth) {
		return f, false
	}
	top := g.uses[0]
	e := &finding.CallGrowthEvidence{
		ResidentBytes: g.resident, MappedBytes: g.mapped, RSSGrowthBytes: g.of, LargestBytes: top.Size, Calls: top.Calls,
		StackComplete: top.Complete, AssumedBytes: top.Inferred, Stacks: growingStacks(g.uses, g.from),
	}
	f = finding.Finding{
		Kind: g.kind, Severity: finding.Warning, Confidence: g.confidence, Basis: g.verdict.Basis(),
		Bytes: finding.Int(g.resident), Count: finding.Int(g.count), Trend: g.all.Bytes,
		Stack: hostFrames(top.Frames), Site: HostSite(top.Frames),
		Evidence: e,
	}
	loading := cmp.Or(h.loading(g.uses, g.resident), g.recent(h.sums.Checkpoints))
	switch {
	case g.shape == settled:
		f.Severity = finding.Info
		f.Basis = "nearly all that stays of it was made by then; it was watched until " + units.Duration(time.Duration(h.sums.Checkpoints[len(h.sums.Checkpoints)-1]))
	case g.kind == finding.FileMapping:
		f.Severity = finding.Info // the kernel takes it back when memory is short
	case g.confidence >= surely && loading == "" && g.large():
		f.Severity = finding.Problem
	}
	f.Title = hostTitle(g)
	f.Detail = hostDetail(g.kind, top)
	if g.until > 0 {
		e.SettledSeconds = g.until.Seconds()
	}
	if g.shape == grows && g.until > 0 {
		e.EarlyBytes = &g.early
		f.Detail = append(f.Detail, earlier(g.early, g.until))
	}
	if f.Severity == finding.Warning {
		f.Remedies = []finding.Remedy{traceLonger}
		if loading != "" {
			f.Detail = append(f.Detail, loading)
		}
	}
	for _, k := range known {
		if leaksHere(k, top) {
			f.Detail = append([]string{k.Leaks}, f.Detail...)
		}
	}
	if g.shape == grows {
		f.Remedies = append(f.Remedies, hostRemedies(g.kind, top, known)...)
	}
	for _, u := range g.uses {
		if site := HostSite(u.Frames); site != nil && len(g.uses) > 1 {
			f.Sites = append(f.Sites, finding.Place{Site: *site, Bytes: g.held(u), Count: g.part(u.Count, u)})
		}
	}
	return f, true
}

var traceLonger = finding.CodeChange("trace for longer: whether it goes on cannot be told yet")

// earlier says what a warm-up made.
func earlier(bytes int64, until time.Duration) string {
	return fmt.Sprintf("%s more of the kind came faster in the first %s of the trace, and are not counted", units.Bytes(bytes), units.Duration(until))
}

func hostTitle(g *hostGrowth) string {
	title := "memory grew by " + units.Bytes(g.resident)
	most := g.shape == grows && g.of > 0 && g.of >= g.resident/2
	if most {
		title = "resident memory grew by " + units.Bytes(g.of)
	}
	switch {
	case g.shape == settled && g.rest >= hostWorth:
		title += fmt.Sprintf(" in the first %s of the trace, and hardly since (%s)", units.Duration(g.until), units.Bytes(g.rest))
	case g.shape == settled:
		title += fmt.Sprintf(" in the first %s of the trace, and not since", units.Duration(g.until))
	case g.until > 0:
		title += fmt.Sprintf(" after the first %s of the trace", units.Duration(g.until))
	}
	if most {
		title += fmt.Sprintf("; %s of it is ", units.Percent(min(float64(g.resident)/float64(g.of), 1)))
	} else {
		title += ": "
	}
	top := g.uses[0]
	switch g.kind {
	case finding.HeapLeak:
		title += "the heap of malloc"
		if g.shape == grows {
			title += ", which takes more and gives nothing back"
		}
	case finding.PythonObjects:
		title += fmt.Sprintf("%s of Python's objects that stay", units.Plural(g.count, "arena"))
	case finding.AllocatorRetention:
		title += "taken by another allocator than the C library's"
	case finding.Remap:
		title += fmt.Sprintf("one mapping that mremap made larger time and again, to %s", units.Bytes(top.Size))
	case finding.ThreadStacks:
		title += fmt.Sprintf("the stacks of %s", units.Plural(g.count, "thread"))
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
		title += units.Plural(g.count, "mapping")
		if average := g.mapped / max(g.count, 1); g.count > 1 && top.Size-average < average/20 {
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
func through(frames []symbolize.Frame) string {
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

func hostDetail(kind finding.Kind, u *ledger.Use) (out []string) {
	if !u.Complete && len(u.Frames) > 0 {
		out = append(out, "the stack is not complete: its outermost frames are missing")
	}
	if u.Inferred > u.Live/2 {
		out = append(out, fmt.Sprintf("the stack was copied of some of these calls; %s are of others from the same instruction and of the same size", units.Bytes(u.Inferred)))
	}
	if kind == finding.HeapLeak {
		out = append(out, "these are the calls that made the heap larger; who else holds what lies in it is not seen")
	}
	return out
}

func hostRemedies(kind finding.Kind, u *ledger.Use, known []hooks.Library) (out []finding.Remedy) {
	for _, k := range known {
		if !leaksHere(k, u) {
			continue
		}
		for _, text := range k.Remedies {
			out = append(out, finding.SettingChange(setting.FindString(text), text))
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
	case finding.SharedMemory: // by calls, it need be no worker's
		out = append(append(out, finding.CodeChange("unmap what is mapped here when it is not used any more")), classRemedies(kind)...)
	default:
		out = append(out, classRemedies(kind)...)
	}
	return out
}

// leaksHere reports whether a stack is that of a library that is known to leak, as
// it keeps something for what is unmapped. Its hooks alone say nothing: they
// stand in every stack of the process.
func leaksHere(k hooks.Library, u *ledger.Use) bool {
	return k.Leaks != "" && classOf(u) == finding.MmapLeak && slices.ContainsFunc(u.Frames, func(f symbolize.Frame) bool {
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
func notExplained(s *ledger.Sums) (f finding.Finding, ok bool) {
	if s.Explained == nil || *s.Explained >= unexplained || s.Growth < 4*hostWorth || len(s.Checkpoints) < fewMarks {
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
		Evidence: &finding.UnexplainedEvidence{
			RSSGrowthBytes: s.Growth, OlderBytes: s.Older, UnnamedBytes: s.Unnamed, UnseenBytes: s.Unseen,
			AnonymousBytes: s.Anon, FileBytes: s.File, SharedBytes: s.Shared,
		},
	}
	if len(kinds) > 0 {
		f.Detail = append(f.Detail, "the growth is "+strings.Join(kinds, ", "))
	}
	if s.Older > s.Growth/5 && !s.Blind {
		f.Detail = append(f.Detail, units.Bytes(s.Older)+" came into memory in mappings that were there before: a heap with room in it, or a mapping that is filled")
	}
	if s.Unseen > s.Growth/5 {
		f.Detail = append(f.Detail, units.Bytes(s.Unseen)+" were mapped by calls that were not seen")
	}
	if s.Unnamed > s.Growth/5 {
		f.Detail = append(f.Detail, units.Bytes(s.Unnamed)+" were mapped by calls whose stack was not copied")
	}
	f.Remedies = []finding.Remedy{finding.CodeChange("trace for longer: what goes on growing is mapped while it is watched")}
	if s.Blind {
		f.Title = fmt.Sprintf("resident memory grew by %s, and what made it was not seen: polling sees no calls", units.Bytes(s.Growth))
		f.Remedies = []finding.Remedy{finding.CodeChange("`strandline doctor` says how the calls can be watched, too")}
	}
	return f, true
}

// Recorded is the verdict on a recording, of which a document holds the findings.
func Recorded(run *recording.Run) finding.Verdict {
	switch {
	case slices.ContainsFunc(run.Document.Findings, func(f finding.Finding) bool { return f.Severity == finding.Problem }):
		return finding.Leaking
	case len(run.Samples) < fewRecorded:
		return finding.Unknown
	}
	return finding.OK
}

// fewRecorded are too few marks of a recording to judge growth.
const fewRecorded = 3

func hostFrames(frames []symbolize.Frame) []finding.Frame {
	out := make([]finding.Frame, len(frames))
	for i, f := range frames {
		out[i] = hostFrame(f)
	}
	return out
}

func hostFrame(f symbolize.Frame) finding.Frame {
	file := f.File
	if file == "" {
		file = f.Object
	}
	return finding.Frame{File: file, Line: f.Line, Function: f.Function}
}

// HostSite is the innermost line of Python that is the user's own, or else the
// innermost function that is none of the C library's.
func HostSite(frames []symbolize.Frame) *finding.Site {
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
