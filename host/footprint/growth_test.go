//go:build linux

package footprint_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/footprint"
	"strandline/host/procfs"
	"strandline/internal/leaks"
)

// Two looks at a program that grows in one way tell the way, and no other that
// weighs as much as a fifth of it.
func TestClasses(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	for _, p := range leaks.All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			reclaimed := leaks.Reclaimed()
			pid := procfs.Process(p.Start(t))
			g := twoLooks(t, pid, p.Name, 2*time.Second)
			if p.Name != "quiet" && len(g.Parts) == 0 { // busy with other things, the machine let it do little
				g = twoLooks(t, pid, p.Name, 8*time.Second)
			}
			t.Logf("RSS grew by %d KiB: %d anonymous, %d of files, %d shared; parts %+v; missing %q", g.RSS>>10, g.Anon>>10, g.File>>10,
				g.Shared>>10, g.Parts, g.After.Missing)
			p.Kept(t, reclaimed)
			if p.Name == "quiet" {
				if len(g.Parts) > 0 {
					t.Errorf("nothing grows, and %+v is told", g.Parts)
				}
				return
			}
			if len(g.Parts) == 0 || g.Parts[0].Class != finding.Kind(p.Name) {
				t.Fatalf("want %s first, got %+v", p.Name, g.Parts)
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
	if name == "mremap" { // by the maps alone it can look like mappings that were merged
		var none, all uint64 = 0, 1 << 40
		before.Remapped, after.Remapped = &none, &all
	}
	memory, err := p.Memory()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("the memory of another process may not be read here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	return footprint.Over([]*footprint.Observation{before, after}, memory)
}
