//go:build linux && amd64

package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/host/store/recording"
	"strandline/internal/test/live"
)

// combined are programs that grow in two ways at once, and their kinds of
// finding.
var combined = []struct {
	name, begin, what string
	want              []finding.Kind
}{
	{"heap and mappings", "", "heap(); map(65536);", []finding.Kind{finding.HeapLeak, finding.MmapLeak}},
	{"heap and page cache", "", "heap(); cache();", []finding.Kind{finding.HeapLeak, finding.PageCache}},
	{"heap and a child that writes to what it shares", "part();", "heap();", []finding.Kind{finding.HeapLeak, finding.CopyOnWrite}},
	{"heap and threads", "", "heap(); thread(i);", []finding.Kind{finding.HeapLeak, finding.ThreadStacks}},
	{"shared memory and files in memory", "", "share(); hold(i);", []finding.Kind{finding.SharedMemory, finding.MemoryFiles}},
	{"mappings of which some are locked", "", "pin(); map(65536);", []finding.Kind{finding.Pinned, finding.MmapLeak}},
	{"mappings and huge pages", "", "huge(i); map(65536);", []finding.Kind{finding.HugePages, finding.MmapLeak}},
	{"blocks that are kept and arenas that are", "", "heap(); arena(i);", []finding.Kind{finding.HeapLeak, finding.ArenaRetention}},
}

// twice is a program that does one thing and another a hundred times a second.
const twice = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static const size_t MIB = 1 << 20;
static char *volatile kept, page[1 << 17];
static char *map_of(size_t n, int flags) { return mmap(0, n, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0); }
NOINLINE void map(size_t n) { memset(map_of(n, MAP_PRIVATE), 1, n); }
NOINLINE void share(void) { memset(map_of(65536, MAP_SHARED), 1, 65536); }
NOINLINE void pin(void) { mlock(map_of(65536, MAP_PRIVATE), 65536); }
NOINLINE void heap(void) { for (int i = 0; i < 40; i++) memset(kept = malloc(2000), 1, 2000); }
NOINLINE void cache(void) {
  static int fd;
  if (!fd) { char name[] = "/tmp/strandline-test-XXXXXX"; fd = mkstemp(name); unlink(name); }
  if (write(fd, page, sizeof page) < 0) exit(1);
}
NOINLINE void hold(int i) { if (i % 2 == 0 && write(memfd_create("held", 0), page, sizeof page) < 0) exit(1); }
NOINLINE void huge(int i) {
  static char *at;
  if (!at) {
    at = map_of(1024 * MIB, MAP_PRIVATE);
    at = (char *)(((size_t)at + 2 * MIB - 1) & ~(2 * MIB - 1));
    madvise(at, 1022 * MIB, MADV_HUGEPAGE);
  }
  if (i % 10 == 0) { *at = 1; at += 2 * MIB; }
}
static void *idle(void *x) { pause(); return x; }
NOINLINE void thread(int i) { pthread_t t; if (i % 5 == 0) pthread_create(&t, 0, idle, 0); }
static void *burst(void *x) {
  void *some[3000];
  for (int i = 0; i < 3000; i++) memset(some[i] = malloc(1024), 1, 1024);
  for (int i = 0; i < 3000; i++) if (i % 64) free(some[i]);
  return idle(x);
}
NOINLINE void arena(int i) { pthread_t t; if (i % 30 == 0) pthread_create(&t, 0, burst, 0); }
void part(void) {
  char *common = malloc(256 * MIB);
  memset(common, 1, 256 * MIB);
  if (fork()) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (size_t at = 0; at < 256 * MIB; at += 4096) {
    common[at] = 2;
    if (at % (32 * 4096) == 0) usleep(10000);
  }
  pause();
}
int main(void) {
  BEGIN
  puts("ready"); fflush(stdout);
  for (int i = 0; i < 3000; i++) { WHAT usleep(10000); }
}
`

// TestTwoKindsAtOnce finds both kinds, nothing else, and no more bytes than there
// are.
func TestTwoKindsAtOnce(t *testing.T) {
	live.Traces(t)
	live.Unraced(t, "it traces many programs, and starts no goroutine that others do not")
	needBPF(t)
	t.Parallel()
	for _, c := range combined {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if setting, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); slices.Contains(c.want, finding.HugePages) &&
				(err != nil || strings.Contains(string(setting), "[never]")) {
				live.Missing(t, "transparent huge pages", "they are off")
			}
			exe := live.Build(t, strings.NewReplacer("BEGIN", c.begin, "WHAT", c.what).Replace(twice), nil, "-pthread")
			pid, _ := live.Start(t, exe)
			stdout, stderr, _ := run("trace", "--pid", strconv.Itoa(pid), "--duration", "6s", "--json")
			var doc recording.Document
			if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
				t.Fatal(err, stderr)
			}
			var got []finding.Kind
			inside, grown := int64(0), doc.RSSGrowth
			for _, f := range doc.Findings {
				if f.Severity == finding.Info && !slices.Contains(c.want, f.Kind) {
					continue
				}
				got = append(got, f.Kind)
				var e finding.SampledGrowthEvidence
				if text, err := json.Marshal(f.Evidence); err != nil || json.Unmarshal(text, &e) != nil {
					t.Fatalf("evidence %s, %v", text, err)
				}
				if !e.OutsideRSS {
					inside += *f.Bytes
				}
				grown = max(grown, e.RSSGrowthBytes) // since the first look, which comes before the trace begins
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(c.want))
			if slices.Contains(want, finding.PageCache) && !slices.Contains(got, finding.PageCache) { // no control group shows it here
				want = slices.DeleteFunc(want, func(k finding.Kind) bool { return k == finding.PageCache })
			}
			if !slices.Equal(got, want) || float64(inside) > 1.05*float64(grown)+1<<20 {
				t.Errorf("found %v with %d bytes of %d, want %v", got, inside, grown, want)
				for _, f := range doc.Findings {
					t.Logf("%s %s, %d bytes: %s", f.Severity, f.Kind, *f.Bytes, f.Title)
				}
			}
		})
	}
}
