package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

// TestGrowing has a process trace its allocations from an early step on. The line that
// keeps what it allocates is found, and those that free it or replace it are not. A forked
// child counts its own steps, and finds nothing that its parent kept.
func TestGrowing(t *testing.T) {
	const code = `
import os, strandline
kept, last, table = [], [], {}
def load():
    return bytearray(1000)
def remember(n):
    table[n % 2] = "x" * 5000 + str(n)
for n in range(40):
    last = [bytearray(3000) for _ in range(50)]
    remember(n)
    kept.append(load())
    if n == 20 and os.fork() == 0:
        for _ in range(20):
            strandline.step()
        os._exit(0)
    strandline.step()
    if n == 0:
        open(ASK, "a").write("\n")
`
	for _, python := range pythons(t) {
		work := t.TempDir()
		file := filepath.Join(work, "leaks.py")
		s, err := Begin(Options{Dir: filepath.Join(work, "recording"), Levels: "call", NoSnapshots: true}, Manifest{})
		if err != nil {
			t.Fatal(err)
		}
		ask := "'" + filepath.Join(s.Options.Dir, journals, "ask") + "'" // as AskForLines does
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(code, "ASK", ask)), 0o644); err != nil {
			t.Fatal(err)
		}
		pid := runSilently(t, s, python, file)
		all := s.Growing()
		i := slices.IndexFunc(all, func(g Growing) bool { return g.PID == pid })
		if i < 0 || len(all[i].Lines) == 0 {
			t.Fatalf("%s: %+v", python, all)
		}
		g := all[i]
		if all = slices.Delete(all, i, i+1); len(all) > 0 && len(all[0].Lines) > 0 {
			t.Errorf("%s: what the child keeps: %+v", python, all[0])
		}
		line := g.Lines[0]
		if line.Frames[0] != (Frame{file, 5}) || line.Frames[1] != (Frame{file, 11}) || line.Count < int64(g.Steps) || line.Bytes < int64(1000*g.Steps) {
			t.Errorf("%s: in %d steps %+v", python, g.Steps, line)
		}
		for _, l := range g.Lines[1:] {
			if l.Bytes > line.Bytes/4 {
				t.Errorf("%s: %+v is not kept", python, l)
			}
		}
		for _, p := range s.Levels() { // what tracing takes is no part of them
			first, last := p[0], p[len(p)-1]
			if p[0].PID == g.PID && (len(p) != 40 || first.Heap != nil && *last.Heap-*first.Heap > 1<<20) {
				t.Errorf("%s: from %+v to %+v", python, first, last)
			}
		}
		if _, err := s.End(0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPeriods tells a process that counts no steps, at moments of its own choice, that a
// period has ended. The line that keeps what it allocates is found, in one that has much
// more under way in the middle of whatever it does.
func TestPeriods(t *testing.T) {
	live.Linux(t)
	const code = `
import os, random, signal
kept = []
def load():
    return bytes(20000)
def work(period):
    some = []
    at = random.randrange(100)
    for n in range(100):
        some.append(bytes(random.randrange(20000)))
        if period and n == at:
            signal.raise_signal(signal.SIGURG)
    return some
period = 0
while period < 2 or os.path.exists(MARK):
    for _ in range(20):
        kept.append(load())
        work(False)
    work(True)
    period += 1
`
	for _, python := range pythons(t) {
		work := t.TempDir()
		s := askedForLines(t, work)
		file := filepath.Join(work, "leaks.py")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(code, "MARK", tracing(s))), 0o644); err != nil {
			t.Fatal(err)
		}
		runSilently(t, s, python, file)
		all := s.Growing()
		if len(all) != 1 || len(all[0].Lines) == 0 {
			t.Fatalf("%s: %+v", python, all)
		}
		g := all[0]
		line := g.Lines[0]
		if line.Frames[0] != (Frame{file, 5}) || g.Seconds <= 0 || line.Bytes < 20*20_000*4 {
			t.Errorf("%s: in %g seconds %+v", python, g.Seconds, line)
		}
		if len(g.Lines) > 1 && g.Lines[1].Bytes > line.Bytes/4 {
			t.Errorf("%s: %+v is not kept", python, g.Lines[1])
		}
		if off := float64(line.Bytes) / float64(g.Grew); off < 0.5 || off > 2 {
			t.Errorf("%s: the process grew by %d bytes, the line by %d", python, g.Grew, line.Bytes)
		}
		if _, err := s.End(0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestExplained ends the trace of a program without steps when its lines grow as it does.
func TestExplained(t *testing.T) {
	got := newModules(t).python(t, t.TempDir(), `
from strandline import _growing
g = _growing.Growing(None, "", None, 0)
line = (("a.py", 5),)
for held in (900, 1200, 300, 3000):
    g.periods = [(n, 1000 * n, {line: (held * n, n)}) for n in range(5)]
    print(g.explained())
`)
	if got != "True\nTrue\nFalse\nFalse\n" {
		t.Error(got)
	}
}

// TestTaken compares what tracing small objects takes with the growth of malloc's heap.
func TestTaken(t *testing.T) {
	live.Linux(t)
	const code = `
import tracemalloc
from strandline import _growing, _levels
def held():
    m = _levels._heap()
    return m.uordblks + m.hblkhd
if _levels.heap():
    for n in (10_000, 100_000):
        kept = [None] * n
        tracemalloc.start()
        before, taken = held(), _growing.taken()
        for i in range(n):
            kept[i] = str(i + n)
        real, taken = held() - before, _growing.taken() - taken
        tracemalloc.stop()
        assert 0.9 * real < taken < 1.1 * real, (n, real, taken)
`
	newModules(t).python(t, t.TempDir(), code)
}

// TestAnEarlierTraceStays has the end of a program cut its second trace short.
func TestAnEarlierTraceStays(t *testing.T) {
	live.Linux(t)
	const code = `
import os, signal
kept = []
def period():
    signal.raise_signal(signal.SIGURG)
period()
while os.path.exists(MARK):
    for i in range(6000):
        kept.append(str(i))
    period()
open(ASK, "a").write("\n")
period()
period()
assert os.path.exists(MARK)
`
	work := t.TempDir()
	s := askedForLines(t, work)
	file := filepath.Join(work, "leaks.py")
	ask := "'" + filepath.Join(s.Options.Dir, journals, "ask") + "'" // as AskForLines does
	text := strings.ReplaceAll(strings.ReplaceAll(code, "MARK", tracing(s)), "ASK", ask)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	runSilently(t, s, live.Tool(t, "python3"), file)
	if all := s.Growing(); len(all) != 1 || len(all[0].Lines) == 0 || all[0].Lines[0].Frames[0] != (Frame{file, 9}) {
		t.Errorf("%+v", all)
	}
	if !s.Tracing().IsZero() {
		t.Error("it is still said to trace")
	}
	if _, err := s.End(0); err != nil {
		t.Fatal(err)
	}
}

// TestTracingIsBounded has lines asked for while a program imports a module and while it
// loads, which then counts steps. The import is not traced. A look that takes a second is
// followed by 4 seconds without one, and steps end the trace of what was loaded before.
func TestTracingIsBounded(t *testing.T) {
	live.Linux(t)
	const code = `
import os, signal, sys, tracemalloc
import strandline
from strandline import _growing, _levels
sys.path.insert(0, os.path.dirname(__file__))

class Clock:
    now = spent = 0.0
    def monotonic(self): return self.now
    def thread_time(self): return self.spent
_growing.time = clock = Clock()
looks, real = [], _growing.sizes
def sizes():
    clock.spent += 1
    clock.now += 1
    looks.append(clock.now)
    return real()
_growing.sizes = sizes

def period():
    signal.raise_signal(signal.SIGURG)
MARK = MARK_PATH
import loaded
assert not tracemalloc.is_tracing() and not os.path.exists(MARK), "the import is traced"
period()
assert tracemalloc.is_tracing() and os.path.exists(MARK), "what follows is not traced"
import again
assert not tracemalloc.is_tracing() and not os.path.exists(MARK), "the second import is traced"
period()
for _ in range(12):
    period()
    clock.now += 1
assert len(looks) == 3 and all(b - a >= 4 for a, b in zip(looks, looks[1:])), looks
strandline.step()
assert not tracemalloc.is_tracing() and not os.path.exists(MARK), "what was loaded is traced"
strandline.step()
assert not tracemalloc.is_tracing(), "a step is traced because of what was loaded"
`
	for _, python := range pythons(t) {
		work := t.TempDir()
		s := askedForLines(t, work)
		files := map[string]string{"loads.py": strings.ReplaceAll(code, "MARK_PATH", tracing(s)), "loaded.py": "from __main__ import period\nperiod()\nperiod()\n", "again.py": "import loaded\n__import__('__main__').period()\n"}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		runSilently(t, s, python, filepath.Join(work, "loads.py"))
		if _, err := s.End(0); err != nil {
			t.Fatal(err)
		}
	}
}

// askedForLines begins a session in which lines are asked for from the beginning.
func askedForLines(t *testing.T, work string) *Session {
	t.Helper()
	s, err := Begin(Options{Dir: filepath.Join(work, "recording"), Levels: "auto", NoSnapshots: true}, Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AskForLines(); err != nil {
		t.Fatal(err)
	}
	return s
}

// tracing is Python for the name of the file that is there while a process without steps
// traces its allocations.
func tracing(s *Session) string {
	return "'" + filepath.Join(s.Options.Dir, journals, "levels", "%d.lines~") + "' % os.getpid()"
}

// runSilently runs a program of Python that prints nothing in a session, and returns its
// process ID.
func runSilently(t *testing.T, s *Session, python, file string) int {
	t.Helper()
	c := exec.Command(python, file)
	var err error
	if c.Env, err = s.Environ(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")); err != nil {
		t.Fatal(err)
	}
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%s: %v, output %s", python, err, out)
	}
	return c.Process.Pid
}
