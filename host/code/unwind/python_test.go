//go:build linux && amd64

package unwind

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strandline/host/calls/event"
	"strandline/host/code/cpython"
	"strandline/host/code/image"
	"strandline/host/code/pyframes"
	"strandline/internal/test/live"
)

// program waits in the main thread and in another one, below functions of
// several kinds. Its name holds characters of two bytes each.
const program = `import sys, threading, time

class Server:
    def step(self, n):
        if n:
            return self.step(n - 1)
        return sorted([1, 2],
                      key=self.key)

    def key(self, x):
        return sum(
            self.numbers())

    def numbers(self):
        yield 1
        wait(
            "x" * 3)

def wait(text):
    def inner():
        if threading.current_thread() is threading.main_thread():
            print("ready", flush=True)
        time.sleep(
            1000)
    inner()
    # more
    # lines

def grüße():
    eval("[Server().step(2) for i in range(1)]")

threading.Thread(target=grüße, daemon=True).start()
time.sleep(0.3)
grüße()
`

// pythons are the interpreters at hand: those that the variable names, and the
// machine's.
func pythons(t *testing.T) (out []string) {
	if list := os.Getenv("STRANDLINE_PYTHONS"); list != "" {
		out = strings.Split(list, ":")
	} else {
		t.Log("STRANDLINE_PYTHONS names no other versions of Python: the machine's alone is tried")
	}
	if found, err := exec.LookPath("python3"); err == nil {
		out = append(out, found)
	}
	if len(out) == 0 {
		live.Tool(t, "python3") // none is installed
	}
	return out
}

func TestPython(t *testing.T) {
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "größe.py")
			if err := os.WriteFile(script, []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			pid, _ := live.Start(t, python, script)
			im := imageOf(t, pid)
			r, err := cpython.Find(im)
			if err != nil {
				t.Fatal(err)
			}
			if r.Minor < cpython.OldestMinor || r.Minor > cpython.NewestMinor {
				t.Fatalf("found the version 3.%d", r.Minor)
			}
			codes := r.Codes()
			for _, tid := range threadsOf(t, pid) {
				live.Settle(t, pid, tid)
				got := pythonStack(t, im, r, codes, pid, tid)
				want := wanted(r, script, tid == pid)
				if !slices.Equal(got, want) {
					t.Errorf("thread %d of Python 3.%d: got\n%s\nwant\n%s", tid, r.Minor, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

// pythonStack are the functions of Python in the stack of a thread.
func pythonStack(t *testing.T, im *image.Image, r *cpython.Runtime, codes *cpython.Codes, pid, tid int) (out []string) {
	t.Helper()
	th := live.Catch(t, pid, tid, 256<<10)
	s := sampleFrom(th)
	calls, err := Calls(im, s, nil)
	if err != nil {
		t.Errorf("thread %d: not complete: %v", tid, err)
	}
	layout := r.Layout()
	walked, state := pyframes.Walk(im, &layout, pyframes.Thread{Native: tid, Pthread: th.Registers.Fs_base})
	if state != event.Complete {
		t.Fatalf("thread %d: the frames are not complete: state %d", tid, state)
	}
	frames := r.Frames(walked)
	steps, whole := Merge(im, r, calls, frames)
	if !whole {
		t.Errorf("thread %d: %d calls and %d frames do not fit", tid, len(calls), len(frames))
	}
	for _, step := range steps {
		f := Name(im, codes, step)
		switch {
		case strings.HasSuffix(f.File, "/threading.py"):
		case step.Python != nil:
			out = append(out, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Function))
		case f.Function == "builtin_sorted" || f.Function == "builtin_sum":
			out = append(out, f.Function)
		}
	}
	return out
}

// wanted returns what is in the program.
func wanted(r *cpython.Runtime, script string, main bool) []string {
	at := func(line int, qualified, plain string) string {
		if r.Minor < 11 {
			qualified = plain
		}
		return fmt.Sprintf("%s:%d %s", script, line, qualified)
	}
	out := []string{
		at(23, "wait.<locals>.inner", "inner"), at(25, "wait", "wait"), at(16, "Server.numbers", "numbers"), "builtin_sum",
		at(11, "Server.key", "key"), "builtin_sorted", at(7, "Server.step", "step"), at(6, "Server.step", "step"), at(6, "Server.step", "step"),
	}
	if r.Minor < 12 {
		out = append(out, "<string>:1 <listcomp>")
	}
	out = append(out, "<string>:1 <module>", at(30, "grüße", "grüße"))
	if main {
		out = append(out, at(34, "<module>", "<module>"))
	}
	if r.Object.Stripped() { // functions that are not exported have no names
		out = slices.DeleteFunc(out, func(s string) bool { return strings.HasPrefix(s, "builtin_") })
	}
	return out
}

func threadsOf(t *testing.T, pid int) (out []int) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// BenchmarkCalls unwinds the stack of a Python program.
func BenchmarkCalls(b *testing.B) {
	python := live.Tool(b, "python3")
	script := filepath.Join(b.TempDir(), "wait.py")
	if err := os.WriteFile(script, []byte(program), 0o600); err != nil {
		b.Fatal(err)
	}
	pid, _ := live.Start(b, python, script)
	live.Settle(b, pid, pid)
	im, s := imageOf(b, pid), sampleOf(b, pid, pid)
	var calls []Call
	for b.Loop() {
		var err error
		if calls, err = Calls(im, s, calls[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(calls)), "ns/call")
}
