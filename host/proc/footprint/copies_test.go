package footprint

import (
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/proc/procfs"
)

func anon(start, size, rss, private uint64) procfs.Usage {
	return procfs.Usage{Mapping: procfs.Mapping{Start: start, End: start + size, Read: true, Write: true}, RSS: rss, PrivateDirty: private}
}

// Of a child's own memory only that counts as copied which lies where its parent has
// memory.
func TestCopied(t *testing.T) {
	const mib = 1 << 20
	parent := []procfs.Usage{anon(100*mib, 10*mib, 8*mib, 0), anon(200*mib, 10*mib, 0, 0)}
	child := []procfs.Usage{anon(100*mib, 10*mib, 8*mib, 5*mib), anon(200*mib, 10*mib, 4*mib, 4*mib), anon(300*mib, 10*mib, 9*mib, 9*mib)}
	if got := copied(child, parent); got != 5*mib {
		t.Errorf("%d bytes", got)
	}
	child[0].Shared = true
	if got := copied(child, parent); got != 0 {
		t.Errorf("%d bytes of shared memory", got)
	}
}

// A worker that is forked while a process is watched, and copies what it inherits, is
// found, and so is one that did so before.
func TestChildThatCopies(t *testing.T) {
	const mib = 1 << 20
	looks := func(copies ...uint64) (out []*Observation) {
		for i, n := range copies {
			o := &Observation{PID: 1, At: time.Duration(i) * 3 * time.Second, children: map[procfs.Process]procfs.Usage{}}
			o.status.Anon = 100 * mib
			if n > 0 {
				o.children[7] = procfs.Usage{}
				o.copied = map[procfs.Process]uint64{7: n * mib}
			}
			out = append(out, o)
		}
		return out
	}
	for _, c := range []struct {
		name            string
		copies          []uint64
		bytes           int64 // MiB
		steady, earlier bool
	}{
		{"forked meanwhile", []uint64{0, 8, 16, 24, 32, 40}, 40, true, false},
		{"goes on", []uint64{8, 16, 24, 32, 40, 48}, 40, true, false},
		{"before", []uint64{40, 40, 40, 40, 40, 40}, 40, false, true},
		{"little", []uint64{9, 9, 9, 9, 9, 9}, 0, false, false},
		{"one after another", []uint64{0, 0, 0, 0, 0, 0}, 0, false, false},
	} {
		g := Grown(looks(c.copies...), nil)
		if c.bytes == 0 {
			if len(g.Parts) > 0 {
				t.Errorf("%s: %+v", c.name, g.Parts)
			}
			continue
		}
		if len(g.Parts) != 1 || g.Parts[0].Class != finding.CopyOnWrite || g.Parts[0].Bytes != c.bytes*mib || g.Parts[0].Steady != c.steady || g.Parts[0].Earlier != c.earlier || g.Parts[0].Process != 7 {
			t.Errorf("%s: %+v", c.name, g.Parts)
		}
	}
}
