//go:build linux && amd64

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/internal/live"
	"strandline/recording"
)

// gpuGrower is a program that does something with the driver thirty times a
// second. It loads the driver when it has run for a while.
const gpuGrower = `
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
typedef uint64_t ptr;
static int (*alloc)(ptr *, size_t), (*async)(ptr *, size_t, void *), (*release)(ptr), (*host)(void **, size_t, unsigned), (*create)(ptr *, size_t, int *, long long), (*drop)(ptr),
  (*bind)(ptr, size_t, size_t, ptr, long long), (*unbind)(ptr, size_t), (*pitch)(ptr *, size_t *, size_t, size_t, unsigned), (*array)(ptr *, size_t *);
static ptr p, kept[16], handle;
__attribute__((noinline)) void take(int i) { WHAT; __asm__ volatile(""); }
int main(int argc, char **argv) {
  puts("ready"); fflush(stdout);
  usleep(700000);
  void *l = dlopen(argv[1], RTLD_NOW);
  *(void **)&alloc = dlsym(l, "cuMemAlloc_v2"), *(void **)&async = dlsym(l, "cuMemAllocAsync"), *(void **)&release = dlsym(l, "cuMemFree_v2"), *(void **)&host = dlsym(l, "cuMemHostAlloc");
  *(void **)&create = dlsym(l, "cuMemCreate"), *(void **)&drop = dlsym(l, "cuMemRelease"), *(void **)&bind = dlsym(l, "cuMemMap"), *(void **)&unbind = dlsym(l, "cuMemUnmap");
  *(void **)&pitch = dlsym(l, "cuMemAllocPitch_v2"), *(void **)&array = dlsym(l, "cuArray3DCreate_v2");
  usleep(WAIT);
  for (int i = 0; i < 3000; i++) { take(i); usleep(30000); }
}
`

// gpuPrograms take memory from the driver in one way each. Grows are those in
// which something is wrong; each piece is of so many bytes.
var gpuPrograms = []struct {
	name, what, memory string
	grows              bool
	piece              int64
}{
	{"alloc", `alloc(&p, 3 << 20)`, "device", true, 3 << 20},
	{"async", `async(&p, 1 << 20, 0)`, "device", true, 1 << 20},
	{"pitch", `size_t n; pitch(&p, &n, 1000, 2048, 4)`, "device", true, 2 << 20},
	{"array", `size_t d[] = {1024, 1024, 0, 32 | 2ull << 32}; array(&p, d)`, "device", true, 8 << 20},
	{"pinned", `void *q; host(&q, 1 << 20, 0)`, "pinned", true, 1 << 20},
	{"handles", `int prop[8] = {1, 0, 1, 0}; create(&handle, 2 << 20, prop, 0)`, "device", true, 2 << 20},
	{"released and mapped still", `int prop[8] = {1, 0, 1, 0}; create(&handle, 2 << 20, prop, 0); bind(0x700000000000 + ((ptr)i << 21), 2 << 20, 0, handle, 0); drop(handle)`, "device", true, 2 << 20},
	{"mapped and unmapped", `int prop[8] = {1, 0, 1, 0}; create(&handle, 2 << 20, prop, 0); bind(0x700000000000, 2 << 20, 0, handle, 0); drop(handle); unbind(0x700000000000, 2 << 20)`, "", false, 0},
	{"freed", `alloc(&p, 1 << 20); release(p)`, "", false, 0},
	{"refused", `alloc(&p, 1ull << 50)`, "", false, 0},
	{"working set", `if (kept[i % 16]) release(kept[i % 16]); alloc(&kept[i % 16], 1 << 20)`, "device", false, 1 << 20},
}

func buildGPU(t *testing.T, what, wait string) (exe, driver string) {
	t.Helper()
	return live.Build(t, strings.NewReplacer("WHAT", what, "WAIT", wait).Replace(gpuGrower), nil, "-fomit-frame-pointer", "-ldl"), live.Libcuda(t)
}

func traceGPU(t *testing.T, pid int, more ...string) (doc recording.Document, code int) {
	t.Helper()
	stdout, stderr, code := run(append([]string{"trace", "--gpu", "--pid", strconv.Itoa(pid), "--json"}, more...)...)
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if doc.GPU == nil {
		t.Fatalf("no gpu in %s", stdout)
	}
	return doc, code
}

func driverLeaks(doc recording.Document) bool {
	return slices.ContainsFunc(doc.Findings, func(f finding.Finding) bool {
		return f.Kind == finding.DriverLeak && f.Severity == finding.Problem
	})
}

// TestTraceOfTheDriver runs programs that load the driver while they are watched:
// what they take and do not give back is told, with the stack, and nothing else.
func TestTraceOfTheDriver(t *testing.T) {
	needBPF(t)
	programs := gpuPrograms
	if testing.Short() {
		programs = programs[:2] // the others make no other use of goroutines, which short tests are for
	}
	for _, r := range programs {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			exe, driver := buildGPU(t, r.what, "1000000")
			pid, _ := live.Start(t, exe, driver)
			doc, code := traceGPU(t, pid, "--duration", "5s")
			if r.grows && !driverLeaks(doc) { // busy with other things, the machine let it do little
				doc, code = traceGPU(t, pid, "--duration", "20s")
			}
			if driverLeaks(doc) != r.grows || r.grows && code != exitProblem {
				t.Errorf("exit status %d, findings %+v", code, doc.Findings)
			}
			if !slices.Equal(doc.GPU.Libraries, []string{driver}) {
				t.Errorf("libraries %v", doc.GPU.Libraries)
			}
			if r.memory == "" {
				if n := doc.GPU.LiveCount; n > 1 { // one can be out just then
					t.Errorf("%d pieces live", n)
				}
				return
			}
			top := doc.GPU.Stacks[0]
			if top.Memory != r.memory || top.LiveBytes != top.LiveCount*r.piece || top.LiveCount < 5 || top.Owner != "main" {
				t.Errorf("%d bytes of %s in %d pieces by %s", top.LiveBytes, top.Memory, top.LiveCount, top.Owner)
			}
			if !top.Complete || len(top.Frames) < 3 || *top.Frames[0].Function != top.Call || *top.Frames[1].Function != "take" {
				text, _ := json.Marshal(top)
				t.Errorf("the top stack is not complete, or not of take: %s", text)
			}
			if r.name == "working set" && top.LiveCount > 16 {
				t.Errorf("%d pieces live", top.LiveCount)
			}
		})
	}
}

// pythonGPU takes memory from the driver by ctypes.
const pythonGPU = `
import ctypes, sys, time
driver = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)

def workspace(size):
    p = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(size)) == 0

def serve():
    while True:
        workspace(5 << 20)
        time.sleep(0.03)

serve()
`

// TestTraceOfTheDriverInPython names the line that asks for the memory.
func TestTraceOfTheDriverInPython(t *testing.T) {
	needBPF(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 is here")
	}
	script := filepath.Join(t.TempDir(), "server.py")
	if err := os.WriteFile(script, []byte(pythonGPU), 0o600); err != nil {
		t.Fatal(err)
	}
	pid, _ := live.Start(t, python, script, live.Libcuda(t))
	doc, _ := traceGPU(t, pid, "--duration", "6s")
	i := slices.IndexFunc(doc.Findings, func(f finding.Finding) bool { return f.Kind == finding.DriverLeak })
	if i < 0 {
		t.Fatalf("no finding: %+v", doc.GPU)
	}
	f := doc.Findings[i]
	if f.Site == nil || f.Site.File != script || f.Site.Function != "workspace" || f.Site.Line != 8 || *f.Bytes%(5<<20) != 0 || *f.Bytes != doc.GPU.LiveBytes {
		t.Errorf("%s; at %+v", f.Title, f.Site)
	}
	if !doc.GPU.Stacks[0].Complete {
		t.Error("the stack is not complete")
	}
}

// TestTraceWithoutDriver says that there is none.
func TestTraceWithoutDriver(t *testing.T) {
	needBPF(t)
	pid, _ := live.Start(t, "sh", "-c", "echo ready; sleep 60")
	if said, _, code := run("trace", "--gpu", "--pid", strconv.Itoa(pid), "--duration", "1s"); code != 0 || !strings.Contains(said, "no process has loaded libcuda") {
		t.Errorf("exit status %d: %s", code, said)
	}
	if _, said, code := run("trace", "--gpu", "--rung", "polling", "--pid", strconv.Itoa(pid)); code != exitUsage || !strings.Contains(said, "--gpu needs BPF") {
		t.Errorf("exit status %d: %s", code, said)
	}
}
