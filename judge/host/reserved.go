package host

import (
	"path/filepath"

	"strandline/finding"
	"strandline/host/gpuaccount"
	"strandline/host/recording"
	"strandline/torch/snapshot"
)

// Account puts the account of the devices into a document, and the findings of it
// in the place of those that it has.
func Account(doc *recording.Document, s *recording.GPUState, snapshots []*snapshot.Snapshot) {
	doc.GPU.Devices = gpuaccount.Of(s, reserved(snapshots))
	kept := []finding.Finding{}
	for _, f := range doc.Findings {
		if f.Kind != finding.DriverSum && f.Kind != finding.DriverUnseen {
			kept = append(kept, f)
		}
	}
	doc.Findings = append(Devices(doc.GPU.Devices), kept...)
}

// reserved is what PyTorch has by each of some snapshots.
func reserved(snapshots []*snapshot.Snapshot) []gpuaccount.Reserved {
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
