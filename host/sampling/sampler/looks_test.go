//go:build linux

package sampler

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/internal/test/live"
)

// grower grows by 48 MiB for each line of its input: in a file in memory, or in mappings
// of its own.
const grower = `import mmap, os, sys
kept = []
print("ready", flush=True)
for line in open(sys.argv[1]):
    if line == "memfd\n":
        fd = os.memfd_create("x")
        os.ftruncate(fd, 48 << 20)
        m = mmap.mmap(fd, 48 << 20)
    else:
        m = mmap.mmap(-1, 48 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, 48 << 20, 1 << 20):
        m[at:at + (1 << 20)] = b"\1" * (1 << 20)
    kept.append(m)
`

// TestLooks has a process grow until its mappings were looked at twice.
func TestLooks(t *testing.T) {
	python, dir := live.Tool(t, "python3"), t.TempDir()
	script, in := filepath.Join(dir, "grower.py"), filepath.Join(dir, "in")
	if err := os.WriteFile(script, []byte(grower), 0o600); err != nil {
		t.Fatal(err)
	}
	pid, line := live.Start(t, "sh", "-c", `mkfifo "$0" && exec "$@"`, in, python, script, in)
	if line != "ready" {
		t.Fatalf("it says %q", line)
	}
	orders, err := os.OpenFile(in, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer orders.Close()
	s, err := New(Options{PID: pid, Interval: time.Hour, dialTorch: recorder(nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if p := take(t, s).Processes[0]; p.Grown != nil {
		t.Errorf("before it grows: %+v", p.Grown)
	}
	for _, c := range []struct{ order, class string }{
		{"memfd\n", string(finding.MemoryFiles)}, {"mmap\n", string(finding.MmapLeak)},
	} {
		// It must grow again after each look: the first of all is the beginning.
		grown := func() bool {
			g := s.watched[pid].now.Grown
			return g != nil && slices.ContainsFunc(g.Classes, func(k sample.Class) bool { return k.Class == c.class && k.Bytes >= 40<<20 })
		}
		for n := 0; !grown(); n++ {
			if n == 8 {
				t.Fatalf("after %d times %q: %+v", n, c.order, s.watched[pid].now.Grown)
			}
			if _, err := io.WriteString(orders, c.order); err != nil {
				t.Fatal(err)
			}
			held := s.watched[pid].now.Host.Resident()
			takeUntil(t, s, func(s *sample.Sample) bool { return s.Processes[0].Host.Resident()-held >= 47<<20 })
			waitForLook(t, s, sample.ID{PID: pid, Started: s.watched[pid].now.Started})
		}
	}
}

// waitForLook takes samples until no look is due.
func waitForLook(t *testing.T, s *Sampler, id sample.ID) {
	t.Helper()
	for {
		now := take(t, s).Processes[0]
		s.looks.mu.Lock()
		own := s.looks.all[id]
		done := own != nil && !s.looks.on && own.at >= now.Host.Anonymous+now.Host.Shared-minGrowth
		if own != nil {
			own.next = time.Time{} // now
		}
		s.looks.mu.Unlock()
		if done {
			take(t, s) // with what was seen
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestLooksAreBounded has many processes grow, of which some stop.
func TestLooksAreBounded(t *testing.T) {
	l, now := newLooks(), time.Now()
	for pid := range maxLooked {
		if !l.room(now) {
			t.Fatalf("no room for process %d", pid)
		}
		l.all[sample.ID{PID: pid}] = &looked{next: now.Add(time.Duration(pid) * time.Second)}
	}
	if l.room(now) {
		t.Error("room for more, although all may still grow")
	}
	if !l.room(now.Add(2*time.Minute)) || len(l.all) != maxLooked-1 || l.all[sample.ID{PID: 0}] != nil {
		t.Errorf("after a while: %v", l.all)
	}
}
