package footprint

import (
	"cmp"
	"slices"

	"strandline/finding"
	"strandline/host/proc/procfs"
	"strandline/host/proc/vmmap"
	"strandline/internal/sorts"
)

const (
	// maxCopying bounds the children whose every mapping is read in a look.
	maxCopying = 8
	// To be reported, a child must have copied at least minCopied bytes before the
	// first look, and at least copiedShare of the parent's memory.
	minCopied   = 32 << 20
	copiedShare = 0.25
)

// copies returns, for the children that have most private memory, how much of it they
// shared with the process when it forked them and have written to since.
func (o *Observation) copies() map[procfs.Process]uint64 {
	type child struct {
		procfs.Process
		own uint64
	}
	var most []child
	for p, u := range o.children {
		if u.PrivateDirty >= minGrowth {
			most = append(most, child{p, u.PrivateDirty})
		}
	}
	sorts.By(most, func(a, b child) int {
		return cmp.Or(cmp.Compare(b.own, a.own), cmp.Compare(a.Process, b.Process))
	})
	out := map[procfs.Process]uint64{}
	for _, c := range most[:min(len(most), maxCopying)] {
		if st, err := c.Status(); err != nil || procfs.Process(st.Parent) != o.PID {
			continue
		}
		faults, err := c.Faults()
		if err != nil {
			continue
		}
		if regions, err := c.Smaps(); err == nil {
			out[c.Process] = min(copied(regions, o.regions), faults*page)
		}
	}
	return out
}

// copied returns how much of a child's memory is the child's alone where its parent has
// private memory, too. It includes what the parent wrote to: the child's faults show
// how much it wrote itself.
func copied(child, parent []procfs.Usage) (bytes uint64) {
	for _, r := range child {
		if kind := vmmap.KindOf(r.Mapping); r.Shared || kind != vmmap.Anonymous && kind != vmmap.Heap || r.Size() == 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(parent, r.Start, func(u procfs.Usage, at uint64) int {
			if u.End <= at {
				return -1
			}
			return 1
		})
		for ; i < len(parent) && parent[i].Start < r.End; i++ {
			b := parent[i]
			if vmmap.KindOf(b.Mapping) != vmmap.KindOf(r.Mapping) || b.Shared || b.Size() == 0 {
				continue
			}
			common := float64(min(b.End, r.End) - max(b.Start, r.Start))
			bytes += uint64(min(common/float64(r.Size())*float64(r.PrivateDirty), common/float64(b.Size())*float64(b.RSS)))
		}
	}
	return bytes
}

// copying returns what a child copied from one look to the next, in bytes.
func (g *Growth) copying(p procfs.Process) int64 {
	after, known := g.After.copied[p]
	before, old := g.Before.copied[p]
	if _, lived := g.Before.children[p]; !known || lived && !old {
		return 0
	}
	return delta(after, before)
}

// earlier adds children that had copied much before the first look, and nothing since
// then.
func (g *Growth) earlier() {
	for p, n := range g.Before.copied {
		reported := slices.ContainsFunc(g.Parts, func(q Part) bool { return q.Class == finding.CopyOnWrite && q.Process == p })
		if _, lives := g.After.children[p]; lives && !reported && n >= minCopied && float64(n) >= copiedShare*float64(g.Before.status.Anon) {
			g.add(Part{Class: finding.CopyOnWrite, Bytes: int64(n), Process: p, Outside: true, Earlier: true, Confidence: 0.7})
		}
	}
}
