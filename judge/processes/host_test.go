package processes

import (
	"fmt"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/proc/footprint"
	"strandline/host/proc/hooks"
	"strandline/host/proc/hsperf"
	"strandline/host/store/recording"
	"strandline/stack"
	"strandline/trend"
)

// made returns what calls with a stack hold, written innermost first as
// "object:function" or, of Python, "file.py:function".
func made(op event.Op, kind ledger.Kind, size int64, frames ...string) *ledger.Use {
	u := &ledger.Use{Op: op, Kind: kind, Size: size, Live: 64 << 20, Count: 64, Resident: 64 << 20, Calls: 64}
	u.Complete = true
	for _, f := range frames {
		object, function, _ := strings.Cut(f, ":")
		if strings.HasSuffix(object, ".py") {
			u.Frames = append(u.Frames, symbolize.Frame{Frame: stack.Frame{File: object, Line: 7, Function: function}})
			continue
		}
		u.Frames = append(u.Frames, symbolize.Frame{Frame: stack.Frame{Function: function}, Object: "/usr/lib/" + object})
	}
	u.Population = trend.NewPopulation(9)
	for i := range 64 {
		u.Population.Add(trend.Span{First: i * 9 / 64, Last: 8, Bytes: 1 << 20})
	}
	return u
}

var ucxLeak = []string{"libc.so.6:syscall", "libucm.so.0:ucm_orig_mmap_syscall", "libucs.so.0:ucs_mpool_grow",
	"libucm.so.0:ucm_event_dispatch", "libucm.so.0:ucm_munmap", "server.py:decode_step"}

func TestClassOfStack(t *testing.T) {
	for _, c := range []struct {
		use  *ledger.Use
		want finding.Kind
	}{
		{made(event.Map, ledger.Anonymous, 151552, ucxLeak...), finding.MmapLeak},
		{made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "main:grow"), finding.MmapLeak},
		{made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "libc.so.6:sysmalloc", "libc.so.6:malloc", "main:grow"), finding.HeapLeak},
		{made(event.Break, ledger.Heap, 135168, "libc.so.6:brk", "libc.so.6:sbrk", "main:grow"), finding.HeapLeak},
		{made(event.Protect, ledger.Anonymous, 4096, "libc.so.6:mprotect", "main:grow"), finding.HeapLeak},
		{made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "libpython3.11.so.1.0:_PyObject_ArenaMmap"), finding.PythonObjects},
		{made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "python3.13:python3.13+0x1234", "a.py:f"), finding.PythonObjects}, // stripped
		{made(event.Map, ledger.Anonymous, 65536, "libc.so.6:mmap", "mmap.cpython-313.so:mmap+0x1", "python3.13:x"), finding.MmapLeak},
		{made(event.Map, ledger.Anonymous, 8<<20, "libc.so.6:mmap", "libc.so.6:pthread_create@@GLIBC_2.34", "main:f"), finding.ThreadStacks},
		{made(event.Map, ledger.Anonymous, 2<<20, "libc.so.6:mmap", "libjemalloc.so.2:je_pages_map", "main:f"), finding.AllocatorRetention},
		{made(event.Remap, ledger.Anonymous, 2<<20, "libc.so.6:mremap", "libc.so.6:realloc", "main:f"), finding.Remap},
		{made(event.Map, ledger.Shared, 2<<20, "libc.so.6:mmap", "main:f"), finding.SharedMemory},
		{made(event.Map, ledger.Shared, 64<<20, "libc.so.6:mmap", "libcuda.so.1:", "libcudart.so.12:cudaHostAlloc", "main:f"), finding.Pinned},
		{made(event.Map, ledger.FileBacked, 64<<20, "libcuda.so.1:", "libcuda.so.1:cuMemAllocHost_v2", "main:f"), finding.Pinned},
		{made(event.Map, ledger.Shared, 64<<20, "libc.so.6:mmap", "libcuda.so.1:cuInit", "main:f"), finding.SharedMemory},
		{made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "libc.so.6:malloc", "libcudart.so.12:cudaHostAlloc"), finding.HeapLeak},
		{made(event.Map, ledger.FileBacked, 2<<20, "libc.so.6:mmap", "main:f"), finding.FileMapping},
	} {
		if got := kindOfCall(c.use); got != c.want {
			t.Errorf("%v of %v is %s, want %s", c.use.Op, c.use.Frames, got, c.want)
		}
	}
}

// TestKnownLeak attributes a leak to a library only where the stack is of memory that
// it keeps: its hooks are in other stacks, too.
func TestKnownLeak(t *testing.T) {
	known := []hooks.Library{{Name: "UCX", Object: "/usr/lib/libucm.so.0", Leaks: "it keeps entries", Remedies: []string{"set UCX_RCACHE_MAX_UNRELEASED=1024, or upgrade"}}}
	for _, c := range []struct {
		use   *ledger.Use
		kind  finding.Kind
		blame bool
	}{
		{made(event.Map, ledger.Anonymous, 151552, ucxLeak...), finding.MmapLeak, true},
		{made(event.Break, ledger.Heap, 135168, "libucm.so.0:ucm_orig_brk", "libucm.so.0:ucm_sbrk", "libc.so.6:malloc", "server.py:step"), finding.HeapLeak, false},
		{made(event.Map, ledger.Anonymous, 1<<20, "libucm.so.0:ucm_orig_mmap", "libucm.so.0:ucm_mmap", "main:grow"), finding.MmapLeak, false},
	} {
		sums := &ledger.Sums{Uses: []ledger.Use{*c.use}, Growth: 64 << 20, Checkpoints: make([]uint64, 9)}
		found := Host(sums, nil, known)
		if len(found) != 1 || found[0].Kind != c.kind || found[0].Severity != finding.Problem {
			t.Fatalf("got %+v", found)
		}
		f := found[0]
		if blamed := len(f.Detail) > 0 && f.Detail[0] == "it keeps entries"; blamed != c.blame {
			t.Errorf("%v: details %v", c.use.Frames, f.Detail)
		}
		if told := f.Brief.Fact == known[0].Leaks; told != c.blame {
			t.Errorf("%v: the first screen says %q", c.use.Frames, f.Brief.Fact)
		}
		if set := f.Remedies[0].Setting == "UCX_RCACHE_MAX_UNRELEASED=1024"; set != c.blame {
			t.Errorf("%v: remedies %+v", c.use.Frames, f.Remedies)
		}
	}
}

// The heaps of languages whose garbage is collected are not malloc's, and their own tools
// show what is in them. What their parts in C take from malloc is malloc's.
func TestCollectedHeaps(t *testing.T) {
	for _, c := range []struct {
		use           *ledger.Use
		title, remedy string
	}{
		{made(event.Protect, ledger.Anonymous, 256<<10, "libc.so.6:mprotect", "node:v8::base::OS::SetPermissions(void*)", "node:v8::internal::MemoryAllocator::AllocatePage()"), "V8's heap, which takes more and returns nothing; allocated here", "heap snapshots"},
		{made(event.Map, ledger.Anonymous, 4<<20, "app:runtime.sysMmap", "app:runtime.(*mheap).grow", "app:main.work"), "64 mappings for Go's heap that were not unmapped", "pprof/heap"},
		{made(event.Map, ledger.Anonymous, 4<<20, "libc.so.6:mmap", "libjvm.so:os::pd_commit_memory_or_exit(char*)", "libjvm.so:os::commit_memory"), "for Java's heap", "class_histogram"},
		{made(event.Map, ledger.Anonymous, 2<<20, "libc.so.6:mmap", "php8.2:php8.2+0x2d3b57", "php8.2:_safe_emalloc", "php8.2:execute_ex"), "for PHP's heap", "memory_get_usage"},
		{made(event.Break, ledger.Heap, 135168, "libc.so.6:brk", "libc.so.6:sysmalloc", "libc.so.6:malloc", "node:node::Buffer", "node:v8::internal::Heap::AllocateExternal"), "the heap of malloc, which takes more", "heap profiler"},
	} {
		found := Host(&ledger.Sums{Uses: []ledger.Use{*c.use}, Growth: 64 << 20, Checkpoints: make([]uint64, 9)}, nil, nil)
		if len(found) != 1 || !strings.Contains(found[0].Title, c.title) || !strings.Contains(fmt.Sprint(found[0].Remedies), c.remedy) {
			t.Errorf("%v: %+v", c.use.Frames, found)
		}
	}
}

// A recording has the verdict of the trace: growth that ended too early is no OK.
func TestRecorded(t *testing.T) {
	open := finding.Finding{Kind: finding.HeapLeak, Severity: finding.Warning, Remedies: []finding.Remedy{runLonger}}
	for want, found := range map[finding.Verdict][]finding.Finding{
		finding.OK:      {{Kind: finding.HeapLeak, Severity: finding.Warning}},
		finding.Unknown: {open},
		finding.Leaking: {open, {Kind: finding.HeapLeak, Severity: finding.Problem}},
	} {
		run := &recording.Run{Document: &recording.Document{Findings: found}, Samples: make([]recording.Sample, minRecorded)}
		if got := Recorded(run); got != want {
			t.Errorf("%+v: %s, want %s", found, got, want)
		}
	}
}

// A thread's stack is mapped by one call and made accessible by another, and no heap.
func TestStacksOfThreads(t *testing.T) {
	guards := made(event.Map, ledger.Anonymous, 8<<20, "libc.so.6:mmap", "libc.so.6:pthread_create", "main:start")
	stacks := made(event.Protect, ledger.Anonymous, 8<<20, "libc.so.6:mprotect", "libc.so.6:pthread_create", "main:start")
	guards.Resident = 0
	found := Host(&ledger.Sums{Uses: []ledger.Use{*stacks, *guards}, Growth: 64 << 20, Checkpoints: make([]uint64, 9)}, nil, nil)
	if len(found) != 1 || !strings.Contains(found[0].Title, "the stacks of 64 threads; allocated here: start") || *found[0].Count != 64 {
		t.Errorf("got %+v", found)
	}
}

// TestJava states how much of the growth of a Java program is outside of Java's heap.
func TestJava(t *testing.T) {
	for rss, want := range map[int64]string{
		10 << 20: "Java's heap has 64 MiB from the system, of which its last collection left 40 MiB in use",
		80 << 20: "Java's heap has 64 MiB from the system, of which its last collection left 40 MiB in use: at least 16 MiB of the growth is outside of it, where Java's own tools do not look",
	} {
		h := host{looks: &footprint.Growth{RSS: rss, After: &footprint.Observation{Java: &hsperf.Heap{Used: 40 << 20, Committed: 64 << 20}}}}
		if got := h.java(finding.HeapLeak); len(got) != 1 || got[0] != want {
			t.Errorf("%q", got)
		}
		if got := h.java(finding.PythonObjects); got != nil {
			t.Errorf("of Python: %q", got)
		}
	}
	if got := (host{looks: &footprint.Growth{After: &footprint.Observation{}}}).java(finding.HeapLeak); got != nil {
		t.Errorf("of no Java: %q", got)
	}
}
