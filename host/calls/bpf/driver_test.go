//go:build linux && amd64

package bpf

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strandline/internal/test/live"
	"strings"
	"testing"
	"time"
)

// loader is a program that has a driver loaded and states where one of its
// functions is.
const loader = `
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  printf("%p\n", dlsym(dlopen(argv[1], RTLD_NOW), "cuMemAlloc_v2"));
  fflush(stdout);
  pause();
}
`

// driverHas is how many functions the driver of these tests has.
const driverHas = 3

// driven builds a driver. Start starts a process that has it loaded; begin reads
// how a function of it begins there.
func driven(t *testing.T) (library string, start func() (pid int, begin func() []byte)) {
	t.Helper()
	live.Traces(t)
	live.Tool(t, "gcc")
	dir := t.TempDir()
	build := func(name, source string, flags ...string) string {
		out := filepath.Join(dir, name)
		cmd := exec.Command("gcc", append([]string{"-x", "c", "-", "-o", out}, flags...)...)
		cmd.Stdin = strings.NewReader(source)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return out
	}
	library = build("libcuda.so.1", "int cuMemAlloc_v2(void **p, long n) { return !p || !n; } int cuMemAllocManaged(void **p, long n) { return !p || n < 9; } int cuMemFree_v2(void *p) { return !p; }", "-shared", "-fPIC")
	exe := build("loader", loader, "-ldl")
	return library, func() (int, func() []byte) {
		t.Helper()
		cmd := exec.Command(exe, library)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		var at int64
		line, _ := bufio.NewReader(out).ReadString('\n')
		if _, err := fmt.Sscanf(line, "0x%x", &at); err != nil {
			t.Fatalf("it says %q", line)
		}
		return cmd.Process.Pid, func() []byte {
			t.Helper()
			mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			defer mem.Close()
			b := make([]byte, 16)
			if _, err := mem.ReadAt(b, at); err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
}

// beDriverTracer watches a driver until it is killed.
func beDriverTracer() {
	tr, err := Start()
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	var pid int
	var library string
	fmt.Sscan(os.Getenv("STRANDLINE_TEST_DRIVER"), &pid, &library)
	f, err := os.Open(library)
	if err != nil {
		fmt.Println(err)
		return
	}
	if n, err := tr.AttachDriver(pid, f); n != driverHas || err != nil {
		fmt.Println(n, err)
		return
	}
	fmt.Println(driverIDs(tr))
	time.Sleep(time.Minute)
	tr.Close()
}

// TestNoProbeIsLeft closes a tracer that watches a driver, with links of many
// functions and with those of one each, and kills one. None leaves a program or
// a map in the kernel, nor a breakpoint in the process; another process with the
// same driver never has any.
func TestNoProbeIsLeft(t *testing.T) {
	library, run := driven(t)
	pid, begin := run()
	_, beside := run()
	before := begin()
	can := uprobeMulti
	defer func() { uprobeMulti = can }()
	for _, together := range []bool{true, false} {
		if together && !can() {
			t.Log("this kernel has no links of many functions")
			continue
		}
		uprobeMulti = func() bool { return together }
		attached(t, together, pid, library, func(how string) {
			same(t, how, before, begin)
		}, func() {
			if bytes.Equal(begin(), before) {
				t.Error("the function is not watched")
			}
			if !bytes.Equal(beside(), before) {
				t.Error("the function of another process is watched")
			}
		})
	}

	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "STRANDLINE_TEST_ROLE=driver-tracer", fmt.Sprintf("STRANDLINE_TEST_DRIVER=%d %s", pid, library))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	some := strings.Fields(strings.Trim(line, "[]\n"))
	if n := countListed(some); n != len(some) || n < 20 || bytes.Equal(begin(), before) {
		t.Errorf("%d of %d programs and maps are listed of the tracer that says %q, or the function is not watched", n, len(some), line)
	}
	cmd.Process.Kill()
	cmd.Wait()
	gone(t, "kill -9", some)
	same(t, "kill -9", before, begin)
}

// attached watches a driver and ends that.
func attached(t *testing.T, together bool, pid int, library string, after func(how string), meanwhile func()) {
	t.Helper()
	tr := start(t)
	f, err := os.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := tr.AttachDriver(pid, f)
	links := 5 // for the beginnings and ends of two, and the beginning of the third
	if together {
		links = 3
	}
	if err != nil || n != driverHas || len(tr.probes[pid]) != links {
		t.Fatalf("%d functions by %d links, %v", n, len(tr.probes[pid]), err)
	}
	meanwhile()
	some := driverIDs(tr)
	if n := countListed(some); n != len(some) {
		t.Fatalf("%d of %d programs and maps of a running tracer are listed", n, len(some))
	}
	tr.Close()
	gone(t, "Close", some)
	after("Close")
}

// driverIDs are the numbers of a tracer's programs and maps, with those for the
// driver.
func driverIDs(tr *Tracer) []string { return append(ids(tr), ids(&Tracer{collection: tr.driver})...) }

// same waits until a function begins as it did.
func same(t *testing.T, how string, before []byte, begin func() []byte) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if bytes.Equal(begin(), before) {
			return
		}
	}
	t.Errorf("%s leaves a breakpoint: % x, it was % x", how, begin(), before)
}

// TestNotADriverLibrary attaches to libraries that are not a driver's.
func TestNotADriverLibrary(t *testing.T) {
	tr := start(t)
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := tr.AttachDriver(os.Getpid(), f); n != 0 || err != nil {
		t.Errorf("%d functions, %v", n, err)
	}
	broken := filepath.Join(t.TempDir(), "libcuda.so.1")
	os.WriteFile(broken, []byte(elf.ELFMAG+"\x02\x01\x01 and no more"), 0o600)
	g, err := os.Open(broken)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if n, err := tr.AttachDriver(os.Getpid(), g); n != 0 || err == nil {
		t.Errorf("%d functions of a broken file, %v", n, err)
	}
}
