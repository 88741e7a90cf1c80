//go:build amd64 || arm64

package malloc

import (
	"debug/elf"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"strandline/internal/test/live"
)

// TestLibraryIsOfSources shows that the sources were not changed without rebuilding the
// library. test.sh builds it where the same compilers are.
func TestLibraryIsOfSources(t *testing.T) {
	live.Sequential(t)
	live.BuiltOf(t, "host/calls/malloc/build.sh", "object/library.txt", "c/*.h", "c/*.c")
}

// TestLibraryNeedsNothing shows that every program can load the library: it needs no other
// one, and each function that it takes from the program may be missing.
func TestLibraryNeedsNothing(t *testing.T) {
	live.Sequential(t)
	for _, file := range []string{"object/library_amd64.so", "object/library_arm64.so"} {
		f, err := elf.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if needed, err := f.ImportedLibraries(); err != nil || len(needed) > 0 {
			t.Errorf("%s needs %v, %v", file, needed, err)
		}
		symbols, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		var exported []string
		for _, s := range symbols {
			switch {
			case s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC:
				exported = append(exported, s.Name)
			case s.Section == elf.SHN_UNDEF && elf.ST_BIND(s.Info) != elf.STB_WEAK:
				t.Errorf("%s needs %s", file, s.Name)
			}
		}
		slices.Sort(exported)
		if got := strings.Join(exported, " "); got != "aligned_alloc calloc free free_aligned_sized free_sized malloc memalign posix_memalign pvalloc realloc valloc" {
			t.Errorf("%s has %s", file, got)
		}
	}
}

// TestLayout shows that C and Go mean the same memory.
func TestLayout(t *testing.T) {
	live.Sequential(t)
	dir, err := filepath.Abs("c")
	if err != nil {
		t.Fatal(err)
	}
	const source = `
#include "shared.h"
#include <stddef.h>
#include <stdio.h>
int main(void) {
	printf("%zu %zu %zu ", sizeof(struct shared), sizeof(struct request), sizeof(struct entry));
	printf("%zu %zu %zu %zu ", offsetof(struct shared, interval), offsetof(struct shared, asked), offsetof(struct shared, dropped), offsetof(struct shared, requests));
	printf("%zu %zu ", offsetof(struct shared, addresses), offsetof(struct shared, entries));
	printf("%zu %zu %zu %zu ", offsetof(struct request, entry), offsetof(struct request, born), offsetof(struct request, ip), offsetof(struct request, bp));
	printf("%zu %zu %d %d", offsetof(struct entry, pid), offsetof(struct entry, stack), WAITING, LEFT);
}`
	out, err := exec.Command(live.Build(t, source, nil, "-I"+dir)).Output()
	var s shared
	var r request
	var e entry
	want := fmt.Sprint(
		unsafe.Sizeof(s), unsafe.Sizeof(r), unsafe.Sizeof(e),
		unsafe.Offsetof(s.interval), unsafe.Offsetof(s.asked), unsafe.Offsetof(s.dropped), unsafe.Offsetof(s.requests),
		unsafe.Offsetof(s.addresses), unsafe.Offsetof(s.entries),
		unsafe.Offsetof(r.entry), unsafe.Offsetof(r.born), unsafe.Offsetof(r.ip), unsafe.Offsetof(r.bp),
		unsafe.Offsetof(e.pid), unsafe.Offsetof(e.stack), waiting, left)
	if err != nil || string(out) != want {
		t.Errorf("C has %s, Go %s; %v", out, want, err)
	}
}

// TestEstimate shows that what samples stand for is what was allocated, and that the
// variance is that of the estimate.
func TestEstimate(t *testing.T) {
	live.Sequential(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ bytes, interval float64 }{{100, 10_000}, {10_000, 10_000}, {100_000, 10_000}} {
		one := of(c.bytes, c.interval)
		var total, variance, squares float64
		const n, rounds = 2000, 200
		for range rounds {
			var s float64
			for range n {
				if r.Float64() < -math.Expm1(-c.bytes/c.interval) {
					s += one.bytes
					variance += one.variance / rounds
				}
			}
			total += s / rounds
			squares += (s - n*c.bytes) * (s - n*c.bytes) / rounds
		}
		if off := math.Abs(total-n*c.bytes) / (n * c.bytes); off > 0.05 {
			t.Errorf("%v: the mean is off by %.3f", c, off)
		}
		if squares > 1 && math.Abs(math.Log(variance/squares)) > 0.5 {
			t.Errorf("%v: a variance of %.3g, and of the estimates %.3g", c, variance, squares)
		}
	}
}

// TestHalve shows that samples which become fewer stand for as much as before.
func TestHalve(t *testing.T) {
	live.Sequential(t)
	s := begun(t)
	p := process{uint32(os.Getpid()), 1}
	s.programs[p] = &program{shared: uint64(uintptr(unsafe.Pointer(s.shared)))}
	estimate := func() (bytes float64, n int) {
		for i := range s.shared.entries {
			if e := &s.shared.entries[i]; s.shared.addresses[i].Load() != 0 {
				bytes, n = bytes+of(float64(e.bytes), float64(e.interval)).bytes, n+1
			}
		}
		return bytes, n
	}
	for i := range entries * 3 / 4 {
		e := &s.shared.entries[i]
		e.bytes, e.interval, e.pid, e.born = uint64(1000+i%3*50_000), minInterval, p.pid, p.born
		s.shared.addresses[i].Store(uint64(16 * (i + 1)))
	}
	was, n := estimate()
	s.sweep()
	now, left := estimate()
	if left < n/2 || left > n*7/10 || math.Abs(now/was-1) > 0.05 {
		t.Errorf("%d of %d samples are left, which stand for %.3f of the bytes", left, n, now/was)
	}
	if s.adapt(); s.shared.interval.Load() < 2*minInterval {
		t.Error("the interval is as short as before")
	}
}

func TestEnviron(t *testing.T) {
	live.Sequential(t)
	s := begun(t)
	preload := path(s.library)
	if s.folder != nil {
		preload = filepath.Join(s.folder.Path(), libraryName)
	}
	got := s.Environ([]string{"A=1", "LD_PRELOAD=/lib/jemalloc.so", "STRANDLINE_MALLOC=/proc/1/fd/3 4", "ASAN_OPTIONS=detect_leaks=0"})
	want := []string{
		"A=1", "LD_PRELOAD=" + preload + ":/lib/jemalloc.so",
		"ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0", fmt.Sprintf("STRANDLINE_MALLOC=/proc/%d/fd/%d %d", os.Getpid(), s.file.Fd(), s.shared.token),
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// begun returns a sampling that ends with the test.
func begun(t testing.TB) *Sampling {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestLibraryOfAnotherUser shows that a program loads the library too after it became another user, and
// that nothing is left of it.
func TestLibraryOfAnotherUser(t *testing.T) {
	live.Sequential(t)
	if os.Geteuid() != 0 {
		live.Missing(t, "root", "only root can become another user")
	}
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if s.folder == nil {
		live.Missing(t, "a folder of programs", "neither /run nor /var/lib is one")
	}
	c := exec.Command(live.Tool(t, "cat"), "/proc/self/maps")
	c.Env, c.Dir = s.Environ(os.Environ()), "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "/"+libraryName) || strings.Contains(string(out), "ERROR") {
		t.Errorf("%v\n%s", err, out)
	}
	folder := s.folder.Path()
	s.Close()
	if _, err := os.Lstat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", folder, err)
	}
}

// keeps allocates in ways that are distinct by function: what is kept, what is freed soon,
// what is freed by another function, and what grows in place. It does so at once, or in a
// child, or as another program.
const keeps = `
#define _GNU_SOURCE
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#define APART __attribute__((noinline, noclone))
static void *hold;
APART void kept(void) { hold = malloc(20000); memset(hold, 1, 20000); }
APART void zeroed(void) { hold = calloc(10, 1000); }
APART void aligned(void) { if (!posix_memalign(&hold, 64, 30000)) memset(hold, 1, 30000); }
APART void churn(void) { for (int i = 0; i < 20; i++) { hold = malloc(15000); free(hold); } }
APART void ring(int i) { static void *all[50]; free(all[i % 50]); all[i % 50] = memalign(16, 25000); }
APART void grows(int i) { static char *text; static size_t n; if (i % 100 == 0) text = realloc(text, n += 500000), text[n - 1] = 1; }
static void handle(int number) { (void)number; }
static int rounds = 100000;
static void work(void)
{
	puts("begins"), fflush(stdout);
	for (int i = 0; i < rounds; i++) {
		kept(), zeroed(), aligned(), churn(), ring(i), grows(i);
		usleep(1000);
	}
}
int main(int n, char **args)
{
	(void)n;
	if (!strcmp(args[1], "fork")) {
		if (!fork())
			prctl(PR_SET_PDEATHSIG, 9), work();
		wait(NULL);
	} else if (!strcmp(args[1], "exec")) {
		execl(args[0], args[0], "now", NULL);
	} else if (!strcmp(args[1], "short")) {
		struct itimerval often = {{0, 5000}, {0, 5000}};
		signal(SIGALRM, handle);
		setitimer(ITIMER_REAL, &often, NULL);
		rounds = 300;
	}
	work();
}`

// sampled starts a program with the library, lets it run for a time, and returns how much
// each function kept, with the variance of that.
func sampled(t *testing.T, s *Sampling, args ...string) map[string]sum {
	t.Helper()
	c := exec.Command(args[0], args[1:]...)
	c.Env, c.Stderr = s.Environ(os.Environ()), os.Stderr
	first, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	if _, err := first.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	s.Sample(true)
	var sums []Kept
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(50 * time.Millisecond) {
		for p := range s.known() {
			if kept, spans := s.Kept(int(p.pid), time.Now()); len(spans) > 0 && spans[0].To.Sub(spans[0].From) > 2*time.Second {
				sums = kept
			}
		}
		if sums != nil {
			break
		}
	}
	out := map[string]sum{}
	for _, k := range sums {
		for _, f := range k.Frames {
			if f.Function == "main" || f.Function == "work" {
				break
			}
			name := f.Function
			if f.Line > 0 {
				name = fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
			}
			out[name] = sum{out[name].bytes + k.Bytes, 0, out[name].variance + k.Variance}
		}
	}
	return out
}

func (s *Sampling) known() map[process]*program {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.programs)
}

// TestSampling shows that what functions keep is estimated: of each in proportion to the
// others, and nothing where all is freed.
func TestSampling(t *testing.T) {
	live.Traces(t)
	program := live.Build(t, keeps, nil, "-fno-builtin")
	for _, how := range []string{"now", "fork", "exec"} {
		t.Run(how, func(t *testing.T) {
			got := sampled(t, begun(t), program, how)
			kept := got["kept"]
			if kept.bytes < 2<<20 {
				t.Fatalf("%v", got)
			}
			for name, share := range map[string]float64{"zeroed": 0.5, "aligned": 1.5, "grows": 0.25, "churn": 0, "ring": 0} {
				off, most := math.Abs(got[name].bytes-share*kept.bytes), 4*math.Sqrt(got[name].variance+share*share*kept.variance)
				if off > most+0.1*kept.bytes {
					t.Errorf("%s: %.2f of what kept keeps, want %.2f of it: %v", name, got[name].bytes/kept.bytes, share, got)
				}
			}
		})
	}
}

// TestInUse shows that what is kept is about what malloc has in use more by its own account.
func TestInUse(t *testing.T) {
	live.Traces(t)
	s := begun(t)
	sampled(t, s, live.Build(t, keeps, nil, "-fno-builtin"), "now")
	for p := range s.known() {
		kept, spans := s.Kept(int(p.pid), time.Now())
		var sum float64
		for _, k := range kept {
			sum += k.Bytes
		}
		if len(spans) != 1 || spans[0].InUse == nil {
			live.Missing(t, "mallinfo2", "the C library is older than 2.33")
		}
		if in := float64(*spans[0].InUse); sum < 2<<20 || in < 0.7*sum || in > 2*sum {
			t.Errorf("%.0f bytes in use, %.0f kept", in, sum)
		}
	}
}

// TestSamplingOfPython shows that the line of Python is known that called a library.
func TestSamplingOfPython(t *testing.T) {
	live.Traces(t)
	file := filepath.Join(t.TempDir(), "leaks.py")
	const source = `import time
kept = []
def keep(i):
    kept.append(bytes(50_000))
def run():
    print("begins", flush=True)
    for i in range(6000):
        keep(i)
        [bytes(40_000) for _ in range(10)]
        time.sleep(0.001)
run()
`
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	got := sampled(t, begun(t), live.Tool(t, "python3"), file)
	kept, freed := got["leaks.py:4"], got["leaks.py:9"]
	if kept.bytes < 10<<20 || math.Abs(freed.bytes) > 4*math.Sqrt(freed.variance)+0.1*kept.bytes || got["leaks.py:8"].bytes < kept.bytes {
		t.Errorf("%v", got)
	}
}

// TestLibraryAlone shows that a program ends as ever whose calls nobody answers, even if
// signals interrupt each wait.
func TestLibraryAlone(t *testing.T) {
	live.Traces(t)
	s := begun(t)
	s.shared.began.Store(1)
	s.shared.interval.Store(1000)
	c := exec.Command(live.Build(t, keeps, nil, "-fno-builtin"), "short")
	c.Env, c.Stderr = s.Environ(os.Environ()), os.Stderr
	killed := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	defer killed.Stop()
	if err := c.Run(); err != nil {
		t.Error(err)
	}
	if n := s.shared.asked.Load(); n < 2 || n > 1000 {
		t.Errorf("%d calls asked", n)
	}
	if n := slices.IndexFunc(unsafe.Slice((*uint64)(unsafe.Pointer(&s.shared.addresses)), entries), func(a uint64) bool { return a != 0 }); n >= 0 {
		t.Error("an allocation without a stack is left")
	}
}

// TestRequestsOfEndedThreads shows that a thread which ends while it waits takes no request
// with it, and that a program cannot cut off what is shared.
func TestRequestsOfEndedThreads(t *testing.T) {
	live.Sequential(t)
	s := begun(t)
	c := exec.Command(live.Tool(t, "true"))
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	for i, pid := range []int{c.Process.Pid, os.Getpid()} {
		r := &s.shared.requests[i]
		r.pid, r.tid = uint32(pid), uint32(pid)
		r.state.Store(answered)
	}
	s.reclaim()
	if a, b := s.shared.requests[0].state.Load(), s.shared.requests[1].state.Load(); a != free || b != answered {
		t.Errorf("states %d and %d", a, b)
	}
	if err := s.file.Truncate(0); err == nil {
		t.Error("the shared memory can be cut off")
	}
}

// TestMemoryOfOthers shows that no process is read which has no part in what is shared.
func TestMemoryOfOthers(t *testing.T) {
	live.Traces(t)
	s := begun(t)
	c := exec.Command(live.Tool(t, "sleep"), "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	s.Sample(true)
	for _, pid := range []int{c.Process.Pid, os.Getpid()} { // read in this order
		s.program(process{uint32(pid), 1})
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, own := s.program(process{uint32(os.Getpid()), 1}); own == uint64(uintptr(unsafe.Pointer(s.shared))) {
			break
		} else if time.Since(began) > time.Minute {
			t.Fatalf("this process has what is shared at %#x", own)
		}
	}
	if _, other := s.program(process{uint32(c.Process.Pid), 1}); other != 0 {
		t.Error("another process is read")
	}
}

// TestManySamplesAtOnce shows that no look waits for the name of a stack for which there was no room.
func TestManySamplesAtOnce(t *testing.T) {
	live.Sequential(t)
	s := begun(t)
	p := process{uint32(os.Getpid()), 1}
	s.programs[p] = &program{shared: uint64(uintptr(unsafe.Pointer(s.shared)))}
	var full bool
	for i := range maxWaiting + 1 {
		r := &s.shared.requests[0]
		r.pid, r.born, r.entry, r.self = p.pid, p.born, uint32(i), uint64(uintptr(unsafe.Pointer(r)))
		full = !s.take(r)
		if known := s.shared.entries[i].stack.Load() != 0; known == full {
			t.Fatalf("sample %d: no room %v, a stack %v", i, full, known)
		}
	}
	if !full {
		t.Error("there is room for each")
	}
}

// FuzzShared lets a program write anything into the memory that it shares.
func FuzzShared(f *testing.F) {
	f.Add(uint64(1), uint32(1), uint32(0), uint64(0), uint64(8), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, address uint64, pid, number uint32, self, bytes uint64, more []byte) {
		s := begun(t)
		for i := range 3 {
			r := &s.shared.requests[i]
			r.state.Store(waiting)
			r.pid, r.tid, r.entry, r.self, r.sp, r.ip = pid, number, number+uint32(i), self, address, self
			r.born = bytes
			e := &s.shared.entries[i]
			e.bytes, e.interval, e.born, e.pid = bytes, self, bytes, pid
			e.stack.Store(number)
			s.shared.addresses[i].Store(address)
		}
		at := unsafe.Slice((*byte)(unsafe.Pointer(&s.shared.requests[3])), 128)
		copy(at, more)
		s.programs[process{pid, bytes}] = &program{shared: uint64(uintptr(unsafe.Pointer(s.shared)))}
		s.Sample(true)
		s.mu.Lock()
		s.look()
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.Sample(false)
		s.Kept(int(pid), time.Now())
	})
}
