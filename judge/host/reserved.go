package host

import (
	"path/filepath"

	"strandline/host/gpuaccount"
	"strandline/torch/snapshot"
)

// Reserved is what PyTorch has by each of some snapshots, for the account of a
// device.
func Reserved(snapshots []*snapshot.Snapshot) []gpuaccount.Reserved {
	out := make([]gpuaccount.Reserved, len(snapshots))
	for i, s := range snapshots {
		out[i].Name = filepath.Base(s.Name)
		for k := range s.Segments {
			g := &s.Segments[k]
			if g.TotalSize <= 0 || g.Addr+uint64(g.TotalSize) < g.Addr {
				continue
			}
			out[i].Segments = append(out[i].Segments, gpuaccount.Segment{Addr: g.Addr, Bytes: g.TotalSize})
			for _, b := range g.Blocks {
				if b.State == snapshot.Allocated {
					out[i].Allocated += b.Size
				}
			}
		}
	}
	return out
}
