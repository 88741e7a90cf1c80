package gpuaccount

import (
	"fmt"

	"strandline/host/recording"
	"strandline/units"
)

func note(d *recording.GPUDevice, format string, a ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, a...))
}

// note states what is not known, and what the parts do not hold.
func (g *group) note(d *recording.GPUDevice, s *recording.GPUState, own, others counted) {
	switch {
	case s.Count == nil:
		note(d, "%s: how much of the device is used is not known; --device-used gives it", s.NotCounted)
	case s.Count.Given:
		note(d, "how much is used was given by hand; what the processes had before the trace, their contexts and other processes are in the remainder")
	case !g.named:
		note(d, "nvidia-smi does not name these processes, as in a container, where it knows those of the host: their contexts, what they had before the trace and other processes are in the remainder")
	case own.unknown > 0:
		note(d, "the driver does not tell what the processes use: their contexts and what they had before the trace are in the remainder")
	}
	if others.unknown > 0 {
		note(d, "the remainder has %s in it of which the driver does not tell what they use", plural(others.unknown, "other process", "es"))
	}
	if s.Count != nil && d.Used == nil {
		note(d, "the driver does not tell how much of the device is used, as where it shares the memory of the host")
	}
	if len(g.devices) > 1 {
		note(d, "these are the sums of several devices: calls of the driver do not tell on which one memory is taken")
	}
	if d.Beyond > 0 {
		note(d, "the parts are %s more than the driver counts: the snapshot is of another moment or another process, or memory is counted that several processes share", units.Bytes(d.Beyond))
	}
	if d.Absent > 0 {
		note(d, "%s of PyTorch's allocator are in no segment of the snapshot: taken after it was written, or given back before", units.Bytes(d.Absent))
	}
	if s.Managed > 0 {
		note(d, "%s of managed memory are in no part: they move between the device and the host", units.Bytes(s.Managed))
	}
	if s.Foreign > 0 {
		note(d, "memory of other processes is open by %s; the driver can count it for both", plural(int(s.Foreign), "handle", "s"))
	}
	if s.Dropped {
		note(d, "events were lost, and with them calls that took memory or gave it back")
	}
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return units.Count(int64(n)) + " " + one + more
}
