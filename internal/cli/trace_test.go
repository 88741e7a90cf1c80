//go:build linux && amd64

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"strandline/bpf"
	"strandline/finding"
	"strandline/internal/live"
	"strandline/recording"
)

// grower is a program that does something a hundred times a second.
const grower = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *sleeper(void *x) { char room[1 << 16]; memset(room, 1, sizeof room); pause(); return room + sizeof x; }
static char *volatile kept;
static void *map(size_t n) { char *p = mmap(0, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memset(p, 1, n); return p; }
__attribute__((noinline)) void grow(int i) { WHAT }
int main(void) {
  puts("ready"); fflush(stdout);
  for (int i = 0; i < 3000; i++) { grow(i); usleep(10000); }
}
`

// reproducers are programs that grow in one way each, and the kinds of problem
// that they have.
var reproducers = []struct {
	name, what string
	want       []finding.Kind
}{
	{"mmap", `map(151552);`, []finding.Kind{finding.MmapLeak}},
	{"syscall", `char *p = (char *)syscall(SYS_mmap, 0, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memset(p, 1, 65536);`, []finding.Kind{finding.MmapLeak}},
	{"heap", `memset(kept = malloc(40000), 1, 40000);`, []finding.Kind{finding.HeapLeak}},
	{"large malloc", `memset(kept = malloc(400000), 1, 400000);`, []finding.Kind{finding.HeapLeak}},
	{"mremap", `kept = i ? mremap(kept, i << 16, (i + 1) << 16, MREMAP_MAYMOVE) : map(1 << 16); memset((char *)kept + (i << 16), 1, 1 << 16);`, []finding.Kind{finding.Remap}},
	{"shared", `char *p = mmap(0, 65536, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0); memset(p, 1, 65536);`, []finding.Kind{finding.SharedMemory}},
	{"threads", `pthread_t t; pthread_create(&t, 0, sleeper, 0);`, []finding.Kind{finding.ThreadStacks}},
	{"churn", `munmap(map(1 << 20), 1 << 20);`, nil},
	{"working set", `static char *ring[16]; if (ring[i % 16]) munmap(ring[i % 16], 1 << 20); ring[i % 16] = map(1 << 20);`, nil},
	{"free", `free(memset(kept = malloc(400000), 1, 400000));`, nil},
	{"once", `if (i == 30) map(32 << 20);`, nil},
}

func needBPF(t *testing.T) {
	t.Helper()
	tr, err := bpf.Start()
	if err != nil {
		t.Skipf("BPF is not to be had here: %v", err)
	}
	tr.Close()
}

// TestTraceTellsKinds runs each of the programs: what is wrong with it is told,
// and nothing else.
func TestTraceTellsKinds(t *testing.T) {
	needBPF(t)
	for _, r := range reproducers {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			exe := live.Build(t, strings.Replace(grower, "WHAT", r.what, 1), nil, "-fomit-frame-pointer", "-pthread")
			pid, _ := live.Start(t, exe)
			stdout, stderr, code := run("trace", "--pid", strconv.Itoa(pid), "--duration", "4s", "--json")
			var doc recording.Document
			if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			var got []finding.Kind
			for _, f := range doc.Findings {
				if f.Severity == finding.Problem {
					got = append(got, f.Kind)
				}
			}
			if !slices.Equal(got, r.want) {
				t.Errorf("problems %v, want %v; %s", got, r.want, stdout)
			}
			if wrong := len(r.want) > 0; wrong != (code == exitProblem) {
				t.Errorf("exit status %d", code)
			}
			if len(r.want) == 0 || t.Failed() {
				return
			}
			if doc.Explained == nil || *doc.Explained < 0.9 {
				t.Errorf("%v of the growth is explained: %s", doc.Explained, stdout)
			}
			if top := doc.Stacks[0]; !top.Complete || !slices.ContainsFunc(top.Frames, func(f recording.Frame) bool { return f.Function != nil && *f.Function == "grow" }) {
				t.Errorf("the top stack is not complete, or not of grow: %s", stdout)
			}
		})
	}
}

// TestTraceOfCommands starts commands on both rungs that can, and sees what they
// do from the first call on.
func TestTraceOfCommands(t *testing.T) {
	for _, rung := range []string{rungPtrace, rungBPF} {
		for _, i := range []int{0, 2, 4, 7} {
			r := reproducers[i]
			t.Run(rung+" "+r.name, func(t *testing.T) {
				t.Parallel()
				if rung == rungBPF {
					needBPF(t)
				}
				exe := live.Build(t, strings.Replace(grower, "WHAT", r.what, 1), nil, "-pthread")
				stdout, stderr, _ := run("trace", "--rung", rung, "--duration", "4s", "--json", "--", exe)
				var doc recording.Document
				if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
					t.Fatalf("%v: %s", err, stderr)
				}
				syscall.Kill(doc.PID, syscall.SIGKILL)
				var got []finding.Kind
				for _, f := range doc.Findings {
					if f.Severity == finding.Problem {
						got = append(got, f.Kind)
					}
				}
				if doc.Rung != rung || !slices.Equal(got, r.want) {
					t.Errorf("rung %s, problems %v, want %v; %s", doc.Rung, got, r.want, stdout)
				}
			})
		}
	}
}

// TestTraceOfOneThatEnds gives what was seen until then.
func TestTraceOfOneThatEnds(t *testing.T) {
	needBPF(t)
	exe := live.Build(t, strings.Replace(grower, "WHAT", `map(151552); if (i == 800) exit(0);`, 1), nil)
	pid, _ := live.Start(t, exe)
	stdout, _, code := run("trace", "--pid", strconv.Itoa(pid), "--duration", "60s", "--json")
	var doc recording.Document
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || !doc.Ended || doc.RSSGrowth < 1<<20 || code > exitProblem {
		t.Errorf("status %d, %v: %s", code, err, stdout)
	}
}

// TestTraceInterrupted prints what it has, and its recording is whole.
func TestTraceInterrupted(t *testing.T) {
	needBPF(t)
	exe := live.Build(t, strings.Replace(grower, "WHAT", `map(151552);`, 1), nil)
	pid, _ := live.Start(t, exe)
	file := filepath.Join(t.TempDir(), "run.trace")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stdout, stderr bytes.Buffer
	go func() { // once a judgement is kept
		for ctx.Err() == nil {
			if text, _ := os.ReadFile(file); bytes.Contains(text, []byte(`"document"`)) {
				cancel()
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	code := Main(&Env{
		Args: []string{"trace", "--pid", strconv.Itoa(pid), "--out", file}, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Getenv: os.Getenv, Context: ctx,
	})
	if code != exitInterrupted || !strings.Contains(stdout.String(), " grew by ") {
		t.Errorf("exit status %d: %s%s", code, stdout.String(), stderr.String())
	}
	if told, stderr, code := run("diagnose", file); code != exitProblem || stderr != "" || !strings.Contains(told, " grew by ") {
		t.Errorf("exit status %d of the recording: %s%s", code, told, stderr)
	}
}
