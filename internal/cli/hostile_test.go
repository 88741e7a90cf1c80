//go:build linux && amd64

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"strandline/internal/live"
	"strandline/recording"
)

// hostile is a program that is no easy target: what it does is its first
// argument. All of them grow.
const hostile = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static void *map(size_t n) { char *p = mmap(0, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memset(p, 1, n); return p; }
__attribute__((noinline)) void grow(void) { map(151552); }
static void on(int times, void (*f)(void)) { while (times--) { f(); usleep(10000); } }
int main(int c, char **v) {
  const char *how = v[1];
  int n = c > 2 ? atoi(v[2]) : 0;
  setvbuf(stdout, 0, _IONBF, 0);
  if (!strcmp(how, "again")) { /* runs itself again and again */
    char left[20];
    sprintf(left, "%d", n - 1);
    grow();
    if (n) execl("/proc/self/exe", v[0], how, left, NULL);
  }
  puts("ready");
  if (!strcmp(how, "library")) on(3000, dlsym(dlopen(v[2], RTLD_NOW), "leak"));
  if (!strcmp(how, "storm")) for (int i = 0; i < n; i++) {
    int p = i % 2 ? vfork() : fork();
    if (!p && i % 2) { execl("/bin/true", "true", NULL); _exit(1); }
    if (!p) { map(65536); _exit(0); }
    waitpid(-1, 0, i % 16 ? WNOHANG : 0);
    if (i % 16 == 0) grow();
  }
  if (!strcmp(how, "chain")) for (int i = 0; i < n; i++) { grow(); int p = fork(); if (p) { waitpid(p, 0, 0); pause(); } }
  if (!strcmp(how, "name")) prctl(PR_SET_NAME, ") R 1\n\x1b[2");
  if (!strcmp(how, "many")) for (int i = 0; i < n; i++) mmap(0, 4096, i % 2 ? 1 : 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  on(3000, grow);
}
`

// judged traces a process for a time, and returns what is told.
func judged(t *testing.T, args ...string) (doc recording.Document, code int) {
	t.Helper()
	stdout, stderr, code := run(append([]string{"trace", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatalf("exit status %d, %v: %s", code, err, stderr)
	}
	return doc, code
}

// held are the bytes that are mapped by calls with a function in their stack.
func held(doc *recording.Document, function string) (bytes int64) {
	for _, s := range doc.Stacks {
		for _, f := range s.Frames {
			if f.Function != nil && *f.Function == function {
				bytes += s.LiveBytes
				break
			}
		}
	}
	return bytes
}

// TestTraceOfSilentFiles traces a process that runs code of a file whose server
// does not answer any more: that is told without names, and not waited for.
func TestTraceOfSilentFiles(t *testing.T) {
	needBPF(t)
	exe := live.Build(t, hostile, map[string]string{"leak": `
		#include <string.h>
		#include <sys/mman.h>
		void leak(void) { memset(mmap(0, 151552, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 151552); }`})
	library, err := os.ReadFile(filepath.Join(filepath.Dir(exe), "libleak.so"))
	if err != nil {
		t.Fatal(err)
	}
	fs := live.Mount(t, library)
	pid, _ := live.Start(t, exe, "library", filepath.Join(fs.Dir, "file"))
	time.Sleep(200 * time.Millisecond)
	fs.Silence()
	began := time.Now()
	doc, _ := judged(t, "--pid", strconv.Itoa(pid), "--duration", "5s")
	if took := time.Since(began); took > 15*time.Second || doc.RSSGrowth < 5<<20 || held(&doc, "mmap") < doc.RSSGrowth/2 {
		t.Errorf("after %v: %d bytes of growth, of which %d have a stack", took, doc.RSSGrowth, held(&doc, "mmap"))
	}
}

var _ = exec.Command
var _ = strings.Replace
