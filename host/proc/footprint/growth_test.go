//go:build linux

package footprint_test

import (
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/proc/footprint"
	"strandline/host/proc/procfs"
	"strandline/internal/test/leaks"
	"strandline/internal/test/live"
)

// Two measurements of a program that grows in one way show that way, and no other of
// more than a fifth of its size.
func TestClasses(t *testing.T) {
	live.Traces(t)
	live.Sequential(t)
	for _, p := range leaks.All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			reclaimed := leaks.Reclaimed()
			pid := procfs.Process(p.Start(t))
			g := twoLooks(t, pid, p.Name, 2*time.Second)
			for apart := 8 * time.Second; p.Name != "quiet" && len(g.Parts) == 0 && apart < time.Minute; apart *= 2 { // on a busy machine it got little time
				g = twoLooks(t, pid, p.Name, apart)
			}
			t.Logf("RSS grew by %d KiB: %d anonymous, %d of files, %d shared; parts %+v; missing %q", g.RSS>>10, g.Anon>>10, g.File>>10,
				g.Shared>>10, g.Parts, g.After.Missing)
			p.Kept(t, reclaimed)
			if p.Name == "quiet" {
				if len(g.Parts) > 0 {
					t.Errorf("nothing grows, and %+v is reported", g.Parts)
				}
				return
			}
			want := finding.Kind(p.Name)
			if want == finding.Regrown { // that it is another each time is seen by the calls alone
				want = finding.MmapLeak
			}
			if len(g.Parts) == 0 || g.Parts[0].Class != want {
				t.Fatalf("want %s first, got %+v", want, g.Parts)
			}
			for _, other := range g.Parts[1:] {
				if other.Bytes > g.Parts[0].Bytes/5 {
					t.Errorf("%s is claimed, too: %+v", other.Class, g.Parts)
				}
			}
			if e := g.Explained(); e < 0.8 {
				t.Errorf("%.0f %% of the growth is explained", 100*e)
			}
		})
	}
}

// twoLooks observes a process twice. What leaks does so by time, and a program that is
// quiet has to stay so for a while: nothing else can be waited for. Whoever sees too
// little looks again, longer.
func twoLooks(t *testing.T, p procfs.Process, name string, apart time.Duration) *footprint.Growth {
	before, err := footprint.Observe(p)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(apart)
	after, err := footprint.Observe(p)
	if err != nil {
		t.Fatal(err)
	}
	// By the maps alone what mremap makes larger can look like mappings that were
	// merged, and the other way about.
	var none, all uint64 = 0, 1 << 40
	switch name {
	case "mremap":
		before.Remapped, after.Remapped = &none, &all
	case "regrown":
		before.Remapped, after.Remapped = &none, &none
	}
	memory, err := p.Memory()
	live.Need(t, "reading the memory of another process", err)
	defer memory.Close()
	return footprint.Grown([]*footprint.Observation{before, after}, memory)
}
