//go:build linux && amd64

package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strandline/host/calls/bpf"
	"strandline/host/calls/event"
	"strandline/internal/test/live"
)

// repeats is a program that makes the calls that it is asked to make, and says
// what each took of processor time, in ns. Its stack is shallow.
const repeats = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
int main(void) {
  char what[16], b[64];
  int n, zero = open("/dev/zero", O_RDONLY);
  for (puts("ready"), fflush(stdout); scanf("%15s %d", what, &n) == 2; fflush(stdout)) {
    double began = now();
    if (!strcmp(what, "pair")) for (int i = 0; i < n; i++) munmap(mmap(0, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 65536);
    if (!strcmp(what, "getpid")) for (int i = 0; i < n; i++) syscall(SYS_getpid);
    if (!strcmp(what, "read")) for (int i = 0; i < n; i++) if (read(zero, b, sizeof b) < 0) return 1;
    if (!strcmp(what, "count")) for (volatile int i = 0; i < n; i++);
    printf("%f\n", (now() - began) / n);
  }
}
`

// A looped is a program that repeats calls.
type looped struct {
	pid int
	in  io.Writer
	out *bufio.Reader
}

func startLoop(b *testing.B) *looped {
	b.Helper()
	c := exec.Command(live.Build(b, repeats, nil, "-fno-omit-frame-pointer"))
	in, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	l := &looped{c.Process.Pid, in, bufio.NewReader(out)}
	if _, err := l.out.ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	return l
}

// takes returns how long a call takes, in ns.
func (l *looped) takes(b *testing.B, what string, n int) float64 {
	fmt.Fprintln(l.in, what, n)
	line, err := l.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	ns, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	if err != nil {
		b.Fatal(err)
	}
	return ns
}

// A costly is a tracer whose cost is measured. Start returns nil where it is not
// available; between is called now and then while the program rests.
type costly struct {
	name    string
	start   func(b *testing.B, l *looped) (stop func())
	between func(b *testing.B)
}

// BenchmarkTracers measures what tracers add to the calls of a program, as
// processor time of that program. In each round every tracer comes once, and the
// least of many short runs counts; of the rounds the median. Run it as root with
// -benchtime 20x.
func BenchmarkTracers(b *testing.B) {
	l := startLoop(b)
	var stacks *bpf.Tracer
	copied := 0 // stacks
	tracers := []costly{
		{"none", func(*testing.B, *looped) func() { return func() {} }, nil},
		{"trace", startTrace, nil},
		{"bpftrace", startBpftrace, nil},
		{"stacks", func(b *testing.B, l *looped) func() {
			stacks = startStacks(b, l)
			return stacks.Close
		}, func(b *testing.B) {
			got, err := stacks.Poll()
			if err != nil || got.LostSamples > 0 {
				b.Fatalf("%d stacks lost, %v", got.LostSamples, err)
			}
			copied += len(got.Samples)
		}},
		{"perf", startPerf, func(*testing.B) { time.Sleep(10 * time.Millisecond) }}, // until it has read its ring
	}
	calls := []struct {
		what    string
		n, runs int
	}{{"pair", 100, 150}, {"getpid", 20000, 10}, {"read", 20000, 10}, {"count", 2000000, 10}}
	added := map[string][]float64{}
	for b.Loop() {
		least := map[string]float64{}
		for _, t := range tracers {
			stop := t.start(b, l)
			if stop == nil {
				continue
			}
			for _, c := range calls {
				key := t.name + " " + c.what
				for range c.runs {
					ns := l.takes(b, c.what, c.n)
					if was, ok := least[key]; !ok || ns < was {
						least[key] = ns
					}
					if t.between != nil {
						t.between(b)
					}
				}
				added[key] = append(added[key], least[key]-least["none "+c.what])
			}
			stop()
		}
		for _, c := range calls {
			key := "none " + c.what
			added[key][len(added[key])-1] = least[key]
		}
	}
	median := map[string]float64{}
	for _, t := range tracers {
		for _, c := range calls {
			key := t.name + " " + c.what
			if len(added[key]) == 0 {
				b.Logf("%s is not here", t.name)
				break
			}
			slices.Sort(added[key])
			median[key] = added[key][len(added[key])/2]
			b.ReportMetric(median[key], strings.ReplaceAll(key, " ", "-ns/"))
		}
	}
	for _, pair := range [][2]string{{"trace", "bpftrace"}, {"stacks", "bpftrace"}, {"stacks", "perf"}} {
		if other := median[pair[1]+" pair"]; other > 0 {
			b.ReportMetric(median[pair[0]+" pair"]/other, pair[0]+"/"+pair[1])
		}
	}
	b.ReportMetric(float64(copied)/float64(b.N*calls[0].n*calls[0].runs), "stacks/pair")
	b.ReportMetric(0, "ns/op")
}

// startTrace runs the command until it is stopped.
func startTrace(b *testing.B, l *looped) func() {
	needBPF(b)
	file := filepath.Join(b.TempDir(), fmt.Sprint(time.Now().UnixNano()))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() {
		done <- Main(&Env{
			args: []string{"trace", "--pid", strconv.Itoa(l.pid), "--duration", "1h", "--out", file}, stdin: strings.NewReader(""), stdout: io.Discard,
			stderr: os.Stderr, getenv: func(string) string { return "" }, context: ctx,
		})
	}()
	wait(b, "trace", func() bool {
		run := recorded(file)
		return run != nil && len(run.Samples) > 0
	})
	return func() {
		cancel()
		<-done
	}
}

// startStacks copies the stack of every call.
func startStacks(b *testing.B, l *looped) (t *bpf.Tracer) {
	t, err := bpf.Start()
	live.Need(b, "BPF", err)
	if err := cmp.Or(t.Watch(l.pid), t.Budget(1<<40)); err != nil {
		b.Fatal(err)
	}
	l.takes(b, "pair", 1)
	wait(b, "copying stacks", func() bool {
		got, err := t.Poll()
		if err != nil {
			b.Fatal(err)
		}
		for i := range got.Samples {
			s := &got.Samples[i]
			place := event.Place{IP: s.Regs.IP, Caller: binary.LittleEndian.Uint64(s.Stack[s.Regs.SP-s.Base:])}
			if err := t.Pace(&event.Event{PID: s.PID, Op: s.Op, Class: event.SizeClass(s.Len), Place: place}, 0); err != nil {
				b.Fatal(err)
			}
		}
		return len(got.Samples) > 0
	})
	return t
}

func startBpftrace(b *testing.B, l *looped) func() {
	_, stop := startOther(b, func(out []byte) bool { return bytes.Contains(out, []byte("on\n")) }, "bpftrace", "-B", "line", "-e", fmt.Sprintf(`
tracepoint:syscalls:sys_exit_mmap /pid == %d/ { @made[args->ret] = ustack; }
tracepoint:syscalls:sys_enter_munmap /pid == %d/ { delete(@made[args->addr]); }
interval:s:1 { printf("on\n"); }`, l.pid, l.pid))
	return stop
}

func startPerf(b *testing.B, l *looped) func() {
	file := filepath.Join(b.TempDir(), "perf.data")
	os.Remove(file)
	out, stop := startOther(b, func([]byte) bool {
		st, err := os.Stat(file)
		return err == nil && st.Size() > 0
	}, "perf", "record", "-r", "1", "-m", "8192", "--call-graph", "dwarf,16384", "-e", "syscalls:sys_enter_mmap", "-o", file, "-p", strconv.Itoa(l.pid))
	time.Sleep(time.Second)
	return func() {
		stop()
		if text, _ := os.ReadFile(out); bytes.Contains(text, []byte("lost")) {
			b.Errorf("perf lost some, so that this is not the cost of all: %s", text)
		}
	}
}

// startOther starts a tracer where tracefs is mounted, for it alone if it is
// not.
func startOther(b *testing.B, on func(out []byte) bool, args ...string) (printed string, stop func()) {
	if _, err := exec.LookPath(args[0]); err != nil {
		return "", nil
	}
	c := exec.Command("unshare", append([]string{"-m", "sh", "-c", `[ -d /sys/kernel/tracing/events ] || mount -t tracefs none /sys/kernel/tracing; exec "$@"`, "sh"}, args...)...)
	out, err := os.Create(filepath.Join(b.TempDir(), "out"))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	wait(b, args[0], func() bool {
		text, _ := os.ReadFile(out.Name())
		return on(text)
	})
	return out.Name(), func() {
		c.Process.Signal(os.Interrupt)
		c.Wait()
	}
}

func wait(b *testing.B, what string, begun func() bool) {
	b.Helper()
	for end := time.Now().Add(time.Minute); !begun(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("%s does not begin", what)
		}
	}
}
