package timeline

import (
	"sort"

	"strandline/stack"
	"strandline/torch/snapshot"
)

// A PrivatePool is the memory of a pool that only some allocations may use: of a
// CUDA graph's capture, or of torch.cuda.MemPool.
type PrivatePool struct {
	Pool     snapshot.Pool
	Segments int
	Reserved int64
	Active   int64 // rounded
	Free     int64 // no other pool can have it
	// Took is the place that took most of it from the driver, otherwise made most of
	// what is active in it; the zero Site if no stack shows it.
	Took stack.Site
}

// ByGraph marks a pool that a CUDA graph made for itself.
func (p *PrivatePool) ByGraph() bool { return p.Pool.Graph != 0 }

// PrivatePools sums a device's segments by private pool, most reserved first.
func PrivatePools(s *snapshot.Snapshot, d snapshot.Device) []PrivatePool {
	type sums struct {
		PrivatePool
		took, made map[stack.Site]int64
	}
	pools := map[snapshot.Pool]*sums{}
	for _, i := range d.Segments {
		seg := &s.Segments[i]
		pool := s.PoolOf(seg.Pool)
		if !pool.Private() {
			continue
		}
		p := pools[pool]
		if p == nil {
			p = &sums{PrivatePool{Pool: pool}, map[stack.Site]int64{}, map[stack.Site]int64{}}
			pools[pool] = p
		}
		p.Segments++
		p.Reserved += seg.TotalSize
		p.took[s.Stacks.Site(seg.Stack)] += seg.TotalSize
		for j := range seg.Blocks {
			if b := &seg.Blocks[j]; b.State.Active() {
				p.Active += b.Size
				p.made[s.Stacks.Site(b.Stack)] += b.Size
			} else {
				p.Free += b.Size
			}
		}
	}
	out := make([]PrivatePool, 0, len(pools))
	for _, p := range pools {
		p.Took = heaviestSite(p.took)
		if p.Took == (stack.Site{}) {
			p.Took = heaviestSite(p.made)
		}
		out = append(out, p.PrivatePool)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		if a.Reserved != b.Reserved {
			return a.Reserved > b.Reserved
		}
		return a.Pool.Graph < b.Pool.Graph || a.Pool.Graph == b.Pool.Graph && a.Pool.User < b.Pool.User
	})
	return out
}

// heaviestSite is the known place with most bytes, the same in every run.
func heaviestSite(bytes map[stack.Site]int64) (best stack.Site) {
	for site, n := range bytes {
		if site == (stack.Site{}) {
			continue
		}
		if m := bytes[best]; best == (stack.Site{}) || n > m || n == m && site.Compare(best) < 0 {
			best = site
		}
	}
	return best
}
