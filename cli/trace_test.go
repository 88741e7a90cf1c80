//go:build linux && amd64

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/calls/bpf"
	"strandline/host/store/recording"
	"strandline/internal/test/live"
	"strandline/run/trace"
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

type reproducer struct {
	name, what string
	want       []finding.Kind
}

// reproducers are programs that grow in one way each, and the kinds of problem
// that they have.
var reproducers = []reproducer{
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
	{"warm-up", `if (i < 80) map(1 << 20);`, nil},
}

func needBPF(t testing.TB) {
	t.Helper()
	tr, err := bpf.Start()
	live.Need(t, "BPF", err)
	tr.Close()
}

// A traced program is one of the reproducers and what trace reports about it.
type traced struct {
	*reproducer
	doc    recording.Document
	stdout string
	code   int
	err    error
}

// problems are the kinds of problem that were found.
func (x *traced) problems() (out []finding.Kind) {
	for _, f := range x.doc.Findings {
		if f.Severity == finding.Problem {
			out = append(out, f.Kind)
		}
	}
	return out
}

// traceAll runs trace on programs, all at the same time: they mostly wait. Where a
// busy machine let one do little, it is traced again, alone.
func traceAll(t *testing.T, some []*reproducer, args func(exe string) []string) []*traced {
	t.Helper()
	out, exes := make([]*traced, len(some)), make([]string, len(some))
	// All are built before the first is traced: a tracer that waits for what its
	// thread made, as ptrace has it, could take the end of a compiler for that of its child.
	for i, r := range some {
		exes[i] = live.Build(t, strings.Replace(grower, "WHAT", r.what, 1), nil, "-fomit-frame-pointer", "-pthread")
	}
	var done sync.WaitGroup
	for i, r := range some {
		x := &traced{reproducer: r}
		out[i] = x
		full := append([]string{"trace", "--duration", "4s", "--json"}, args(exes[i])...)
		done.Go(func() {
			var stderr string
			x.stdout, stderr, x.code = run(full...)
			if err := json.Unmarshal([]byte(x.stdout), &x.doc); err != nil {
				x.err = fmt.Errorf("%w: %s", err, stderr)
			}
		})
	}
	done.Wait()
	if len(some) > 1 {
		for i, x := range out {
			if x.err == nil && len(x.want) > 0 && len(x.problems()) == 0 {
				syscall.Kill(x.doc.PID, syscall.SIGKILL)
				out[i] = traceAll(t, some[i:i+1], args)[0]
			}
		}
	}
	return out
}

// TestTraceFindsKinds traces each of the programs: what is wrong with it is found,
// and nothing else.
func TestTraceFindsKinds(t *testing.T) {
	live.Traces(t)
	live.Unraced(t, "TestTraceOfOneThatEnds starts the same goroutines")
	needBPF(t)
	var all []*reproducer
	for i := range reproducers {
		all = append(all, &reproducers[i])
	}
	running := func(exe string) []string {
		pid, _ := live.Start(t, exe)
		return []string{"--pid", strconv.Itoa(pid)}
	}
	for _, x := range traceAll(t, all, running) {
		t.Run(x.name, func(t *testing.T) {
			if x.err != nil {
				t.Fatal(x.err)
			}
			if got := x.problems(); !slices.Equal(got, x.want) {
				t.Fatalf("problems %v, want %v; %s", got, x.want, x.stdout)
			}
			if wrong := len(x.want) > 0; wrong != (x.code == exitProblem) {
				t.Errorf("exit status %d", x.code)
			}
			if len(x.want) == 0 {
				return
			}
			if x.doc.Explained == nil || *x.doc.Explained < 0.9 {
				t.Errorf("%v of the growth is explained: %s", x.doc.Explained, x.stdout)
			}
			if top := x.doc.Stacks[0]; !top.Complete || !slices.ContainsFunc(top.Frames, func(f recording.Frame) bool { return f.Function != nil && *f.Function == "grow" }) {
				t.Errorf("the top stack is not complete, or not of grow: %s", x.stdout)
			}
		})
	}
}

// TestTraceOfCommands starts commands with both backends that can, and sees what they
// do from the first call on.
func TestTraceOfCommands(t *testing.T) {
	live.Traces(t)
	some := []*reproducer{&reproducers[0], &reproducers[2], &reproducers[4], &reproducers[7]}
	for _, backend := range []string{trace.Ptrace, trace.BPF} {
		t.Run(backend, func(t *testing.T) {
			if backend == trace.BPF {
				needBPF(t)
			}
			for _, x := range traceAll(t, some, func(exe string) []string { return []string{"--backend", backend, "--", exe} }) {
				if x.err != nil {
					t.Fatal(x.err)
				}
				syscall.Kill(x.doc.PID, syscall.SIGKILL)
				if got := x.problems(); x.doc.Backend != backend || !slices.Equal(got, x.want) {
					t.Errorf("%s: backend %s, problems %v, want %v; %s", x.name, x.doc.Backend, got, x.want, x.stdout)
				}
			}
		})
	}
}

// TestTraceAfterWarmUp counts a leak's bytes from the leak alone, and names its
// place.
func TestTraceAfterWarmUp(t *testing.T) {
	live.Traces(t)
	live.Unraced(t, "TestTraceOfOneThatEnds starts the same goroutines")
	needBPF(t)
	t.Parallel()
	const grow = "__attribute__((noinline)) void grow"
	source := strings.Replace(grower, grow, "__attribute__((noinline)) void leak(void) { memset(kept = malloc(150000), 1, 150000); }\n"+grow, 1)
	exe := live.Build(t, strings.Replace(source, "WHAT", `if (i < 60) memset(kept = malloc(2 << 20), 1, 2 << 20); else leak();`, 1), nil)
	stdout, stderr, _ := run("trace", "--duration", "6s", "--json", "--", exe)
	var doc recording.Document
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatal(err, stderr)
	}
	syscall.Kill(doc.PID, syscall.SIGKILL)
	x := traced{doc: doc}
	if got := x.problems(); !slices.Equal(got, []finding.Kind{finding.HeapLeak}) {
		t.Fatalf("problems %v: %s", got, stdout)
	}
	f := doc.Findings[0]
	// 60 times 2 MiB, and then 150,000 bytes in 10 ms and more.
	if f.Site == nil || f.Site.Function != "leak" || *f.Bytes > 540*200_000 || *f.Bytes < 10<<20 {
		t.Errorf("%d bytes at %+v: %s", *f.Bytes, f.Site, stdout)
	}
}

// TestTraceOfCommandThatFails states so, with how it did.
func TestTraceOfCommandThatFails(t *testing.T) {
	live.Traces(t)
	t.Parallel()
	for command, want := range map[string]string{"exit 3": "exit status 3", "kill -9 $$": "signal: killed"} {
		_, stderr, code := run("trace", "--backend", "ptrace", "--", "sh", "-c", command)
		if code != exitCommand || !strings.Contains(stderr, "sh failed by itself: "+want) {
			t.Errorf("%q: status %d, %s", command, code, stderr)
		}
	}
}

// TestTraceOfOneThatEnds gives what was seen until then.
func TestTraceOfOneThatEnds(t *testing.T) {
	live.Traces(t)
	needBPF(t)
	t.Parallel()
	exe := live.Build(t, strings.Replace(grower, "WHAT", `map(151552); if (i == 800) exit(0);`, 1), nil)
	pid, _ := live.Start(t, exe)
	stdout, _, code := run("trace", "--pid", strconv.Itoa(pid), "--duration", "60s", "--json")
	var doc recording.Document
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || !doc.Ended || doc.RSSGrowth < 1<<20 || code > exitProblem && code != exitCannotJudge {
		t.Errorf("status %d, %v: %s", code, err, stdout)
	}
}

// recorded reads a recording, nil if there is none yet.
func recorded(path string) *recording.Run {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	run, _ := recording.Read(f)
	return run
}

// TestTraceInterrupted prints what it has, and its recording is whole.
func TestTraceInterrupted(t *testing.T) {
	live.Traces(t)
	needBPF(t)
	t.Parallel()
	exe := live.Build(t, strings.Replace(grower, "WHAT", `map(151552);`, 1), nil)
	pid, _ := live.Start(t, exe)
	file := filepath.Join(t.TempDir(), "run.trace")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stdout, stderr bytes.Buffer
	go func() { // once a judgment is kept
		for ctx.Err() == nil {
			if run := recorded(file); run != nil && run.Judged {
				cancel()
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	code := Main(&Env{
		args: []string{"trace", "--pid", strconv.Itoa(pid), "--out", file}, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
		getenv: os.Getenv, context: ctx,
	})
	if code != exitInterrupted || !strings.Contains(stdout.String(), " grew by ") {
		t.Errorf("exit status %d: %s%s", code, stdout.String(), stderr.String())
	}
	if text, stderr, code := run("diagnose", file); code != exitProblem || stderr != "" || !strings.Contains(text, " grew by ") {
		t.Errorf("exit status %d of the recording: %s%s", code, text, stderr)
	}
}
