package host

import (
	"path/filepath"

	"strandline/finding"
	"strandline/host/gpuaccount"
	"strandline/host/ledger"
	"strandline/host/recording"
	"strandline/torch/snapshot"
)

// Account puts the account of the devices into a document, and replaces the document's
// findings about the account with new ones. pidOf returns the process that a snapshot
// belongs to, by the snapshot's name, or 0.
func Account(doc *recording.Document, s *recording.GPUState, snapshots []*snapshot.Snapshot, pidOf func(name string) int) {
	has := reserved(snapshots, pidOf)
	doc.GPU.Devices = gpuaccount.Of(s, has)
	by := gpuaccount.ByProcess(s, has)
	for i := range doc.Processes {
		p := &doc.Processes[i]
		p.PyTorch = nil
		if r, known := by[p.PID]; known {
			p.PyTorch = &recording.Reserved{Snapshot: r.Name, Bytes: r.Bytes, Allocated: r.Allocated, Since: r.Since}
		}
	}
	kept := []finding.Finding{}
	for _, f := range doc.Findings {
		if f.Kind != finding.DriverSum && f.Kind != finding.DriverUnseen {
			kept = append(kept, f)
		}
	}
	doc.Findings = append(devices(doc.GPU.Devices, users(doc)), kept...)
}

// users names the traced process that took most from the driver, and says how many
// others took something.
func users(doc *recording.Document) string {
	var processes []ledger.Process
	var shares []ledger.Share
	for _, p := range doc.Processes {
		processes = append(processes, ledger.Process{PID: uint32(p.PID), Name: p.Name, Role: p.Role})
		for _, o := range p.GPU {
			shares = append(shares, ledger.Share{PID: uint32(p.PID), Live: o.LiveBytes})
		}
	}
	return processOf(processes, shares)
}

// reserved is what PyTorch holds according to some snapshots.
func reserved(snapshots []*snapshot.Snapshot, pidOf func(name string) int) []gpuaccount.Reserved {
	out := make([]gpuaccount.Reserved, len(snapshots))
	for i, s := range snapshots {
		out[i].Name, out[i].PID = filepath.Base(s.Name), pidOf(s.Name)
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
