package processes

import (
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

// Devices judges the account of the devices, with what PyTorch holds according to some
// snapshots. The shares are what each of the processes took from the driver.
func Devices(s *recording.GPUState, has []gpuaccount.Reserved, processes []ledger.Process, shares []ledger.Share) Account {
	a := Account{Devices: gpuaccount.Account(s, has), Reserved: gpuaccount.ByProcess(s, has)}
	a.Findings = devices(a.Devices, processOf(processes, shares))
	return a
}

// RecordedDevices judges the account of the devices of a recording, with what PyTorch holds
// according to snapshots beside it. The findings are the document's, with those of the
// account replaced.
func RecordedDevices(run *recording.Run, has []gpuaccount.Reserved) Account {
	var processes []ledger.Process
	var shares []ledger.Share
	for _, p := range run.Document.Processes {
		processes = append(processes, ledger.Process{PID: uint32(p.PID), Name: p.Name, Role: p.Role})
		for _, o := range p.GPU {
			shares = append(shares, ledger.Share{PID: uint32(p.PID), Live: o.LiveBytes})
		}
	}
	a := Devices(run.GPU, has, processes, shares)
	for _, f := range run.Document.Findings {
		if f.Kind != finding.DriverSum && f.Kind != finding.DriverUnseen {
			a.Findings = append(a.Findings, f)
		}
	}
	return a
}

// SetDevices sets the account of the devices in a document, with what PyTorch holds in
// each process.
func SetDevices(doc *recording.Document, devices []recording.GPUDevice, reserved map[int]gpuaccount.Placed) {
	doc.GPU.Devices = devices
	for i := range doc.Processes {
		p := &doc.Processes[i]
		p.PyTorch = nil
		if r, known := reserved[p.PID]; known {
			p.PyTorch = &recording.Reserved{Snapshot: r.Name, Bytes: r.Bytes, Allocated: r.Allocated, Since: r.Since}
		}
	}
}

// Reserved is what PyTorch holds according to a snapshot, without its name and process.
func Reserved(s *snapshot.Snapshot) (out gpuaccount.Reserved) {
	for k := range s.Segments {
		g := &s.Segments[k]
		if g.Device == snapshot.Host || g.TotalSize <= 0 || g.Addr+uint64(g.TotalSize) < g.Addr {
			continue
		}
		out.Segments = append(out.Segments, gpuaccount.Segment{Addr: g.Addr, Bytes: g.TotalSize})
		for _, b := range g.Blocks {
			if b.State == snapshot.Allocated {
				out.Allocated += b.Size
			}
		}
	}
	return out
}
