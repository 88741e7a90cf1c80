//go:build linux && amd64

package unwind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"strandline/host/code/elffile"
	"strandline/host/code/image"
	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

const waiting = `
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
NOINLINE int wait_here(int x) { puts("ready"); fflush(stdout); pause(); return x + 1; }
`

// waits is a program that waits in a known place.
type waits struct {
	name, source string
	flags, calls []string // calls are functions that are in this order
	guessed      int      // steps from code without tables
}

var programs = []waits{
	{"calls", waiting + `
NOINLINE int middle(int x) { char b[100]; memset(b, x, 100); return wait_here(x) + b[x % 100]; }
int main(int argc, char **argv) { return middle(argc) + 1; }
`, nil, []string{"wait_here", "middle", "main"}, 0},
	{"stack of changing size", waiting + `
NOINLINE int middle(int x) { char *b = alloca(x * 100); memset(b, x, x * 100); return wait_here(x) + b[x]; }
int main(int argc, char **argv) { return middle(argc) + 1; }
`, nil, []string{"wait_here", "middle", "main"}, 0},
	{"stack of larger alignment", waiting + `
NOINLINE int middle(int x) { _Alignas(128) volatile char b[256]; char *a = alloca(x * 64); a[0] = 1; b[x] = x; return wait_here(x) + b[x] + a[0]; }
int main(int argc, char **argv) { return middle(argc) + 1; }
`, nil, []string{"wait_here", "middle", "main"}, 0},
	{"signal handler", waiting + `
NOINLINE void handler(int n) { wait_here(n); }
NOINLINE int middle(int x) { raise(SIGUSR1); return x + 1; }
int main(int argc, char **argv) { signal(SIGUSR1, handler); return middle(argc) + 1; }
`, nil, []string{"wait_here", "handler", "raise", "middle", "main"}, 0},
	{"fault", waiting + `
NOINLINE void handler(int n) { wait_here(n); }
NOINLINE int middle(volatile int *x) { return *x + 1; }
int main(int argc, char **argv) { signal(SIGSEGV, handler); return middle((int *)(long)(argc * 8)) + 1; }
`, nil, []string{"wait_here", "handler", "middle", "main"}, 0},
	{"call back", waiting + `
NOINLINE int compare(const void *a, const void *b) { return wait_here(1); }
NOINLINE int middle(int x) { int a[] = {x, 2, 1}; qsort(a, 3, sizeof *a, compare); return a[0]; }
int main(int argc, char **argv) { return middle(argc) + 1; }
`, nil, []string{"wait_here", "compare", "qsort", "middle", "main"}, 0},
	{"static program", waiting + `
NOINLINE int middle(int x) { char b[100]; memset(b, x, 100); return wait_here(x) + b[x % 100]; }
int main(int argc, char **argv) { return middle(argc) + 1; }
`, []string{"-static"}, []string{"wait_here", "middle", "main"}, 0},
	{"exceptions", "// C++\n" + waiting + `
struct Held { int x; ~Held() { wait_here(x); } };
NOINLINE int middle(int x) { Held h{x}; if (x) throw x; return x; }
int main(int argc, char **argv) { try { return middle(argc); } catch (int x) { return x; } }
`, nil, []string{"wait_here", "middle", "main"}, 0},
	{"recursion", waiting + `
NOINLINE int down(int x) { return x ? down(x - 1) + x : wait_here(x); }
int main(int argc, char **argv) { return down(argc * 200) + 1; }
`, nil, []string{"wait_here", "down", "down", "main"}, 0},
	{"code made at run time", waiting + `
#include <sys/mman.h>
NOINLINE int middle(int x) { return wait_here(x) + 1; }
int main(int argc, char **argv) {
  static char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x40, 0xff, 0xd6, 0xc9, 0xc3}; /* with a frame pointer: calls its second argument */
  int (*made)(int, int (*)(int)) = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy((void *)made, code, sizeof code);
  return made(argc, middle) + 1;
}
`, nil, []string{"wait_here", "middle", "?", "main", "_start"}, 1},
}

func TestCalls(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			exe := live.Build(t, p.source, nil, append(p.flags, "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-lpthread")...)
			pid, _ := live.Start(t, exe)
			live.Settle(t, pid, pid)
			im := imageOf(t, pid)
			calls, err := Calls(im, sampleOf(t, pid, pid), nil)
			names := namesOf(im, calls)
			if err != nil {
				t.Errorf("not complete: %v", err)
			}
			at := 0
			for _, name := range names {
				if at < len(p.calls) && strings.HasPrefix(name, p.calls[at]) {
					at++
				}
			}
			if at < len(p.calls) {
				t.Errorf("%q is not in its place among the calls %q", p.calls[at], names)
			}
			guessed := 0
			for i, c := range calls {
				if c.guessed {
					guessed++
				}
				if i > 0 && c.sp != calls[i-1].cfa && !strings.Contains(p.name, "signal") && p.name != "fault" {
					t.Errorf("call %d begins at %#x, the one before ends at %#x", i, c.sp, calls[i-1].cfa)
				}
			}
			if guessed != p.guessed {
				t.Errorf("%d steps are guessed, want %d: %q", guessed, p.guessed, names)
			}
		})
	}
}

// A program whose file is gone or is another by now keeps its names.
func TestReplacedFile(t *testing.T) {
	p := programs[0]
	exe := live.Build(t, p.source, nil, "-fno-optimize-sibling-calls")
	pid, _ := live.Start(t, exe)
	live.Settle(t, pid, pid)
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, []byte("another"), 0o700); err != nil {
		t.Fatal(err)
	}
	im := imageOf(t, pid)
	calls, err := Calls(im, sampleOf(t, pid, pid), nil)
	names := namesOf(im, calls)
	if os.Geteuid() != 0 {
		live.Missing(t, "opening the files behind mappings", fs.ErrPermission)
	}
	if err != nil || !slices.Contains(names, "middle") {
		t.Errorf("got the calls %q, %v", names, err)
	}
}

// A copy that is too short gives the calls that are in it and states so.
func TestShortCopy(t *testing.T) {
	p := programs[slices.IndexFunc(programs, func(p waits) bool { return p.name == "recursion" })]
	pid, _ := live.Start(t, live.Build(t, p.source, nil, "-fomit-frame-pointer", "-fno-optimize-sibling-calls"))
	live.Settle(t, pid, pid)
	im, s := imageOf(t, pid), sampleOf(t, pid, pid)
	s.Stack = s.Stack[:512]
	calls, err := Calls(im, s, nil)
	if !errors.Is(err, ErrCopyEnds) || len(calls) < 3 {
		t.Errorf("%d calls, %v", len(calls), err)
	}
	s.Known = 1 << elffile.PC
	if _, err := Calls(im, s, nil); err == nil {
		t.Error("a stack without known registers is complete")
	}
}

var gdbFrame = regexp.MustCompile(`(?m)^#(\d+) +(?:0x([0-9a-f]+) in )?`)

// TestAgainstDebugger interrupts programs at moments of chance, and compares
// with the debugger's calls.
func TestAgainstDebugger(t *testing.T) {
	live.Tool(t, "gdb")
	t.Run("C", func(t *testing.T) {
		pid, _ := live.Start(t, live.Build(t, `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }
__attribute__((noinline)) int work(int n) {
  int *a = malloc(n * sizeof *a);
  for (int i = 0; i < n; i++) a[i] = rand();
  qsort(a, n, sizeof *a, compare);
  char text[100];
  snprintf(text, 100, "%d %f", a[0], a[1] / 3.0);
  int r = a[n / 2] + strlen(text);
  free(a);
  return r;
}
__attribute__((noinline)) int down(int x) { return x ? down(x - 1) + work(x + 3) : 0; }
int main() { puts("ready"); fflush(stdout); for (int i = 0;; i++) down(i % 20); }
`, nil, "-fomit-frame-pointer"))
		againstDebugger(t, pid, 0)
	})
	t.Run("Python", func(t *testing.T) {
		python := live.Tool(t, "python3")
		pid, _ := live.Start(t, python, "-c", `
import json, re
print("ready", flush=True)
def down(n):
    return [down(n - 1), json.loads(json.dumps({"a": [n] * 9})), re.sub("[0-9]", lambda m: m[0] * 2, "a1b2")] if n else sorted("abc", key=str.upper)
while True:
    down(9)
`)
		againstDebugger(t, pid, 4)
	})
}

func againstDebugger(t *testing.T, pid, jumps int) {
	t.Helper()
	im := imageOf(t, pid)
	compared := 0
	for i := 0; i < 12 && compared < 6; i++ {
		syscall.Kill(pid, syscall.SIGSTOP)
		s := sampleOf(t, pid, pid)
		calls, err := Calls(im, s, nil)
		out, gdbErr := exec.Command("gdb", "-nx", "-batch", "-iex", "set debug-file-directory /nowhere", "-iex", "set auto-load no",
			"-p", fmt.Sprint(pid), "-ex", "p/x $rip", "-ex", "bt").Output()
		syscall.Kill(pid, syscall.SIGCONT)
		if gdbErr != nil {
			live.Missing(t, "a gdb that attaches", gdbErr)
		}
		if !strings.Contains(string(out), fmt.Sprintf("$1 = %#x", s.Registers[elffile.PC])) {
			continue // it ran between the two looks
		}
		compared++
		if err != nil {
			t.Errorf("not complete: %v", err)
		}
		// The debugger ends at main, we at _start. It prints no address for functions
		// that were put into others, and sometimes none for the innermost.
		want := []uint64{s.Registers[elffile.PC]}
		for i, m := range gdbFrame.FindAllStringSubmatch(string(out), -1) {
			if i > 0 && m[2] != "" {
				var pc uint64
				fmt.Sscanf(m[2], "%x", &pc)
				want = append(want, pc-1) // a return address; ours is inside the call
			}
		}
		var got []uint64
		for _, c := range calls {
			got = append(got, c.PC)
		}
		// From what debug information states about jumps at the end of functions it adds
		// those that are no longer on the stack.
		left := jumps
		want = slices.DeleteFunc(want, func(pc uint64) bool {
			if left > 0 && !slices.Contains(got, pc) {
				left--
				return true
			}
			return false
		})
		if len(want) == 1 || len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("got  %x %q\nwant %x\n%s", got, namesOf(im, calls), want, out)
		}
	}
	if compared < 3 {
		t.Errorf("only %d stacks were compared", compared)
	}
}

// TestEveryMoment interrupts a program often: each stack must be complete.
func TestEveryMoment(t *testing.T) {
	exe := live.Build(t, `
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
int main() {
  struct timespec now;
  puts("ready"); fflush(stdout);
  for (unsigned i = 0;; i++) {
    for (int k = 0; k < 20; k++) clock_gettime(CLOCK_MONOTONIC, &now);
    void *p = mmap(0, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char b[64]; snprintf(b, 64, "%f %u", i / 7.0, i);
    void *q = malloc(100 + i % 1000); free(q);
    munmap(p, 65536);
  }
}
`, nil, "-fomit-frame-pointer", "-Wl,-z,lazy")
	pid, _ := live.Start(t, exe)
	im := imageOf(t, pid)
	const samples = 2000
	bad, kernels := 0, 0
	for range samples {
		s := sampleOf(t, pid, pid)
		calls, err := Calls(im, s, nil)
		if m, ok := im.Map.Find(calls[0].PC); ok && m.Path == "[vdso]" {
			kernels++
		}
		if names := namesOf(im, calls); err != nil || names[len(names)-1] != "_start" {
			bad++
			p, _ := im.Locate(s.Registers[elffile.PC])
			t.Logf("%v: %q at %#x of %s, rsp %#x, rbp %#x", err, names, p.Linked, objectName(p), s.Registers[elffile.SP], s.Registers[elffile.FP])
		}
	}
	if kernels == 0 {
		t.Error("no stack begins in the code that the kernel maps into processes")
	}
	if bad > samples/1000 {
		t.Errorf("%d of %d stacks are not complete", bad, samples)
	}
}

func sampleOf(t testing.TB, pid, tid int) *Sample {
	t.Helper()
	return sampleFrom(live.Catch(t, pid, tid, 256<<10))
}

func sampleFrom(th *live.Thread) *Sample {
	r := th.Registers
	return &Sample{Registers: Registers{r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, r.Rsp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15, r.Rip}, Known: allKnown, Stack: th.Stack}
}

func imageOf(t testing.TB, pid int) *image.Image {
	t.Helper()
	files := image.NewFiles()
	t.Cleanup(files.Close)
	im, err := image.Open(procfs.Process(pid), files)
	live.Need(t, "reading the memory of another process", err)
	t.Cleanup(im.Close)
	return im
}

func namesOf(im *image.Image, calls []Call) (out []string) {
	for _, c := range calls {
		name := "?"
		if p, ok := im.Locate(c.PC); ok && p.Object != nil {
			name = p.Object.Function(p.Linked)
		}
		out = append(out, name)
	}
	return out
}
