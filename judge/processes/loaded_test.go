package processes

import (
	"strings"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/proc/footprint"
	"strandline/host/proc/glibcheap"
)

// A library that is loaded again and again, under other names, is a leak; those that a
// program loads at first are not, and neither are files of data.
func TestLoadedLibraries(t *testing.T) {
	steady := []int64{0, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6}
	first := []int64{0, 30, 30, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	dlopen := []string{"ld-linux-x86-64.so.2:mmap64", "ld-linux-x86-64.so.2:_dl_map_object_from_fd", "libc.so.6:dlopen@@GLIBC_2.34", "app.py:job"}
	for _, c := range []struct {
		name     string
		frames   []string
		steps    []int64
		severity finding.Severity
	}{
		{"each job", dlopen, steady, finding.Problem},
		{"at first", dlopen, first, finding.Info},
		{"data", []string{"libc.so.6:mmap", "app.py:job"}, steady, finding.Info},
	} {
		u := over(made(event.Map, ledger.FileBacked, 1<<20, c.frames...), c.steps...)
		found := Host(traceOf(u), &footprint.Growth{Age: 20 * time.Second, Read: 1 << 30}, nil)
		if len(found) != 1 || found[0].Kind != finding.FileMapping || found[0].Severity != c.severity || found[0].Site.Function != "job" {
			t.Errorf("%s: %+v", c.name, found)
			continue
		}
		if c.severity == finding.Problem && !strings.Contains(found[0].Remedies[0].Text, "load each library once") {
			t.Errorf("%s: %+v", c.name, found[0].Remedies)
		}
	}
}

// What malloc keeps in the arenas of many threads is a reason to act also where it
// grows no more; in few arenas, or where most is in use, it is not.
func TestArenasThatStayFree(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name         string
		arenas       int
		system, free uint64 // MiB, of each
		severity     finding.Severity
	}{
		{"threads", 8, 12, 9, finding.Warning},
		{"one arena", 1, 96, 72, finding.Info},
		{"threads that take turns", 8, 12, 5, finding.Warning},
		{"most is in use", 8, 12, 3, finding.Info},
	} {
		after := &footprint.Observation{}
		for range c.arenas {
			after.Arenas = append(after.Arenas, glibcheap.Arena{System: c.system * mib, Free: c.free * mib})
		}
		looks := &footprint.Growth{After: after, RSS: 60 * mib, Age: time.Hour, Parts: []footprint.Part{
			{Class: finding.ArenaRetention, Bytes: 40 * mib, Confidence: 0.9, Settled: true, Until: 3 * time.Second},
		}}
		u := over(made(event.Protect, ledger.Anonymous, 4096, "libc.so.6:mprotect", "libc.so.6:sysmalloc", "libc.so.6:malloc", "app.py:load"), 0, 0, 0, 0, 0, 0)
		s := traceOf(u)
		s.Growth = 60 * mib
		found := Host(s, looks, nil)
		if len(found) != 1 || found[0].Kind != finding.ArenaRetention || found[0].Severity != c.severity || found[0].Site == nil || found[0].Site.Function != "load" {
			t.Errorf("%s: %+v", c.name, found)
			continue
		}
		if advised := len(found[0].Remedies) > 0 && found[0].Remedies[0].Setting == "MALLOC_ARENA_MAX=2"; advised != (c.severity == finding.Warning) {
			t.Errorf("%s: %+v", c.name, found[0].Remedies)
		}
		if Undecided(found) {
			t.Errorf("%s: it is decided", c.name)
		}
	}
}

// A job that ends by itself soon after its start holds until then what it works on.
func TestJobThatEnds(t *testing.T) {
	heap := made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "libc.so.6:malloc", "app.py:concat")
	for _, c := range []struct {
		ended    bool
		age      time.Duration
		severity finding.Severity
	}{{false, time.Minute, finding.Problem}, {true, time.Minute, finding.Warning}, {true, time.Hour, finding.Problem}} {
		s := traceOf(over(heap, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3))
		s.Ended, s.Age = c.ended, c.age
		if found := Host(s, nil, nil); len(found) != 1 || found[0].Severity != c.severity {
			t.Errorf("ended %v after %v: %+v", c.ended, c.age, found)
		}
	}
}

// Where oneDNN holds a part of what grows, its cache is named.
func TestPrimitiveCache(t *testing.T) {
	at := func(function string) *ledger.Use {
		return over(made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "libc.so.6:malloc", "libtorch_cpu.so:"+function, "app.py:serve"), 0, 3, 3, 3, 3, 3, 3, 3, 3)
	}
	for function, want := range map[string]bool{"dnnl::impl::cpu::x64::jit_generator::create_kernel()": true, "at::native::empty_cpu": false} {
		found := Host(traceOf(at(function)), nil, nil)
		if len(found) != 1 {
			t.Fatalf("%+v", found)
		}
		settings := ""
		for _, r := range found[0].Remedies {
			settings += r.Setting
		}
		if got := strings.Contains(settings, "ONEDNN_PRIMITIVE_CACHE_CAPACITY"); got != want {
			t.Errorf("%s: %q", function, settings)
		}
	}
}

// A child that began shortly before is judged by its own age.
func TestYoungChild(t *testing.T) {
	for age, want := range map[time.Duration]finding.Severity{9 * time.Second: finding.Warning, time.Hour: finding.Problem} {
		u := over(made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "main:grow"), 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3)
		u.Shares = []ledger.Share{{PID: 9, Live: u.Live}}
		s := traceOf(u)
		s.Age = time.Hour
		s.Processes = []ledger.Process{{PID: 7, Name: "make", Age: time.Hour}, {PID: 9, Name: "compile", Age: age, Growth: u.Live}}
		if found := Host(s, nil, nil); len(found) != 1 || found[0].Severity != want {
			t.Errorf("%v: %+v", age, found)
		}
	}
}
