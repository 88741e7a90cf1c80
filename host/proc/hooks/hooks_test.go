package hooks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/host/code/image"
	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// patcher changes its program as hookers do; FORM is how the code is patched.
const patcher = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int hook_munmap(void *a, size_t n) { return syscall(SYS_munmap, a, n); }
void *hook_mremap(void *a, size_t o, size_t n, int f) { return (void *)syscall(SYS_mremap, a, o, n, f, 0); }
static void open_up(void *p) { mprotect((void *)((uintptr_t)p & ~4095ul), 8192, PROT_READ | PROT_WRITE | PROT_EXEC); }
static int slots(struct dl_phdr_info *i, size_t s, void *d) {
  Elf64_Sym *sym = 0; char *str = 0; Elf64_Rela *rel = 0; size_t n = 0;
  for (int k = 0; k < i->dlpi_phnum; k++)
    if (i->dlpi_phdr[k].p_type == PT_DYNAMIC)
      for (Elf64_Dyn *y = (void *)(i->dlpi_addr + i->dlpi_phdr[k].p_vaddr); y->d_tag; y++) {
        if (y->d_tag == DT_SYMTAB) sym = (void *)y->d_un.d_ptr;
        if (y->d_tag == DT_STRTAB) str = (void *)y->d_un.d_ptr;
        if (y->d_tag == DT_JMPREL) rel = (void *)y->d_un.d_ptr;
        if (y->d_tag == DT_PLTRELSZ) n = y->d_un.d_val / sizeof *rel;
      }
  for (size_t k = 0; k < n; k++)
    if (!strcmp(str + sym[ELF64_R_SYM(rel[k].r_info)].st_name, "munmap")) {
      void **slot = (void **)(i->dlpi_addr + rel[k].r_offset);
      open_up(slot);
      *slot = hook_munmap;
    }
  return 1;
}
__attribute__((constructor)) static void hook(void) {
  unsigned char *p = dlsym(RTLD_NEXT, "mremap"), code[16] = {0};
  void *to = hook_mremap;
  if (!p) _exit(1);
  int n = 0;
  if (FORM == 0) dl_iterate_phdr(slots, 0);
  if (FORM == 1) { memcpy(code, (char[]){0x48, 0xb8}, 2); memcpy(code + 2, &to, 8); memcpy(code + 10, (char[]){0xff, 0xe0}, 2); n = 12; }
  if (FORM == 2) { memcpy(code, (char[]){0x49, 0xbb}, 2); memcpy(code + 2, &to, 8); memcpy(code + 10, (char[]){0x41, 0xff, 0xe3}, 3); n = 13; }
  if (FORM == 3) { memcpy(code, (char[]){0xff, 0x25, 0, 0, 0, 0}, 6); memcpy(code + 6, &to, 8); n = 14; }
  if (FORM == 4) { /* five bytes to a trampoline near by */
    unsigned char *t = mmap((void *)(((uintptr_t)p & ~4095ul) - (256ul << 20)), 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(t, (char[]){0x49, 0xbb}, 2); memcpy(t + 2, &to, 8); memcpy(t + 10, (char[]){0x41, 0xff, 0xe3}, 3);
    int away = t - (p + 5);
    code[0] = 0xe9; memcpy(code + 1, &away, 4); n = 5;
  }
  if (FORM == 5) { code[0] = 0xcc; n = 1; }
  if (n) { open_up(p); memcpy(p, code, n); }
}
`

const mapper = `
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char *p = mmap(0, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (argc > 1) p = mremap(p, 65536, 65536, MREMAP_MAYMOVE);
  munmap(p, 65536);
  puts("ready"); fflush(stdout);
  pause();
}
`

func TestHooks(t *testing.T) {
	got := Hook{Symbol: "munmap", Mechanism: SlotPatched, Object: "main", Owner: "libhook.so", OwnerSymbol: "hook_munmap"}
	code := Hook{Symbol: "mremap", Mechanism: CodePatched, Object: "libc.so.6", Owner: "libhook.so", OwnerSymbol: "hook_mremap"}
	for _, c := range []struct {
		name, form  string
		want        []Hook
		breakpoints int
	}{
		{"offset table", "0", []Hook{got}, 0},
		{"mov rax; jmp rax", "1", []Hook{code}, 0},
		{"mov r11; jmp r11", "2", []Hook{code}, 0},
		{"jmp through memory", "3", []Hook{code}, 0},
		{"jmp to a trampoline", "4", []Hook{code}, 0},
		{"breakpoint", "5", nil, 1},
		{"nothing", "6", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			exe := live.Build(t, mapper, map[string]string{"hook": "#define FORM " + c.form + patcher})
			pid, _ := live.Start(t, exe)
			h := hooksOf(t, pid)
			if len(h.Hooks) != len(c.want) {
				t.Fatalf("got the hooks %+v, want %+v", h.Hooks, c.want)
			}
			for i, got := range h.Hooks {
				got.Object, got.Owner = filepath.Base(got.Object), filepath.Base(got.Owner)
				if got.target = 0; got != c.want[i] {
					t.Errorf("got the hook %+v, want %+v", got, c.want[i])
				}
			}
			if len(h.Breakpoints) != c.breakpoints {
				t.Errorf("got the breakpoints %+v, want %d", h.Breakpoints, c.breakpoints)
			}
			if h.Slots == 0 {
				t.Error("no slot was compared")
			}
		})
	}
}

// A program that is linked to fixed addresses takes those of functions from its
// own linkage table.
func TestNoHooksInFixedProgram(t *testing.T) {
	exe := live.Build(t, `
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *(*make)(size_t) = malloc;
void (*unmake)(void *) = free;
int main(void) { unmake(make(100)); puts("ready"); fflush(stdout); pause(); }
`, map[string]string{"taker": "#include <stdlib.h>\nvoid *take(void) { void *(*volatile f)(size_t) = malloc; return f(10); }"}, "-no-pie", "-fno-pic")
	pid, _ := live.Start(t, exe)
	if h := hooksOf(t, pid); len(h.Hooks) > 0 {
		t.Errorf("got the hooks %+v", h.Hooks)
	}
}

// A library that was put before libc is in order, and reported.
func TestInterposed(t *testing.T) {
	exe := live.Build(t, mapper, map[string]string{"before": "#define _GNU_SOURCE\n#include <sys/syscall.h>\n#include <unistd.h>\nint munmap(void *a, unsigned long n) { return syscall(SYS_munmap, a, n); }"})
	pid, _ := live.Start(t, exe)
	h := hooksOf(t, pid)
	if len(h.Hooks) > 0 {
		t.Errorf("got the hooks %+v", h.Hooks)
	}
	if len(h.Interposed) != 1 || filepath.Base(h.Interposed[0].Object) != "libbefore.so" || !slices.Equal(h.Interposed[0].Symbols, []string{"munmap"}) {
		t.Errorf("got %+v for a library with a munmap of its own", h.Interposed)
	}
}

// nixl calls UCX to change a setting, and ucx is a UCX of some minor version.
const (
	nixl = `
int ucp_config_modify(void *config, const char *name, const char *value);
int modify(void *config) { return ucp_config_modify(config, "%s", "1024"); }
`
	ucx = `
void ucm_set_event_handler(void) {}
void ucs_rcache_create(void) {}
void ucp_init_version(void) {}
void ucp_config_modify(void) {}
void ucp_get_version(unsigned *a, unsigned *b, unsigned *c) { *a = 1; *b = %s; *c = 3; }
`
)

// TestCopiesOfUCX has NIXL, which bounds the cache of the copy that it is linked with, beside another copy, which may
// take its calls, and another user.
func TestCopiesOfUCX(t *testing.T) {
	other := filepath.Join(filepath.Dir(live.Build(t, "int main(void) { return 0; }", map[string]string{"other": fmt.Sprintf(ucx, "18")})), "libother.so")
	const main = `
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  if (argc > 1 && !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) return 1;
  puts("ready"); fflush(stdout);
  pause();
}
`
	nixl := fmt.Sprintf(nixl, "RCACHE_MAX_UNRELEASED")
	const user = "int ucp_init_version(void);\nint start(void) { return ucp_init_version(); }"
	for _, c := range []struct {
		name, more, other, preload, user string
		want                             string // versions, and which leak
	}{
		{"two copies", nixl, other, "", "", "1.18.3 leaks 1.20.3"},
		{"the other takes the calls", nixl, "", other, "", "1.18.3 leaks 1.20.3"},
		{"one copy", nixl, "", "", "", "1.20.3"},
		{"another user", nixl, "", "", user, "1.20.3 leaks"},
		{"no user", "", other, "", "", "1.18.3 leaks 1.20.3 leaks"},
	} {
		libraries := map[string]string{"renamed-1234": fmt.Sprintf(ucx, "20")}
		if c.user != "" {
			libraries["user"] = c.user
		}
		exe := live.Build(t, main+c.more, libraries)
		t.Setenv("LD_PRELOAD", c.preload)
		var args []string
		if c.other != "" {
			args = append(args, c.other)
		}
		pid, _ := live.Start(t, exe, args...)
		var got []string
		for _, l := range hooksOf(t, pid).Libraries {
			text := l.Version
			if l.Leaks != "" {
				text += " leaks"
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %s", c.name, got, c.want)
		}
	}
}

// Libraries are known by what they export, and UCX's version by the numbers that
// its code stores.
func TestKnownLibraries(t *testing.T) {
	bounds, others := fmt.Sprintf(nixl, "RCACHE_MAX_UNRELEASED"), fmt.Sprintf(nixl, "NET_DEVICES")
	for _, c := range []struct {
		minor, more, env string
		leaks            bool
		caller           string
	}{
		{"13", "", "", false, ""},
		{"18", "", "", true, ""},
		{"20", "", "", true, ""},
		{"20", "void ucs_interval_tree_insert(void) {}", "", false, ""},
		{"21", "", "", false, ""},
		{"18", "", "UCX_RCACHE_MAX_UNRELEASED=1024", false, ""},
		{"18", "", "UCX_RCACHE_MAX_UNRELEASED=inf", true, ""},
		{"18", "", "UCX_MEM_MMAP_HOOK_MODE=none", false, ""},
		{"18", "", "UCX_RCACHE_ENABLE=n", false, ""},
		{"18", "", "UCX_RCACHE_ENABLE=y", true, ""},
		{"18", "", "UCX_RCACHE_ENABLE=off", false, ""},
		{"18", "", "UCX_RCACHE_ENABLE=0", false, ""},
		{"18", "", "UCX_RCACHE_MAX_UNRELEASED=INF", true, ""},
		{"20", "", "", false, bounds},
		{"20", "", "", true, others},
		{"20", "", "UCX_RCACHE_MAX_UNRELEASED=inf", true, bounds},
	} {
		t.Run(c.minor+c.more+c.env, func(t *testing.T) {
			libraries := map[string]string{"renamed-1234": c.more + fmt.Sprintf(ucx, c.minor)}
			if c.caller != "" {
				libraries["plugin_UCX"] = c.caller
			}
			exe := live.Build(t, mapper, libraries)
			if name, value, ok := strings.Cut(c.env, "="); ok {
				t.Setenv(name, value)
			}
			pid, _ := live.Start(t, exe)
			h := hooksOf(t, pid)
			if len(h.Libraries) != 1 || h.Libraries[0].Name != "UCX" || h.Libraries[0].Version != "1."+c.minor+".3" {
				t.Fatalf("got the libraries %+v", h.Libraries)
			}
			if off := strings.Contains(h.Libraries[0].Does, "turns that off"); off != (c.env == "UCX_MEM_MMAP_HOOK_MODE=none") {
				t.Errorf("it %s", h.Libraries[0].Does)
			}
			if leaks := h.Libraries[0].Leaks != ""; leaks != c.leaks {
				t.Errorf("leaks: %v, want %v", leaks, c.leaks)
			}
		})
	}
}

// heaptrack's library exports the functions of mimalloc, whose calls it records.
func TestRecorderIsNoAllocator(t *testing.T) {
	exe := live.Build(t, mapper, map[string]string{
		"preload":  "void heaptrack_malloc(void) {}\nvoid mi_malloc(void) {}",
		"mimalloc": "void mi_malloc(void) {}",
	})
	pid, _ := live.Start(t, exe)
	var got []string
	for _, l := range hooksOf(t, pid).Libraries {
		got = append(got, l.Name)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"heaptrack", "mimalloc"}) {
		t.Errorf("got %q", got)
	}
}

func hooksOf(t *testing.T, pid int) *Scan {
	t.Helper()
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(procfs.Process(pid), files)
	live.Need(t, "reading the memory of another process", err)
	defer im.Close()
	pages, err := procfs.Process(pid).Pages()
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close()
	h, err := Find(im, pages)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// FuzzJump decodes code that was written over, as a hostile process can have it:
// its targets and the words that it leads over are arbitrary.
func FuzzJump(f *testing.F) {
	f.Add([]byte{0xf3, 0x0f, 0x1e, 0xfa, 0xe9, 1, 2, 3, 4}, uint64(1<<47))
	f.Add([]byte{0xff, 0x25, 0xff, 0xff, 0xff, 0xff}, ^uint64(0))
	f.Add([]byte{0x49, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0xff, 0xe3}, uint64(0))
	files := image.NewFiles()
	f.Cleanup(files.Close)
	im, err := image.Open(procfs.Process(os.Getpid()), files)
	if err != nil {
		f.Skipf("this process cannot be read here: %v", err)
	}
	f.Cleanup(im.Close)
	f.Fuzz(func(t *testing.T, code []byte, at uint64) {
		if len(code) < longestPatch {
			code = append(code, make([]byte, longestPatch-len(code))...)
		}
		if to, ok := jump(im, code[:longestPatch], at); ok {
			h := &Scan{}
			h.add(im, Hook{target: to})
		}
		isProbe(im, code, at)
	})
}
