package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/internal/live"
)

// TestGrowing has a process trace its allocations from its first step on. The line that
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
`
	for _, python := range pythons(t) {
		work := t.TempDir()
		file := filepath.Join(work, "leaks.py")
		if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Begin(Options{Dir: filepath.Join(work, "recording"), Levels: "call", NoSnapshots: true}, Manifest{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.AskForLines(); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(python, file)
		if c.Env, err = s.Environ(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")); err != nil {
			t.Fatal(err)
		}
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%s: %v, output %s", python, err, out)
		}
		all := s.Growing()
		i := slices.IndexFunc(all, func(g Growing) bool { return g.PID == c.Process.Pid })
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
            signal.raise_signal(signal.SIGRTMAX - 5)
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
		s, err := Begin(Options{Dir: filepath.Join(work, "recording"), Levels: "auto", NoSnapshots: true}, Manifest{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.AskForLines(); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(work, "leaks.py")
		mark := "'" + filepath.Join(s.Options.Dir, journals, "levels", "%d.lines~") + "' % os.getpid()"
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(code, "MARK", mark)), 0o644); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(python, file)
		if c.Env, err = s.Environ(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")); err != nil {
			t.Fatal(err)
		}
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%s: %v, output %s", python, err, out)
		}
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
