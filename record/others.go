package record

import (
	"cmp"
	"slices"
	"time"

	"strandline/internal/sorts"
)

// A Reading is what the driver reported of the processes on all devices.
type Reading struct {
	Time      time.Time `json:"time"`
	Processes []Use     `json:"processes"`
}

// A Use is what a process holds of a device.
type Use struct {
	PID   int    `json:"pid"`
	UUID  string `json:"uuid"` // of the device
	Bytes int64  `json:"bytes"`
}

// A Holder is a process that holds memory of a device. Process is nil for one that is
// not recorded.
type Holder struct {
	PID     int
	Bytes   int64
	Process *Process
}

// maxApart is how far apart a failure and a reading may be.
const maxApart = time.Minute

// Others are the other processes that held memory of the device when memory ran out in
// process p, the one of the most first: those of the recording by what their allocator
// had reserved in their snapshot before (otherwise in the first after), and all by what the
// driver reported.
func (m *Manifest) Others(p *Process, o OOM) (out []Holder) {
	uuid := p.uuid(o.Device)
	for i := range m.Processes {
		q := &m.Processes[i]
		if q.PID == p.PID && q.Since.Equal(p.Since) {
			continue
		}
		if n := q.reserved(uuid, p, o); n > 0 {
			out = append(out, Holder{q.PID, n, q})
		}
	}
	for _, r := range m.Readings {
		if d := r.Time.Sub(o.Time); d < -maxApart || d > maxApart {
			continue
		}
		for _, u := range r.Processes {
			if uuid == "" || !sameDevice(u.UUID, uuid) || u.PID == p.PID {
				continue
			}
			k := slices.IndexFunc(out, func(h Holder) bool { return h.PID == u.PID })
			if k < 0 {
				k = len(out)
				out = append(out, Holder{PID: u.PID, Process: m.Find(u.PID)})
			}
			out[k].Bytes = max(out[k].Bytes, u.Bytes)
		}
	}
	sorts.StableBy(out, func(a, b Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// sameDevice compares ids, which tools print with and without "GPU-".
func sameDevice(a, b string) bool { return trimmed(a) == trimmed(b) }

func trimmed(uuid string) string {
	if len(uuid) > 4 && uuid[:4] == "GPU-" {
		return uuid[4:]
	}
	return uuid
}

func (p *Process) uuid(device int) string {
	for _, d := range p.Devices {
		if d.Index == device {
			return d.UUID
		}
	}
	return ""
}

// reserved returns what a process had reserved of the device on which another's memory ran
// out: of the same id or, where ids are unknown, of the same index and visibility.
func (p *Process) reserved(uuid string, failed *Process, o OOM) (bytes int64) {
	for i := range p.Dumps {
		dump := &p.Dumps[i]
		if dump.Time.After(o.Time) && bytes > 0 {
			break
		}
		bytes = p.reservedIn(dump, uuid, failed, o.Device)
	}
	if p.Ended && len(p.Dumps) > 0 && p.Dumps[len(p.Dumps)-1].Time.Before(o.Time) {
		return 0 // it was gone by then
	}
	return bytes
}

// reservedIn returns what a process had reserved, at one snapshot, of a device of another.
func (p *Process) reservedIn(dump *Dump, uuid string, other *Process, device int) (bytes int64) {
	for _, d := range dump.Devices {
		same := d.Device == device && equal(p.Visible, other.Visible)
		if id := p.uuid(d.Device); id != "" && uuid != "" {
			same = sameDevice(id, uuid)
		}
		if same {
			bytes += d.Reserved
		}
	}
	return bytes
}

// Beside returns the processes of the recording whose snapshot nearest to a dump of process p
// holds memory of a device of that dump, the one of the most first.
func (m *Manifest) Beside(p *Process, d *Dump, device int) (out []Holder) {
	uuid := p.uuid(device)
	for i := range m.Processes {
		q := &m.Processes[i]
		if q.PID == p.PID && q.Since.Equal(p.Since) || len(q.Dumps) == 0 {
			continue
		}
		distance := func(a Dump) time.Duration { return a.Time.Sub(d.Time).Abs() }
		nearest := slices.MinFunc(q.Dumps, func(a, b Dump) int { return cmp.Compare(distance(a), distance(b)) })
		if n := q.reservedIn(&nearest, uuid, p, device); n > 0 {
			out = append(out, Holder{q.PID, n, q})
		}
	}
	sorts.StableBy(out, func(a, b Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

func equal(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
