package pausable

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

// TestLibraryIsOfSources shows that the sources were not changed without rebuilding the
// library. test.sh builds it where the same compilers are.
func TestLibraryIsOfSources(t *testing.T) {
	t.Parallel()
	live.BuiltOf(t, "pausable/build.sh", "object/library.txt", "c/*.h", "c/*.c")
}

// TestLibraryNeedsNothing shows that the library works with any C library of GNU: it names
// none, and no version of a symbol. What it exports has its prefix.
func TestLibraryNeedsNothing(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"object/library_amd64.so", "object/library_arm64.so"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if needed, err := f.ImportedLibraries(); err != nil || len(needed) > 0 {
			t.Errorf("%s needs %v, %v", file, needed, err)
		}
		symbols, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		exported := 0
		for _, s := range symbols {
			switch {
			case s.Section == elf.SHN_UNDEF && s.Version != "":
				t.Errorf("%s needs %s of version %s", file, s.Name, s.Version)
			case s.Section == elf.SHN_UNDEF && !slices.Contains(ofLibc, s.Name):
				t.Errorf("%s needs %s, which was not thought of: is it in every C library, without a version?", file, s.Name)
			case elf.ST_TYPE(s.Info) == elf.STT_SECTION:
			case s.Section != elf.SHN_UNDEF && !strings.HasPrefix(s.Name, "pausable_") && s.Name != "cudaMalloc" && s.Name != "cudaFree":
				t.Errorf("%s exports %s", file, s.Name)
			case s.Section != elf.SHN_UNDEF:
				exported++
			}
		}
		if exported == 0 {
			t.Errorf("%s exports nothing", file)
		}
	}
}

// ofLibc are the functions that the library uses, which are in every C library of GNU
// since 2.17 and have not changed.
var ofLibc = []string{
	"__errno_location", "__register_atfork", "__tls_get_addr", "accept4", "bind", "calloc", "clock_gettime", "close", "dlerror", "dlopen",
	"dlsym", "free", "fstatfs", "ftruncate", "getenv", "geteuid", "getpid", "getsockname", "getsockopt", "listen", "madvise", "malloc", "memcmp", "memcpy",
	"memmove", "memset", "mkostemp", "mmap", "munmap", "open", "posix_fallocate", "pread", "pthread_create", "pthread_detach",
	"pthread_join", "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_sigmask", "pwrite", "qsort", "read", "recv", "send",
	"setsockopt", "sigdelset", "sigfillset", "snprintf", "socket", "strcasecmp", "strchr", "strcmp", "strcpy", "strcspn", "strerror",
	"strlen", "strncmp", "strncpy", "strrchr", "strstr", "strtoull", "unlink", "usleep", "vsnprintf", "write",
}

// TestFaults has each call of the driver fail in each operation; see testdata/faults.c.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, flags, reach, cycles string }{
		{"all", "-O1 -Wall -Wextra -Werror", "all", "1000"},
		{"addresses", "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all", "some", "1000"},
		{"threads", "-O1 -fsanitize=thread", "concurrent", "200"},
	} {
		if testing.Short() {
			if c.name != "all" {
				continue
			}
			c.reach = "some"
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			program := build(t, strings.Fields(c.flags)...)
			run := exec.Command(program, t.TempDir(), c.cycles, c.reach)
			run.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0") // it needs ptrace, which not all have
			out, err := run.CombinedOutput()
			if bytes.Contains(out, []byte("FATAL: ThreadSanitizer: unexpected memory mapping")) {
				live.Missing(t, "gcc's detector of races", "it cannot run with this kernel's choice of addresses")
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
			if c.reach == "all" {
				everySite(t, program, string(out))
			}
		})
	}
}

// everySite shows that each call of the driver in the sources was made to fail: the program
// prints where in it calls came from, how many, and how many failed.
func everySite(t *testing.T, program, out string) {
	t.Helper()
	lines := linesOf(t, program)
	failed := map[string]int{}
	for line := range strings.Lines(out) {
		var at uint64
		var calls, failures int
		if n, _ := fmt.Sscanf(line, "site %d %d %d", &at, &calls, &failures); n == 3 {
			failed[lines(at)] += failures
		}
	}
	sources, err := filepath.Glob("c/*.c")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\b(CU\(|cu\.cu\w+\()`)
	sites := 0
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			if !call.MatchString(line) {
				continue
			}
			sites++
			if site := fmt.Sprintf("%s:%d", filepath.Base(source), number); failed[site] == 0 {
				t.Errorf("%s never failed:%s", site, strings.TrimRight(line, "\n"))
			}
		}
	}
	if sites == 0 || sites < len(failed) {
		t.Errorf("the sources have %d calls of the driver, and calls came from %d: %v", sites, len(failed), failed)
	}
	t.Logf("each of %d calls of the driver in the sources failed", sites)
}

// linesOf returns what finds the file and line of an offset in a program.
func linesOf(t *testing.T, program string) func(at uint64) string {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	return func(at uint64) string {
		unit, err := data.Reader().SeekPC(at)
		if err != nil {
			t.Fatalf("%#x: %v", at, err)
		}
		lines, err := data.LineReader(unit)
		var entry dwarf.LineEntry
		if err == nil {
			err = lines.SeekPC(at, &entry)
		}
		if err != nil {
			t.Fatalf("%#x: %v", at, err)
		}
		return fmt.Sprintf("%s:%d", filepath.Base(entry.File.Name), entry.Line)
	}
}

// TestAnalyzed has the compiler look for paths that read or free what they must not.
func TestAnalyzed(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("c/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources", err)
	}
	gcc := live.Tool(t, "gcc")
	for _, source := range sources {
		args := []string{"-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Werror",
			"-fanalyzer", "-fPIC", "-c", source, "-o", filepath.Join(t.TempDir(), "object")}
		if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", source, err, out)
		}
	}
}

// build compiles the library with the program of testdata and its driver.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	gcc := live.Tool(t, "gcc")
	dir := t.TempDir()
	program := filepath.Join(dir, "faults")
	sources, err := filepath.Glob("c/*.c")
	if err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none.c")
	if err := os.WriteFile(none, []byte("int main(void) { return 0; }"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, append(slices.Clone(flags), none, "-o", program)...).CombinedOutput(); err != nil {
		live.Missing(t, "gcc "+strings.Join(flags, " "), string(out))
	}
	flags = append(flags, "-std=gnu11", "-g", "-fPIC", "-DCHUNK=65536", "-DSTAGING=65536", "-DHOST_ROOT=\""+filepath.Join(dir, "host")+"\"")
	run := func(args ...string) {
		t.Helper()
		args = append(slices.Clone(flags), args...)
		if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc %s: %v\n%s", args, err, out)
		}
	}
	run("testdata/fake.c", "-shared", "-Wl,-soname,libcuda.so.1", "-o", filepath.Join(dir, "libcuda.so.1"), "-lpthread", "-ldl")
	run(append(append([]string{"-D_GNU_SOURCE", "testdata/faults.c", "testdata/cases.c"}, sources...), "-Wl,--wrap=pthread_create,--wrap=malloc,--wrap=calloc", "-o", program, "-L"+dir, "-l:libcuda.so.1", "-Wl,-rpath,"+dir, "-ldl", "-lpthread")...)
	return program
}
