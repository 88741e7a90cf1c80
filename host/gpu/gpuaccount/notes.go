package gpuaccount

import (
	"fmt"

	"strandline/host/store/recording"
	"strandline/units"
)

func note(d *recording.GPUDevice, format string, a ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, a...))
}

// note states what is not known, and what the parts do not include.
func (g *group) note(d *recording.GPUDevice, s *recording.GPUState, own, others counted) {
	switch {
	case s.Count == nil:
		note(d, "%s: how much of the device is used is not known; --device-used gives it", s.NotCounted)
	case s.Count.Given:
		note(d, "how much is used was given by hand; what the processes had before the trace, their contexts and other processes are in the remainder")
	case !g.named:
		note(d, "nvidia-smi does not name these processes, as in a container, where it knows those of the host: their contexts, what they had before the trace and other processes are in the remainder")
	case own.unknown > 0:
		note(d, "the driver does not report what the processes use: their contexts and what they had before the trace are in the remainder")
	}
	if others.unknown > 0 {
		note(d, "the remainder includes %s whose use the driver does not report", units.Plural(int64(others.unknown), "other process"))
	}
	if s.Count != nil && d.Used == nil {
		note(d, "the driver does not report how much of the device is used, as when it shares the host's memory")
	}
	if len(g.devices) > 1 {
		note(d, "these are the sums of several devices: driver calls do not show on which one memory is allocated")
	}
	if d.Beyond > 0 {
		note(d, "the parts are %s more than the driver counts: the snapshot is of another moment or another process, or memory is counted that several processes share", units.Bytes(d.Beyond))
	}
	if d.Absent > 0 {
		note(d, "%s of PyTorch's allocator is in no segment of the snapshot: taken after it was written, or given back before", units.Bytes(d.Absent))
	}
	if s.Managed > 0 {
		note(d, "%s of managed memory is in no part: it moves between the device and the host", units.Bytes(s.Managed))
	}
	if s.Foreign > 0 {
		note(d, "memory of other processes is open by %s; the driver can count it for both", units.Plural(int64(s.Foreign), "handle"))
	}
	if s.Dropped {
		note(d, "events were lost, and with them calls that took memory or gave it back")
	}
}
