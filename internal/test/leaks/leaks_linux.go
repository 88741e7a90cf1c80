package leaks

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

//go:embed programs
var programs embed.FS

// A Program grows by 16 MiB a second in one way, for at least eight seconds.
type Program struct {
	// Name is that of its file without suffix, and the kind of finding that it must
	// lead to; "quiet" must lead to none.
	Name string
}

// All are the programs.
func All() []Program {
	return []Program{
		{Name: "mmap-leak"},
		{Name: "heap-leak"},
		{Name: "python-objects"},
		{Name: "arena-retention"},
		{Name: "allocator-retention"},
		{Name: "thp"},
		{Name: "mremap"},
		{Name: "regrown"},
		{Name: "pinned"},
		{Name: "shm"},
		{Name: "memfd"},
		{Name: "page-cache"},
		{Name: "file-mapping"},
		{Name: "copy-on-write"},
		{Name: "thread-stacks"},
		{Name: "kernel"},
		{Name: "quiet"},
	}
}

// Command builds a program, and returns its command line. It skips the test, by name, where
// something that the program needs is missing.
func (p Program) Command(t testing.TB) (args []string) {
	t.Helper()
	if p.Name == "python-objects" {
		python := live.Tool(t, "python3")
		script := filepath.Join(t.TempDir(), p.Name+".py")
		write(t, script, read(t, p.Name+".py"))
		return []string{python, script}
	}
	header := t.TempDir()
	write(t, filepath.Join(header, "pace.h"), read(t, "pace.h"))
	args = []string{live.Build(t, read(t, p.Name+".c"), nil, "-I"+header, "-fno-optimize-sibling-calls", "-lpthread")}
	switch p.Name {
	case "allocator-retention": // which maps what it needs, and not ever larger pieces ahead
		args = append([]string{"env", "LD_PRELOAD=" + jemalloc(t), "MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1,retain:false"}, args...)
	case "thp":
		if setting, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil || strings.Contains(string(setting), "[never]") {
			live.Missing(t, "transparent huge pages", "they are off")
		}
	case "page-cache", "file-mapping":
		args = append(args, filepath.Join(t.TempDir(), "data"))
	}
	return args
}

// Start builds and starts a program as [Program.Command] does. It runs until the test ends.
func (p Program) Start(t testing.TB) (pid int) {
	t.Helper()
	args := p.Command(t)
	pid, line := live.Start(t, args[0], args[1:]...)
	if child, err := strconv.Atoi(line); err == nil {
		pid = child
	}
	if p.Name == "page-cache" || p.Name == "kernel" {
		apart(t, pid)
	}
	return pid
}

// Kept skips the test of a program that grows in the cache of files, where the
// machine was short of memory and took some back: there it does not grow. Before
// is what [Reclaimed] returned when the program began.
func (p Program) Kept(t testing.TB, before int64) {
	t.Helper()
	if n := Reclaimed() - before; (p.Name == "page-cache" || p.Name == "file-mapping") && n > 4<<20 {
		live.Missing(t, "free memory", fmt.Sprintf("the kernel took %d MiB of files back", n>>20))
	}
}

// Reclaimed is the memory that the kernel took back since the machine began, in
// bytes.
func Reclaimed() (bytes int64) {
	text, _ := os.ReadFile("/proc/vmstat")
	for line := range strings.Lines(string(text)) {
		var pages int64
		if name, _, _ := strings.Cut(line, " "); name == "pgsteal_kswapd" || name == "pgsteal_direct" {
			fmt.Sscan(line[len(name):], &pages)
		}
		bytes += pages * int64(os.Getpagesize())
	}
	return bytes
}

// apart puts a process into a new control group, below the one that it is
// in, so that what others do is not attributed to it. Where that is not
// allowed it stays.
func apart(t testing.TB, pid int) {
	t.Helper()
	g, err := procfs.Process(pid).Cgroup()
	if err != nil {
		return
	}
	own, err := os.MkdirTemp(g.Folder, "strandline-test-")
	if err != nil {
		return
	}
	members := filepath.Join(own, "cgroup.procs")
	if _, err := os.Stat(filepath.Join(own, "memory.stat")); err != nil || os.WriteFile(members, []byte(strconv.Itoa(pid)), 0) != nil {
		os.Remove(own)
		return
	}
	t.Cleanup(func() {
		syscall.Kill(pid, syscall.SIGKILL)
		// A group with members cannot be removed.
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if os.Remove(own) == nil {
				return
			}
		}
		t.Errorf("%s cannot be removed", own)
	})
}

// jemalloc returns where a system keeps it.
func jemalloc(t testing.TB) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib/*/libjemalloc.so.2", "/usr/lib*/libjemalloc.so.2"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	live.Missing(t, "jemalloc", "it is not installed")
	return ""
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := programs.ReadFile("programs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
