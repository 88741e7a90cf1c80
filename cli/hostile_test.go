//go:build linux && amd64

package cli

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"strandline/host/proc/procfs"
	"strandline/host/store/recording"
	"strandline/internal/test/live"
	"strandline/run/trace"
)

// hostile is a program that is not an easy target: what it does is its first
// argument. In the end it grows.
const hostile = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *map(size_t n) { char *p = mmap(0, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memset(p, 1, n); return p; }
__attribute__((noinline)) void grow(void) { map(151552); }
static void on(void (*f)(void)) { for (int i = 0; i < 6000; i++) { f(); usleep(10000); } }
/* What the search for an interpreter of Python 3.11 finds: lists that end in themselves. */
unsigned long Py_Version = 0x030b00f0;
struct { void *word[512]; } _PyRuntime;
static void python(void) {
  static void *state[64], *frame[64];
  for (int i = 0; i < 512; i++) _PyRuntime.word[i] = &_PyRuntime;
  for (int i = 0; i < 64; i++) state[i] = state, frame[i] = frame;
  _PyRuntime.word[2] = state;                     /* threads of the interpreter that the runtime itself is */
  state[160 / 8] = (void *)syscall(SYS_gettid);
  state[56 / 8] = frame;
}
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
  if (!strcmp(how, "files")) for (int i = 2; i < c; i++) mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(v[i], O_RDONLY), 0);
  if (!strcmp(how, "ended")) { if (fork()) { usleep(50000); } else _exit(0); }
  if (!strcmp(how, "python")) python();
  if (!strcmp(how, "debugger")) { if (!fork()) _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) != 0); wait(0); return 0; }
  if (!strcmp(how, "many")) for (int i = 0; i < n; i++) mmap(0, 4096, i % 2 ? 1 : 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!strcmp(how, "name")) prctl(PR_SET_NAME, ") R 1\n\x1b[2");
  puts("ready");
  if (!strcmp(how, "library")) on((void (*)(void))dlsym(dlopen(v[2], RTLD_NOW), "leak"));
  if (!strcmp(how, "storm")) for (int i = 0; i < n; i++) {
    int p = i % 2 ? vfork() : fork();
    if (!p && i % 2) { execl("/bin/true", "true", NULL); _exit(1); }
    if (!p) { map(65536); _exit(0); }
    waitpid(-1, 0, i % 16 ? WNOHANG : 0);
    if (i % 16 == 0) grow();
  }
  if (!strcmp(how, "chain")) for (int i = 0; i < n; i++) { usleep(5000); if (fork()) { pause(); } }
  on(grow);
}
`

func buildHostile(t *testing.T) string {
	t.Helper()
	return live.Build(t, hostile, nil, "-rdynamic")
}

// judged traces a process for a time, and returns what is reported.
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

// TestHostile runs what follows at the same time, however few processors there
// are: all of it mostly waits.
func TestHostile(t *testing.T) {
	live.Traces(t)
	live.Unraced(t, "it makes a dozen traces at once too slow to see what they are to see")
	exe := buildHostile(t)
	together(t, map[string]func(*testing.T){
		"files that do not answer":  silentFiles,
		"difficult processes":       func(t *testing.T) { hostileProcesses(t, exe) },
		"children that come later":  func(t *testing.T) { polledChildren(t, exe) },
		"stopped processes":         func(t *testing.T) { stoppedProcesses(t, exe) },
		"a debugger in the command": func(t *testing.T) { nestedDebugger(t, exe) },
		"broken files":              func(t *testing.T) { brokenFiles(t, exe) },
		"inside of a container":     func(t *testing.T) { insideContainer(t, exe) },
		"a container":               func(t *testing.T) { outsideContainer(t, exe) },
		"kill -9":                   func(t *testing.T) { killed(t, exe) },
		"signals":                   func(t *testing.T) { endedBySignals(t, exe) },
		"full disks":                func(t *testing.T) { fullDisks(t) },
		"the number of another":     func(t *testing.T) { numberOfAnother(t, exe) },
	})
}

// together runs parts of a test at the same time.
func together(t *testing.T, parts map[string]func(*testing.T)) {
	var done sync.WaitGroup
	for name, part := range parts {
		done.Go(func() { t.Run(name, part) })
	}
	done.Wait()
}

// silentFiles traces a process that runs code of a file whose server
// no longer answers: that is reported without names, and not waited for.
func silentFiles(t *testing.T) {
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
	t.Cleanup(fs.Close) // before the process is killed
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if st, err := procfs.Process(pid).Status(); err != nil || st.Anon > 1<<20 {
			break // its code is in memory
		}
	}
	fs.Silence()
	doc, _ := judged(t, "--pid", strconv.Itoa(pid), "--duration", "4s")
	if doc.RSSGrowth < 1<<20 || held(&doc, "mmap") < doc.RSSGrowth/2 {
		t.Errorf("%d bytes of growth, of which %d have a stack", doc.RSSGrowth, held(&doc, "mmap"))
	}
}

// TestNotToBeTraced names what cannot be traced: a process that is not there, one
// that has ended, one of the kernel.
func TestNotToBeTraced(t *testing.T) {
	live.Traces(t)
	parent, _ := live.Start(t, buildHostile(t), "ended")
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", parent))
	if err != nil {
		live.Missing(t, "the list of a process's children", err)
	}
	for pid, want := range map[string]string{
		"0": "there is no process 0", "-3": "there is no process -3", "99999999": "there is no process 99999999",
		strings.TrimSpace(string(children)): "has ended", "2": "is a kernel thread",
	} {
		if name, _ := os.ReadFile("/proc/2/comm"); pid == "2" && string(name) != "kthreadd\n" {
			continue // in a container
		}
		for _, args := range [][]string{{"hooks"}, {"trace", "--backend", "polling"}, {"trace"}} {
			if _, stderr, code := run(append(args, "--pid", pid)...); code != exitUsage || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%v --pid %s: exit status %d, want %q: %s", args, pid, code, want, stderr)
			}
		}
	}
}

// hostileProcesses traces processes that are not easy targets, all at
// the same time. What they map is reported with its stack.
func hostileProcesses(t *testing.T, exe string) {
	needBPF(t)
	odd := filepath.Join(t.TempDir(), "a b\n\x1b[31m\xff) (deleted)")
	if err := os.Link(exe, odd); err != nil {
		t.Fatal(err)
	}
	parts := map[string]func(*testing.T){}
	for name, command := range map[string][]string{
		"children come and go":                   {exe, "storm", "1000"},
		"children of children":                   {exe, "chain", "60"},
		"names that terminals act on":            {odd, "name"},
		"many mappings":                          {exe, "many", "10000"},
		"lists of Python that end in themselves": {exe, "python"},
		"runs itself again and again":            {exe, "again", "300"},
	} {
		parts[name] = func(t *testing.T) {
			pid, _ := live.Start(t, command[0], command[1:]...)
			t.Cleanup(func() { killAll(pid) })
			file := filepath.Join(t.TempDir(), "run.trace")
			doc, _ := judged(t, "--pid", strconv.Itoa(pid), "--duration", "2s", "--out", file)
			if held(&doc, "grow") < 10*151552 { // on a busy machine it got little time
				os.Remove(file)
				doc, _ = judged(t, "--pid", strconv.Itoa(pid), "--duration", "10s", "--out", file)
			}
			if got := held(&doc, "grow"); got < 10*151552 || got%151552 != 0 || doc.Drops+doc.Unfollowed > 0 {
				t.Errorf("%d bytes are held by grow; %d events lost, %d not followed", got, doc.Drops, doc.Unfollowed)
			}
			stdout, _, _ := run("diagnose", file)
			hooks, _, code := run("hooks", "--pid", strconv.Itoa(pid))
			if code != 0 || strings.Contains(stdout+hooks, "\x1b") || !utf8.ValidString(stdout+hooks) || strings.Contains(stdout+hooks, "a b\n") {
				t.Errorf("exit status %d of hooks; %q", code, stdout+hooks)
			}
		}
	}
	together(t, parts)
}

// polledChildren polls a shell, whose child grows.
func polledChildren(t *testing.T, exe string) {
	pid, _ := live.Start(t, "sh", "-c", "echo ready; sleep 0.5; "+exe+" grow >/dev/null; true")
	t.Cleanup(func() { killAll(pid) })
	if doc, _ := judged(t, "--backend", "polling", "--pid", strconv.Itoa(pid), "--duration", "3s"); doc.RSSGrowth < 10*151552 {
		t.Errorf("%d bytes of growth", doc.RSSGrowth)
	}
}

// killAll ends a process and its descendants.
func killAll(pid int) {
	children, _ := procfs.Process(pid).Descendants()
	for _, p := range append(children, procfs.Process(pid)) {
		syscall.Kill(int(p), syscall.SIGKILL)
	}
}

// stoppedProcesses traces a process that is stopped, and one that a
// debugger holds. Neither is waited for.
func stoppedProcesses(t *testing.T, exe string) {
	stop := func(_ *testing.T, pid int) { syscall.Kill(pid, syscall.SIGSTOP) }
	attach := func(t *testing.T, pid int) {
		held, over := make(chan error), make(chan struct{})
		t.Cleanup(func() { close(over) })
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine, and the debugger with it
			held <- syscall.PtraceAttach(pid)
			<-over
		}()
		live.Need(t, "ptrace", <-held)
	}
	parts := map[string]func(*testing.T){}
	for name, hold := range map[string]func(*testing.T, int){"stopped": stop, "debugged": attach} {
		parts[name] = func(t *testing.T) {
			pid, _ := live.Start(t, exe, "grow")
			hold(t, pid)
			await(t, "the process is stopped", func() bool {
				st, err := procfs.Process(pid).Status()
				return err == nil && stopped(st)
			})
			if stdout, stderr, code := run("hooks", "--pid", strconv.Itoa(pid)); code != 0 || !strings.Contains(stdout, "no hooks") {
				t.Errorf("exit status %d of hooks: %s%s", code, stdout, stderr)
			}
			for _, rung := range []string{trace.Polling, trace.BPF} {
				if rung == trace.BPF {
					needBPF(t)
				}
				doc, code := judged(t, "--pid", strconv.Itoa(pid), "--duration", "500ms", "--backend", rung)
				// Less than a call of grow takes: to read its memory may map pages of its files.
				if doc.Ended || doc.RSSGrowth >= 151552 || code != 0 {
					t.Errorf("%s: exit status %d, %d bytes of growth", rung, code, doc.RSSGrowth)
				}
			}
		}
	}
	together(t, parts)
}

// TestTraceOfThread takes the number of a thread for its process.
func TestTraceOfThread(t *testing.T) {
	live.Traces(t)
	pid := os.Getpid()
	for _, task := range must(os.ReadDir("/proc/self/task")) {
		if tid := task.Name(); tid != strconv.Itoa(pid) {
			if doc, _ := judged(t, "--backend", "polling", "--duration", "100ms", "--pid", tid); doc.PID != pid {
				t.Errorf("thread %s is taken for process %d, and is of %d", tid, doc.PID, pid)
			}
			return
		}
	}
	live.Missing(t, "a second thread", "this process has one")
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// nestedDebugger runs a debugger where it cannot debug.
func nestedDebugger(t *testing.T, exe string) {
	// As a program: in this one its tracer could take the end of another test's child.
	_, stderr, _ := asProgram(nil, "trace", "--backend", "ptrace", "--", exe, "debugger")
	if !strings.Contains(stderr, "wanted to trace a process itself") || !strings.Contains(stderr, "--backend bpf") {
		t.Errorf("it says %q", stderr)
	}
}

// brokenFiles looks at a process that has mapped files as code that are not code:
// cut off after it did, corrupt, and with a table as large as a file can be.
func brokenFiles(t *testing.T, exe string) {
	whole := must(os.ReadFile(exe))
	dir := t.TempDir()
	name := func(n string) string { return filepath.Join(dir, n) }
	corrupt := slices.Clone(whole)
	for i := 64; i < len(corrupt); i += 61 {
		corrupt[i] ^= 0xa5
	}
	endless := slices.Clone(whole)
	binary.LittleEndian.PutUint16(endless[60:], 0)                                              // the count of sections is in the first of them
	binary.LittleEndian.PutUint64(endless[binary.LittleEndian.Uint64(endless[40:])+32:], 1<<31) // where it is this
	for n, data := range map[string][]byte{"cut": whole, "corrupt": corrupt, "endless": endless, "replaced": whole} {
		if err := os.WriteFile(name(n), data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(name("endless"), 1<<40); err != nil {
		live.Missing(t, "files with holes", err)
	}
	pid, _ := live.Start(t, exe, "files", name("cut"), name("corrupt"), name("endless"), name("replaced"))
	if err := errors.Join(os.Truncate(name("cut"), 100), os.Rename(name("corrupt"), name("replaced"))); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := run("hooks", "--pid", strconv.Itoa(pid))
	if code != 0 || !strings.Contains(stdout, "no hooks") || !strings.Contains(stdout, "/cut cannot be read") || !strings.Contains(stdout, "/endless cannot be read") {
		t.Errorf("exit status %d: %s%s", code, stdout, stderr)
	}
	if doc, _ := judged(t, "--pid", strconv.Itoa(pid), "--duration", "500ms"); doc.RSSGrowth < 151552 {
		t.Errorf("%d bytes of growth", doc.RSSGrowth)
	}
}

// asProgram runs this program as a separate process, prefixed by other words.
func asProgram(before []string, args ...string) (stdout, stderr string, code int) {
	all := append(append(before, must(exec.LookPath("strandline"))), args...)
	var out, errs strings.Builder
	c := exec.Command(all[0], all[1:]...)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if c.ProcessState == nil {
		return "", err.Error(), -1
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// killed kills a trace of a command at several moments. The command runs
// on, or is killed where it was traced by ptrace; none is left stopped.
func killed(t *testing.T, exe string) {
	program := must(exec.LookPath("strandline"))
	parts := map[string]func(*testing.T){}
	for _, rung := range []string{trace.BPF, trace.Ptrace, trace.Polling} {
		for _, after := range []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, time.Second} {
			parts[fmt.Sprint(rung, " after ", after)] = func(t *testing.T) {
				if rung == trace.BPF {
					needBPF(t)
				}
				own := filepath.Join(t.TempDir(), "target") // by whose name what is left is found
				if err := os.Link(exe, own); err != nil {
					t.Fatal(err)
				}
				c := exec.Command(program, "trace", "--backend", rung, "--", own, "grow")
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(after)
				c.Process.Kill()
				c.Wait()
				t.Cleanup(func() {
					for _, p := range running(own) {
						syscall.Kill(int(p), syscall.SIGKILL)
					}
				})
				looks := 0 // in succession at which nothing was left: the command may still begin
				await(t, "nothing is left", func() bool {
					looks++
					for _, p := range running(own) {
						if st, err := p.Status(); err == nil && (rung == trace.Ptrace || st.Tracer != 0 || stopped(st)) {
							looks = 0
						}
					}
					return looks >= 10
				})
			}
		}
	}
	together(t, parts)
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never comes about that %s", what)
		}
	}
}

// stopped reports whether a process is stopped, by a signal or by its tracer.
func stopped(st procfs.Status) bool {
	return strings.HasPrefix(st.State, "T") || strings.HasPrefix(st.State, "t")
}

// running are the processes that run a program.
func running(exe string) (out []procfs.Process) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if at, _ := os.Readlink(link); at == exe {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			out = append(out, procfs.Process(pid))
		}
	}
	return out
}

// endedBySignals ends a trace by either signal: it reports what it has.
func endedBySignals(t *testing.T, exe string) {
	program := must(exec.LookPath("strandline"))
	parts := map[string]func(*testing.T){}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, rung := range []string{trace.Ptrace, trace.Polling} {
			parts[sig.String()+" "+rung] = func(t *testing.T) {
				own := filepath.Join(t.TempDir(), "target")
				if err := os.Link(exe, own); err != nil {
					t.Fatal(err)
				}
				kept := filepath.Join(t.TempDir(), "run.trace")
				c := exec.Command(program, "trace", "--backend", rung, "--out", kept, "--", own, "grow")
				out := must(os.Create(filepath.Join(t.TempDir(), "out")))
				defer out.Close()
				c.Stdout = out // the command has it, too, and runs on
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					for _, p := range running(own) {
						syscall.Kill(int(p), syscall.SIGKILL)
					}
				})
				await(t, "the growth is measured", func() bool {
					run := recorded(kept)
					return run != nil && len(run.Samples) > 0
				})
				c.Process.Signal(sig)
				c.Wait()
				text := string(must(os.ReadFile(out.Name())))
				if c.ProcessState.ExitCode() != exitInterrupted || !strings.Contains(text, " grew by ") && !strings.Contains(text, "did not grow") {
					t.Errorf("%v: %s", c.ProcessState, text)
				}
			}
		}
	}
	together(t, parts)
}

// manyPlaces is a program that maps memory in so many functions, whose stacks fill more
// than a page of a recording.
func manyPlaces(n int) string {
	var places, calls strings.Builder
	for i := range n {
		fmt.Fprintf(&places, "__attribute__((noinline)) void place%d(void) { memset(mmap(0, %d, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 4096); }\n", i, 4096*(i+1))
		fmt.Fprintf(&calls, "place%d(); ", i)
	}
	return `#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
` + places.String() + `int main(void) {
  puts("ready"); fflush(stdout);
  for (int i = 0; i < 1000; i++) { ` + calls.String() + `usleep(50000); }
}
`
}

// fullDisks writes to a full disk: that is an error, and the trace
// still reports what it has.
func fullDisks(t *testing.T) {
	needBPF(t) // without stacks the recording is small
	pid, _ := live.Start(t, live.Build(t, manyPlaces(200), nil))
	args := []string{"trace", "--pid", strconv.Itoa(pid), "--duration", "2500ms"}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		live.Missing(t, "/dev/full", err)
	}
	defer full.Close()
	var errs strings.Builder
	c := exec.Command(must(exec.LookPath("strandline")), args...)
	c.Stdout, c.Stderr = full, &errs
	if c.Run(); c.ProcessState.ExitCode() != exitUsage || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("%v: %s", c.ProcessState, errs.String())
	}
	small := t.TempDir()
	if err := syscall.Mount("none", small, "tmpfs", 0, "size=4k"); err != nil {
		live.Missing(t, "mounting", err)
	}
	defer syscall.Unmount(small, 0)
	file := filepath.Join(small, "run.trace")
	stdout, stderr, code := run(append(args, "--out", file)...)
	for more := 8 * time.Second; code != exitUsage && more < time.Minute; more *= 2 { // it can fit, where the process hardly runs
		args[len(args)-1] = more.String()
		os.Remove(file)
		stdout, stderr, code = run(append(args, "--out", file)...)
	}
	if code != exitUsage || !strings.Contains(stdout, " grew by ") || strings.Count(stderr, "no space left") != 2 {
		t.Errorf("exit status %d: %s%s", code, stdout, stderr)
	}
	if out, _, code := run("diagnose", file); code > exitPartial || code == exitUsage || !strings.Contains(out, "process "+strconv.Itoa(pid)) {
		t.Errorf("exit status %d of the recording: %s", code, out)
	}
}

// numberOfAnother ends a process and starts another until it has the number.
// That is not taken for the one that is traced.
func numberOfAnother(t *testing.T, exe string) {
	script := `
		"$1" grow >"$2" & first=$!
		while ! test -s "$2"; do :; done
		"$3" trace --json --backend polling --duration 2m --out "$4" --pid $first & trace=$!
		while ! test -s "$4"; do sleep 0.05; done
		kill -9 $first
		wait $first
		for i in $(seq 100); do
			echo $((first - 1)) >/proc/sys/kernel/ns_last_pid || exit 9
			"$1" grow >"$2" & other=$!
			test $other = $first && break
			kill -9 $other
		done
		test $other = $first || exit 9
		wait $trace
		code=$?
		kill -9 $other
		exit $code`
	c := exec.Command("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script, "bash", exe, filepath.Join(t.TempDir(), "out"), must(exec.LookPath("strandline")), filepath.Join(t.TempDir(), "run.trace"))
	out, err := c.Output()
	if c.ProcessState == nil || c.ProcessState.ExitCode() == 9 || len(out) == 0 {
		live.Missing(t, "namespaces in which a process number is reused", err)
	}
	var doc recording.Document
	if err := json.Unmarshal(out, &doc); err != nil || !doc.Ended {
		t.Errorf("%v: after %v s, ended %v", err, doc.Duration, doc.Ended)
	}
}
