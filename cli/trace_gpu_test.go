//go:build linux && amd64

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strandline/face/report"
	"strandline/finding"
	"strandline/host/store/recording"
	"strandline/internal/test/live"
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
// what they take and do not return is reported, with the stack, and nothing else.
func TestTraceOfTheDriver(t *testing.T) {
	live.Traces(t)
	needBPF(t)
	t.Parallel()
	programs := gpuPrograms
	if testing.Short() {
		programs = programs[:2] // the others use goroutines in the same ways, which short tests are for
	}
	for _, r := range programs {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			exe, driver := buildGPU(t, r.what, "1000000")
			pid, _ := live.Start(t, exe, driver)
			doc, code := traceGPU(t, pid, "--duration", "5s")
			if r.grows && !driverLeaks(doc) { // on a busy machine it got little time
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

// TestBurst reports what is soon freed, with its stack: also what was freed before
// it could be read.
func TestBurst(t *testing.T) {
	live.Traces(t)
	live.Unraced(t, "TestTraceOfTheDriver starts the same goroutines")
	needBPF(t)
	t.Parallel()
	for _, r := range []struct {
		name, what string
		peak       int64
		lasts      float64 // seconds
	}{
		{"for a second", `if (i % 60 < 4) alloc(&kept[i % 60], 8 << 20); if (i % 60 == 30) for (int k = 0; k < 4; k++) release(kept[k])`, 32 << 20, 0.8},
		{"for a moment", `alloc(&p, 32 << 20); release(p)`, 32 << 20, 0},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			exe, driver := buildGPU(t, r.what, "1000000")
			pid, _ := live.Start(t, exe, driver)
			out := filepath.Join(t.TempDir(), "run.trace")
			doc, _ := traceGPU(t, pid, "--duration", "7s", "--out", out)
			i := slices.IndexFunc(doc.GPU.Stacks, func(s recording.GPUStack) bool { return s.Peak != nil && s.Peak.Bytes == r.peak })
			if i < 0 {
				t.Fatalf("nothing has a peak of %d bytes: %+v", r.peak, doc.GPU.Stacks)
			}
			st := doc.GPU.Stacks[i]
			p := st.Peak
			if p.Until == nil || *p.Until-p.From < r.lasts || p.At < p.From || *p.Until > 8 || p.Times < 1 || *st.Frames[1].Function != "take" {
				text, _ := json.Marshal(st)
				t.Errorf("%s", text)
			}
			text, _, _ := run("diagnose", "-v", out)
			if !strings.Contains(text, "soon freed") || !strings.Contains(text, "32 MiB") {
				t.Errorf("it is not reported: %s", text)
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
	live.Traces(t)
	live.Unraced(t, "TestTraceOfTheDriver starts the same goroutines")
	needBPF(t)
	t.Parallel()
	python := live.Tool(t, "python3")
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

// fakeTool puts a tool in place of nvidia-smi. It counts, of 80 GiB, 300 MiB
// for a process, 2000 at every call but the first, and 1000 MiB for another.
func fakeTool(t *testing.T, pid int) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
case $1 in
--query-gpu=index,uuid,memory.used,memory.total)
  if [ -e %[1]s/asked ]; then used=3007; else used=1307; fi
  echo "0, GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16, $used MiB, 81559 MiB"
  echo "1, GPU-f7c1496c-b7f5-b1d2-78ea-68826f778059, 4 MiB, 81559 MiB" ;;
--query-compute-apps=gpu_uuid,pid,used_memory)
  if [ -e %[1]s/asked ]; then own=2000; else own=300; fi
  : >%[1]s/asked
  echo "GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16, %[2]d, $own MiB"
  echo "GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16, 77, 1000 MiB" ;;
*) echo "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."; exit 2 ;;
esac
`, dir, pid)
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// snapshotOf writes a snapshot with a segment of 3 MiB at each address.
func snapshotOf(t *testing.T, addresses ...uint64) string {
	t.Helper()
	var segments []string
	for _, a := range addresses {
		segments = append(segments, fmt.Sprintf(`{"device":0,"address":%d,"total_size":3145728,"allocated_size":1048576,"active_size":1048576,"stream":0,"segment_type":"large","blocks":[{"size":1048576,"state":"active_allocated"},{"size":2097152,"state":"inactive"}]}`, a))
	}
	path := filepath.Join(t.TempDir(), "step.json")
	if err := os.WriteFile(path, []byte(`{"segments":[`+strings.Join(segments, ",")+`],"device_traces":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAccountOfTheDevice breaks down the memory of a device: by the calls, by
// the driver's tool and by a snapshot, and the same again from the recording.
func TestAccountOfTheDevice(t *testing.T) {
	live.Traces(t)
	needBPF(t)
	exe, driver := buildGPU(t, `if (i < 10) alloc(&p, 3 << 20)`, "1500000") // none while the tool is asked
	pid, _ := live.Start(t, exe, driver)
	fakeTool(t, pid)
	const first, each = 0x7a0000000000, 4 << 20 // where the driver puts pieces
	out, dump := filepath.Join(t.TempDir(), "run.trace"), snapshotOf(t, first, first+each, 0x123000000)
	doc, _ := traceGPU(t, pid, "--duration", "4s", "--out", out, "--snapshot", dump)
	if len(doc.GPU.Devices) != 1 {
		t.Fatalf("%+v", doc.GPU.Devices)
	}
	const mib = 1 << 20
	d := doc.GPU.Devices[0]
	if !slices.Equal(d.Names, []string{"0"}) || *d.Used != 3007*mib || *d.Total != 81559*mib || *d.Own != 2000*mib || d.Beyond != 0 || len(d.Notes) > 0 {
		t.Errorf("%+v", d)
	}
	traced := doc.GPU.LiveBytes - 6*mib // and two pieces are PyTorch's by the snapshot
	// Of the process were 300 at first, less a segment of 3. What it took while the
	// driver was asked is not known to be unseen.
	const earlier = 297 * mib
	unseen := 2000*mib - 9*mib - traced - earlier
	if len(d.Parts) == 6 && d.Parts[2].Bytes >= earlier && d.Parts[2].Bytes < earlier+100*mib {
		unseen -= d.Parts[2].Bytes - earlier
	}
	want := []recording.GPUPart{
		{Part: recording.PartPyTorch, Bytes: 9 * mib, Allocated: new(int64(3 * mib)), Since: new(int64(6 * mib))},
		{Part: recording.PartTraced, Owner: "main", Bytes: traced},
		{Part: recording.PartEarlier, Bytes: 2000*mib - 9*mib - traced - unseen},
		{Part: recording.PartUnseen, Bytes: unseen},
		{Part: recording.PartOthers, Bytes: 1000 * mib, Count: 1},
		{Part: recording.PartRemainder, Bytes: 7 * mib},
	}
	if !reflect.DeepEqual(d.Parts, want) {
		got, _ := json.Marshal(d.Parts)
		t.Errorf("got %s, want %+v", got, want)
	}
	if !slices.ContainsFunc(doc.Findings, func(f finding.Finding) bool { return f.Kind == finding.DriverUnseen && *f.Bytes == unseen }) {
		t.Errorf("no finding of %d bytes: %+v", unseen, doc.Findings)
	}

	var again report.Diagnosis
	stdout, _, _ := run("diagnose", "--json", out)
	if err := json.Unmarshal([]byte(stdout), &again); err != nil || !reflect.DeepEqual(again.Devices, doc.GPU.Devices) {
		t.Errorf("from the recording %+v, %v", again.Devices, err)
	}
	text, _, _ := run("diagnose", "-v", out)
	if want := "GPU memory of device 0: 2.94 GiB used of 79.6 GiB"; !strings.Contains(text, want) || !strings.Contains(text, " 9 MiB  PyTorch: reserved, 3 MiB of it allocated; 6 MiB taken since the trace began\n") {
		t.Errorf("no %q in %s", want, text)
	}
	text, stderr, _ := run("diagnose", "-v", out, snapshotOf(t, first))
	if !strings.Contains(text, " 3 MiB  PyTorch: reserved, 1 MiB of it allocated; 3 MiB taken since the trace began\n") {
		t.Errorf("with another snapshot: %s %s", stderr, text)
	}
}

// TestAccountByHand makes do without the tool: with a size that is given, or with
// none, and with a snapshot that is not there.
func TestAccountByHand(t *testing.T) {
	live.Traces(t)
	live.Unraced(t, "TestAccountOfTheDevice starts the same goroutines")
	needBPF(t)
	exe, driver := buildGPU(t, `if (i < 5) alloc(&p, 3 << 20)`, "2500000")
	pid, _ := live.Start(t, exe, driver)
	t.Setenv("PATH", t.TempDir())
	doc, _ := traceGPU(t, pid, "--duration", "6s", "--device-used", "400MiB")
	if d := doc.GPU.Devices; len(d) != 1 || len(d[0].Parts) != 2 || *d[0].Used != 400<<20 || d[0].Parts[1].Bytes != 385<<20 {
		t.Errorf("%+v", d)
	}
	text, stderr, code := run("trace", "-v", "--gpu", "--pid", strconv.Itoa(pid), "--duration", "1s", "--snapshot", "none.pickle")
	if code != exitPartial || !strings.Contains(stderr, "none.pickle: no such file or directory; the totals do not include it") || !strings.Contains(text, "nvidia-smi is not here: how much of the device is used is not known") {
		t.Errorf("exit status %d: %s %s", code, stderr, text)
	}
	for _, c := range [][2]string{{"--device-used=80", "write the size with its unit"}, {"--device-used=", "--device-used"}, {"--snapshot=x", "need --gpu"}} {
		args := []string{"trace", "--pid", strconv.Itoa(pid), c[0]}
		if _, stderr, code := run(args...); code != exitUsage || !strings.Contains(stderr, c[1]) {
			t.Errorf("%v: exit status %d: %s", args, code, stderr)
		}
	}
}

// TestTraceWithoutDriver states that there is none.
func TestTraceWithoutDriver(t *testing.T) {
	live.Traces(t)
	needBPF(t)
	t.Parallel()
	pid, _ := live.Start(t, "sh", "-c", "echo ready; sleep 60")
	if stdout, _, code := run("trace", "-v", "--gpu", "--pid", strconv.Itoa(pid), "--duration", "1s"); code != 0 || !strings.Contains(stdout, "no process has loaded libcuda") {
		t.Errorf("exit status %d: %s", code, stdout)
	}
	if _, stderr, code := run("trace", "--gpu", "--rung", "polling", "--pid", strconv.Itoa(pid)); code != exitUsage || !strings.Contains(stderr, "--gpu needs BPF") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}
