package footprint_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strandline/finding"
	"strandline/footprint"
	"strandline/internal/live"
	"strandline/procfs"
)

// programs are the classes with the programs of testdata that grow in this way.
// The first word of a program's name is its class.
var programs = []string{
	"mmap-leak", "heap-leak", "heap-leak.large", "heap-leak.thread", "python-objects", "arena-retention",
	"allocator-retention", "thp", "mremap", "pinned", "shm", "page-cache", "file-mapping", "copy-on-write", "memfd",
	"thread-stacks", "kernel", "steady",
}

// TestConfusion runs a program of each class and prints what each is taken for:
//
//	go test ./growth -run Confusion -v
func TestConfusion(t *testing.T) {
	var mu sync.Mutex
	taken := map[string]map[finding.Kind]int64{}
	t.Run("programs", func(t *testing.T) {
		for _, name := range programs {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				g := observe(t, name)
				sums := map[finding.Kind]int64{}
				for _, p := range g.Parts {
					sums[p.Class] += p.Bytes
				}
				mu.Lock()
				taken[name] = sums
				mu.Unlock()
				t.Logf("RSS grew by %d KiB: %d anonymous, %d of files, %d shared; parts %+v; missing %q", g.RSS>>10, g.Anon>>10, g.File>>10,
					g.Shared>>10, g.Parts, g.After.Missing)
				want := finding.Kind(strings.SplitN(name, ".", 2)[0])
				if name == "steady" {
					if len(g.Parts) > 0 {
						t.Errorf("nothing grows, and %+v is told", g.Parts)
					}
					return
				}
				if len(g.Parts) == 0 || g.Parts[0].Class != want {
					t.Fatalf("want %s first, got %+v", want, g.Parts)
				}
				for _, p := range g.Parts[1:] {
					if p.Bytes > g.Parts[0].Bytes/5 {
						t.Errorf("%s is claimed, too: %+v", p.Class, g.Parts)
					}
				}
				if e := g.Explained(); e < 0.8 {
					t.Errorf("%.0f %% of the growth is explained", 100*e)
				}
			})
		}
	})
	t.Log("\n" + matrix(taken))
}

// matrix is a line for each program that ran and a column for each class that
// was told, in MiB.
func matrix(taken map[string]map[finding.Kind]int64) string {
	var classes []finding.Kind
	for _, sums := range taken {
		for c := range sums {
			if !slices.Contains(classes, c) {
				classes = append(classes, c)
			}
		}
	}
	slices.Sort(classes)
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s", "MiB")
	for _, c := range classes {
		fmt.Fprintf(&b, " %*s", len(c), c)
	}
	for _, name := range programs {
		if taken[name] == nil {
			continue
		}
		fmt.Fprintf(&b, "\n%-22s", name)
		for _, c := range classes {
			text := "."
			if n := taken[name][c]; n > 0 {
				text = fmt.Sprintf("%.1f", float64(n)/(1<<20))
			}
			fmt.Fprintf(&b, " %*s", len(c), text)
		}
	}
	return b.String()
}

// observe runs a program and looks at it when it begins to grow and when it has
// grown.
func observe(t *testing.T, name string) *footprint.Growth {
	command := build(t, name)
	pid, _ := live.Start(t, command[0], command[1:]...)
	p := procfs.Process(pid)
	before, err := footprint.Observe(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(before.Missing) > 0 && !slices.ContainsFunc(before.Missing, func(m string) bool { return strings.Contains(m, "control group") }) {
		t.Skipf("here cannot be read: %q", before.Missing)
	}
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		st, err := p.Status()
		if err != nil {
			t.Fatal(err)
		}
		if st.Name == "grown" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the program does not come to its end")
		}
	}
	after, err := footprint.Observe(p)
	if err != nil {
		t.Fatal(err)
	}
	if name == "mremap" { // by the maps alone it can look like mappings that were merged
		var none, all uint64 = 0, 50 << 20
		before.Remapped, after.Remapped = &none, &all
	}
	memory, err := p.Memory()
	if err != nil {
		t.Skipf("the memory of another process may not be read here: %v", err)
	}
	defer memory.Close()
	return footprint.Over([]*footprint.Observation{before, after}, memory)
}

// build makes the command that runs a program.
func build(t *testing.T, name string) []string {
	if name == "python-objects" {
		python, err := exec.LookPath("python3")
		if err != nil {
			t.Skip("there is no python3")
		}
		return []string{python, "testdata/python-objects.py"}
	}
	source, err := os.ReadFile(filepath.Join("testdata", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	exe := live.Build(t, string(source), nil, "-I"+here, "-pthread")
	switch name {
	case "thp":
		if mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil || strings.Contains(string(mode), "[never]") {
			t.Skip("there are no transparent huge pages")
		}
	case "allocator-retention":
		found, _ := filepath.Glob("/usr/lib/*/libjemalloc.so.2")
		if len(found) == 0 {
			t.Skip("libjemalloc.so.2 is not installed")
		}
		return []string{"env", "LD_PRELOAD=" + found[0], exe}
	case "file-mapping":
		return []string{exe, filepath.Join(t.TempDir(), "file")}
	case "page-cache":
		return inGroup(t, exe, filepath.Join(t.TempDir(), "file"))
	case "kernel":
		return inGroup(t, exe)
	}
	return []string{exe}
}

// inGroup runs a command in a memory cgroup of its own, in which nothing else is
// counted.
func inGroup(t *testing.T, command ...string) []string {
	self, err := procfs.Process(os.Getpid()).Cgroup()
	if err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(self.Folder, fmt.Sprintf("strandline-test-%d-%s", os.Getpid(), filepath.Base(t.Name())))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	t.Cleanup(func() {
		for range 100 { // its last process ends first
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	if _, err := os.Stat(filepath.Join(dir, "memory.stat")); err != nil {
		t.Skip("a cgroup that can be made here counts no memory")
	}
	return append([]string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, dir}, command...)
}
