package engine

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"

	"strandline/host/sampling/sample"
	"strandline/internal/sorts"
	"strandline/units"
)

// A subject is what is drawn by itself: a process on the host or on a device, a container,
// a device or the machine.
type subject struct {
	course
	id                      subjectID
	key, kind, label, place string
	facts                   [][2]string
	first, last             float64
	now                     int64
	limit                   *int64
	tags                    int    // of pausable memory, among the facts
	counted                 string // the control group whose count is that of a container
}

// A subjectID is which one it is. What does not apply is zero, and -1 of devices.
type subjectID struct {
	process sample.ID
	device  int
	group   string // a container, a job or a control group
}

// The parts of a process, in the order in which they are stacked.
const (
	anonymousPart = "anonymous"
	sharedPart    = "shared"
	filePart      = "file"
	pinnedPart    = "pinned, of these"
	swappedPart   = "swapped out"
	allocatedPart = "allocated"
	cachedPart    = "cached"
	otherPart     = "other"
	pausedPart    = "paused"
	wholePart     = "not divided"
	endedPart     = "processes that have ended"
	nobodysPart   = "not attributed to any process"
	elsewherePart = "everything else"
	groupPart     = "the control group's own count"
)

// A moment is what is known of one subject by one sample.
type moment struct {
	s     *subject
	total int64
	state []share
}

func (m *moment) stack(of any, name string, bytes int64) {
	m.total += bytes
	m.put(of, name, bytes, false)
}

func (m *moment) put(of any, name string, bytes int64, beside bool) {
	if p := m.s.part(of, name, beside); p >= 0 {
		m.state = append(m.state, share{p, bytes})
	}
}

func (m *moment) known(name string, bytes *int64) {
	if bytes != nil {
		m.stack(name, name, *bytes)
	}
}

// largest leaves the largest shares of processes in a state, in the order of parts. What
// is left out is in the total alone.
func (m *moment) largest() {
	if len(m.state) > maxShares {
		sorts.By(m.state, func(a, b share) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.part, b.part)) })
		m.state = m.state[:maxShares]
	}
	sorts.By(m.state, func(a, b share) int { return cmp.Compare(a.part, b.part) })
}

// take adds what is known of a subject.
func (w *Watch) take(m *moment, at float64, gap bool) {
	if len(m.s.list) == 0 {
		m.s.first = at
	}
	m.s.last, m.s.now = at, m.total
	m.s.add(w.samples, at, gap, m.total, m.state, max(maxStretches, maxInAll/(len(w.subjects)+1)))
}

// of is a subject, which is made if there is none yet.
func (w *Watch) of(id subjectID, kind, key, place string) *subject {
	s := w.subjects[id]
	if s == nil {
		s = &subject{id: id, kind: kind, key: key, place: place}
		w.subjects[id] = s
	}
	return s
}

// placeOf is where memory of a device is, in words.
func placeOf(device int) string {
	if device < 0 {
		return "host"
	}
	return fmt.Sprintf("device %d", device)
}

// processes adds the processes of a sample, each on the host and on its devices.
func (w *Watch) processes(s *sample.Sample, gap bool) {
	for i := range s.Processes {
		p := &s.Processes[i]
		if h := p.Host; h != nil {
			m := moment{s: w.process(p, -1)}
			m.stack(anonymousPart, anonymousPart, h.Anonymous)
			m.stack(sharedPart, sharedPart, h.Shared)
			m.stack(filePart, filePart, h.File)
			if h.Pinned > 0 {
				m.put(pinnedPart, pinnedPart, h.Pinned, true)
			}
			if h.Swapped > 0 {
				m.put(swappedPart, swappedPart, h.Swapped, true)
			}
			w.take(&m, s.Seconds, gap)
		}
		for k := range p.Devices {
			d := &p.Devices[k]
			m := moment{s: w.process(p, d.Device)}
			switch {
			case d.Allocated != nil || d.Cached != nil:
				m.divided(d, len(p.Pausable) > 0)
			case d.Used != nil:
				m.known(wholePart, d.Used)
			default:
				continue
			}
			if d.Used != nil {
				m.total = *d.Used
			}
			w.take(&m, s.Seconds, gap)
		}
	}
}

// divided adds a share that PyTorch divides. What is paused counts as allocated or cached
// there, and is what these and the rest have in addition to what is used.
func (m *moment) divided(d *sample.DeviceShare, pausable bool) {
	if d.Reserved() == nil || d.Used == nil || d.Other == nil || !pausable {
		m.known(allocatedPart, d.Allocated)
		m.known(cachedPart, d.Cached)
		m.known(otherPart, d.Other)
		return
	}
	paused := max(*d.Reserved()+*d.Other-*d.Used, 0)
	allocated := max(*d.Allocated-paused, 0)
	cached := max(*d.Reserved()-paused-allocated, 0)
	m.stack(allocatedPart, allocatedPart, allocated)
	m.stack(cachedPart, cachedPart, cached)
	m.known(otherPart, d.Other)
	if paused > 0 {
		m.put(pausedPart, pausedPart, paused, true)
	}
}

// process is the subject of a process on the host, which is device -1, or on a device.
func (w *Watch) process(p *sample.Process, device int) *subject {
	at := placeOf(device)
	s := w.of(subjectID{process: p.ID(), device: device}, "process", processKey(p, strings.ReplaceAll(at, " ", "")), at)
	s.label = processLabel(p)
	if s.facts == nil || p.Command != s.command() || len(p.Pausable) > 0 || s.tags > 0 {
		s.facts, s.tags = processFacts(p), len(p.Pausable)
	}
	return s
}

// processKey is the key of something that a process has.
func processKey(p *sample.Process, what string) string {
	return fmt.Sprintf("p%d-%d-%s", p.PID, p.Started, what)
}

func (s *subject) command() string {
	for _, f := range s.facts {
		if f[0] == "command" {
			return f[1]
		}
	}
	return ""
}

func processLabel(p *sample.Process) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", p.PID, cut(cmp.Or(p.Name, p.Command))))
}

func processFacts(p *sample.Process) [][2]string {
	out := [][2]string{}
	fact := func(name, value string) {
		if value != "" {
			out = append(out, [2]string{name, cut(value)})
		}
	}
	fact("process ID", fmt.Sprint(p.PID))
	fact("command", p.Command)
	if p.Rank != nil {
		fact("rank", fmt.Sprint(*p.Rank))
	}
	if p.Container != nil {
		fact("container", *p.Container)
	}
	fact("pod", p.Pod)
	fact("Slurm job", p.Job)
	fact("Ray actor", p.Actor)
	fact("control group", p.Group)
	for i := range p.Pausable {
		t := &p.Pausable[i]
		text := fmt.Sprintf("%s of %s held, %s", units.Bytes(t.Held), units.Bytes(t.Bytes), t.State)
		if t.BackupBytes > 0 {
			text += fmt.Sprintf(", %s in a backup (%s)", units.Bytes(t.BackupBytes), t.Backup)
		}
		fact("pausable "+cut(t.Tag), text)
	}
	fact("note", p.Note)
	return out
}

// containerOf is what a process is in, and what to call it: its container, pod, job or
// control group.
func containerOf(p *sample.Process) (name, label string) {
	switch {
	case p.Container != nil && *p.Container != "":
		id := *p.Container
		label = "container " + id[:min(len(id), 12)]
		if p.Pod != "" {
			label = "pod " + p.Pod + ", " + label
		}
		return "container " + id, label
	case p.Pod != "":
		return "pod " + p.Pod, "pod " + p.Pod
	case p.Job != "":
		return "job " + p.Job, "Slurm job " + p.Job
	case p.Group != "":
		return "group " + p.Group, p.Group
	}
	return "", ""
}

// containerKey is a key without characters that an address writes in several ways.
func containerKey(name string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	return fmt.Sprintf("c%016x", h.Sum64())
}

// containers adds what the processes of each container hold on the host. Shared pages
// count for each process that has them.
func (w *Watch) containers(s *sample.Sample, gap bool) {
	all := map[string]*moment{}
	groups := map[string]map[string]bool{}
	var order []string
	for i := range s.Processes {
		p := &s.Processes[i]
		name, label := containerOf(p)
		if name == "" || p.Host == nil {
			continue
		}
		m := all[name]
		if m == nil {
			m = &moment{s: w.of(subjectID{device: -1, group: name}, "container", containerKey(name), "host")}
			m.s.label, m.s.facts = cut(label), [][2]string{}
			all[name], groups[name] = m, map[string]bool{}
			order = append(order, name)
		}
		groups[name][p.Group] = true
		m.stack(p.ID(), processLabel(p), p.Host.Resident())
	}
	for _, name := range order {
		m := all[name]
		m.largest()
		for i := range s.Groups {
			g := &s.Groups[i]
			if len(groups[name]) != 1 || !groups[name][g.Name] {
				continue
			}
			m.s.limit, m.s.facts = g.Limit, [][2]string{{"control group", cut(g.Name)}}
			w.groups[g.Name] = m.s
			if g.Used != nil {
				m.s.counted = g.Name
				m.put(groupPart, groupPart, *g.Used, true)
			}
		}
		w.take(m, s.Seconds, gap)
	}
}

// devices adds the devices of a sample, each by the driver's count.
func (w *Watch) devices(s *sample.Sample, gap bool) {
	names := map[int]*sample.Process{}
	for i := range s.Processes {
		names[s.Processes[i].PID] = &s.Processes[i]
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		m := moment{s: w.of(subjectID{device: d.Index, group: "device"}, "device", fmt.Sprintf("d%d", d.Index), placeOf(d.Index))}
		m.s.label = strings.TrimSpace(fmt.Sprintf("device %d %s", d.Index, cut(d.Name)))
		m.s.limit, m.s.facts = d.Total, [][2]string{{"UUID", cut(d.UUID)}}
		if d.Note != "" {
			m.s.facts = append(m.s.facts, [2]string{"note", cut(d.Note)})
		}
		var ended int64
		for _, h := range d.Processes {
			switch p := names[h.PID]; {
			case h.Used == nil:
			case h.Owner == sample.Gone:
				ended += *h.Used
			case p != nil:
				m.stack(p.ID(), processLabel(p), *h.Used)
			default:
				m.stack(h.PID, fmt.Sprintf("%d, not watched", h.PID), *h.Used)
			}
		}
		if d.Used == nil && len(m.state) == 0 {
			continue // nothing is known
		}
		m.largest()
		if ended > 0 {
			m.stack(endedPart, endedPart, ended)
		}
		if d.Used != nil {
			m.total = *d.Used
		}
		if r := d.Remainder; r != nil && *r > 0 {
			m.put(nobodysPart, nobodysPart, *r, false)
		}
		w.take(&m, s.Seconds, gap)
	}
}

// machine adds what is not available of the host's memory, and the processes' own part of
// that.
func (w *Watch) machine(s *sample.Sample, gap bool) {
	if s.Machine == nil {
		return
	}
	m := moment{s: w.of(subjectID{device: -1, group: "machine"}, "device", "machine", "host")}
	m.s.label, m.s.limit, m.s.facts = "memory of the machine", &s.Machine.Total, [][2]string{}
	for i := range s.Processes {
		if p := &s.Processes[i]; p.Host != nil {
			m.stack(p.ID(), processLabel(p), p.Host.Anonymous)
		}
	}
	used := max(s.Machine.Total-s.Machine.Available, 0)
	rest := used - m.total
	m.largest()
	m.total = max(used, m.total)
	if rest > 0 {
		m.put(elsewherePart, elsewherePart, rest, false)
	}
	w.take(&m, s.Seconds, gap)
}
