package processes

import (
	"path/filepath"

	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/host/gpu/gpuaccount"
	"strandline/host/store/recording"
	"strandline/torch/snapshot"
)

// An Account is what is known of the devices of a trace: what the driver counts on each,
// what PyTorch holds of it in each process, and what is found in that.
type Account struct {
	Devices  []recording.GPUDevice
	Reserved map[int]gpuaccount.Placed // by process
	Findings []finding.Finding
}

// Devices judges the account of the devices. pidOf returns the process that a snapshot
// belongs to, by the snapshot's name, or 0. The shares are what each of the processes
// took from the driver.
func Devices(s *recording.GPUState, snapshots []*snapshot.Snapshot, pidOf func(name string) int, processes []ledger.Process, shares []ledger.Share) Account {
	has := reserved(snapshots, pidOf)
	a := Account{Devices: gpuaccount.Account(s, has), Reserved: gpuaccount.ByProcess(s, has)}
	a.Findings = devices(a.Devices, processOf(processes, shares))
	return a
}

// RecordedDevices judges the account of the devices of a recording, with snapshots that
// are named with it. The findings are the document's, with those of the account replaced.
func RecordedDevices(run *recording.Run, snapshots []*snapshot.Snapshot, pidOf func(name string) int) Account {
	var processes []ledger.Process
	var shares []ledger.Share
	for _, p := range run.Document.Processes {
		processes = append(processes, ledger.Process{PID: uint32(p.PID), Name: p.Name, Role: p.Role})
		for _, o := range p.GPU {
			shares = append(shares, ledger.Share{PID: uint32(p.PID), Live: o.LiveBytes})
		}
	}
	a := Devices(run.GPU, snapshots, pidOf, processes, shares)
	for _, f := range run.Document.Findings {
		if f.Kind != finding.DriverSum && f.Kind != finding.DriverUnseen {
			a.Findings = append(a.Findings, f)
		}
	}
	return a
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
