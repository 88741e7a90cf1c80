package samples

import (
	"fmt"

	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/trend"
	"strandline/units"
)

// nearlyFull is the share of a control group's limit from which a kill is near, and
// minUnowned what is reported of memory that no live process owns, bytes.
const (
	nearlyFull = 0.95
	minUnowned = 64 << 20
)

// judgeGroups reports control groups that grow although no watched process of them
// does, and those that are near their limit.
func (w *Watch) judgeGroups(growing bool) (out []Found) {
	for i := range w.last.Groups {
		g := &w.last.Groups[i]
		if g.Used == nil {
			continue
		}
		k := key{subject{device: -1, group: g.Name}, used}
		if c := w.course(k); c != nil && c.Leaks() && !growing && g.Limit != nil {
			f := w.growing(c, k, groupPrefix+g.Name, g.Limit, "the limit of "+units.Bytes(*g.Limit))
			f.Detail = append([]string{"no watched process of it grows: files in memory (/dev/shm, memfd), the kernel's memory, or an unwatched process"}, f.Detail...)
			f.Remedies = []finding.Remedy{finding.CodeChange("find the holder: files (`du -ah /dev/shm | sort -h | tail`), unnamed files (`grep -a memfd: /proc/*/maps`), or the kernel (`slabtop -o -s c`)")}
			out = append(out, w.found(f, k))
		}
		if f, ok := nearLimit(g); ok {
			out = append(out, Found{Finding: f, Device: -1, Group: g.Name})
		}
	}
	return out
}

// nearLimit warns before the kernel kills.
func nearLimit(g *sample.Group) (f finding.Finding, ok bool) {
	if g.Limit == nil || float64(*g.Used) < nearlyFull*float64(*g.Limit) {
		return f, false
	}
	return finding.Finding{
		Kind: finding.Usage, Severity: finding.Warning, Confidence: 1, Bytes: g.Used,
		Title:  fmt.Sprintf("the control group %s has %s left of its limit of %s", g.Name, units.Bytes(max(*g.Limit-*g.Used, 0)), units.Bytes(*g.Limit)),
		Detail: []string{"when nothing is left, the kernel kills a process of it (exit status 137)"},
	}, true
}

// A killing is what is known of the kernel's kills in a control group.
type killing struct {
	count int64   // since the group was made
	at    float64 // when the last was seen, seconds; negative if none was
}

// countKills reports processes that the kernel has killed for lack of memory since the
// sample before; live are those that are there.
func (w *Watch) countKills(groups []sample.Group, live map[sample.ID]bool) {
	for i := range groups {
		g := &groups[i]
		if g.Kills == nil {
			continue
		}
		k, seen := w.kills[g.Name]
		switch more := *g.Kills - k.count; {
		case !seen:
			w.kills[g.Name] = killing{*g.Kills, -1}
		case more > 0:
			w.kills[g.Name] = killing{*g.Kills, w.now}
			if len(w.ended) < maxEnded {
				w.ended = append(w.ended, Found{Finding: w.kill(g, more, live), Device: -1, Group: g.Name})
			}
		}
	}
}

// killed reports whether a process that has ended is of a control group in which the
// kernel has just killed one.
func (w *Watch) killed(p *sample.Process) bool {
	const just = 5 // seconds: one that is killed can take some time to end
	k, ok := w.kills[p.Group]
	return ok && k.at >= 0 && w.now-k.at <= just
}

// kill is the finding that the kernel has killed processes of a group.
func (w *Watch) kill(g *sample.Group, n int64, live map[sample.ID]bool) finding.Finding {
	f := finding.Finding{
		Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Bytes: g.Limit,
		Title: fmt.Sprintf("the kernel killed %s of the control group %s: ", units.Plural(n, "process"), g.Name),
		Basis: "the group's own count",
		Remedies: []finding.Remedy{
			finding.CodeChange("find the allocating call, from the start: `strandline trace -- COMMAND`; if all of it is needed, raise the limit"),
		},
	}
	if g.Limit != nil {
		f.Title += "its limit of " + units.Bytes(*g.Limit) + " was reached"
	} else {
		f.Title += "the machine's memory was used up"
	}
	var largest *sample.Process
	for id, p := range w.processes {
		if !live[id] && p.Group == g.Name && p.Host != nil && (largest == nil || p.Host.Resident() > largest.Host.Resident()) {
			largest = &p
		}
	}
	if largest != nil {
		f.Process = name(largest)
		f.Detail = []string{fmt.Sprintf("%s, which has ended, had %s in memory at the sample before", name(largest), units.Bytes(largest.Host.Resident()))}
	}
	return f
}

// judgeDevices reports devices that grow although no watched process does, and memory
// that no live process owns.
func (w *Watch) judgeDevices(growing bool) (out []Found) {
	for i := range w.last.Devices {
		d := &w.last.Devices[i]
		k := key{subject{device: d.Index}, used}
		if c := w.course(k); c != nil && c.Leaks() && !growing && d.Total != nil {
			f := w.growing(c, k, d.Label(), d.Total, "the end of its "+units.Bytes(*d.Total))
			f.Device = &d.Index
			f.Detail = append([]string{"no watched process of it grows: it is a process that is not watched, or the driver"}, f.Detail...)
			f.Remedies = []finding.Remedy{finding.CodeChange("see who has the device open: `fuser -v /dev/nvidia*`, as root and outside a container. Then `strandline watch --pid N` of each that is missing here")}
			out = append(out, w.found(f, k))
		}
		if d.Unowned != nil && *d.Unowned >= minUnowned {
			out = append(out, Found{Finding: unowned(d), Device: d.Index})
		}
	}
	return out
}

func unowned(d *sample.Device) finding.Finding {
	f := finding.Finding{
		Kind: finding.Usage, Severity: finding.Warning, Confidence: 1, Device: &d.Index, Bytes: d.Unowned,
		Title:    fmt.Sprintf("%s of %s is not held by any live process", units.Bytes(*d.Unowned), d.Label()),
		Remedies: []finding.Remedy{finding.CodeChange("look for processes that still have the device open: `fuser -v /dev/nvidia*`. End them, or reset the device (`nvidia-smi --gpu-reset`) when nothing else uses it")},
	}
	for _, h := range d.Processes {
		if h.Owner == sample.Gone && h.Used != nil {
			f.Detail = append(f.Detail, fmt.Sprintf("the driver counts %s for pid %d, which has ended", units.Bytes(*h.Used), h.PID))
		}
	}
	return f
}

// growing is the finding that something other than a process grows.
func (w *Watch) growing(c *trend.Course, k key, what string, limit *int64, end string) finding.Finding {
	e := c.Evidence(what, limit)
	f := finding.Finding{
		Kind: finding.Leak, Severity: finding.Problem, Confidence: e.Confidence, Bytes: e.LevelBytes, Basis: c.Basis(),
		Title: what + " " + c.Words(), Trend: trend.Thinned(w.series[k].levels), Evidence: e,
	}
	if seconds(c.Seconds) < minOthers {
		f.Severity = finding.Warning
		f.Detail = []string{"work that ends also grows" + longer(minOthers)}
	} else if text := c.Reaches(e, end); text != "" {
		f.Detail = []string{text}
	}
	return f
}
