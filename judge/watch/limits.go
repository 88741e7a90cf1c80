package watch

import (
	"fmt"

	"strandline/finding"
	"strandline/host/sample"
	"strandline/judge/trend"
	"strandline/units"
)

// nearlyFull is the share of a control group's limit from which a kill is near, and
// leastUnowned what is reported of memory that no live process owns, bytes.
const (
	nearlyFull   = 0.95
	leastUnowned = 64 << 20
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
			f.Detail = append([]string{"no watched process of it grows: files in memory (/dev/shm, memfd), the kernel's own memory, or a process that is not watched"}, f.Detail...)
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
			out = append(out, w.found(f, k))
		}
		if d.Unowned != nil && *d.Unowned >= leastUnowned {
			out = append(out, Found{Finding: unowned(d), Device: d.Index})
		}
	}
	return out
}

func unowned(d *sample.Device) finding.Finding {
	f := finding.Finding{
		Kind: finding.Usage, Severity: finding.Warning, Confidence: 1, Device: &d.Index, Bytes: d.Unowned,
		Title:    fmt.Sprintf("%s of %s are not held by any live process", units.Bytes(*d.Unowned), d.Label()),
		Remedies: []finding.Remedy{finding.CodeChange("look for processes that still have the device open: `fuser -v /dev/nvidia*`; end them, or reset the device (`nvidia-smi --gpu-reset`) when nothing else uses it")},
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
		Kind: finding.Leak, Severity: finding.Problem, Confidence: e.Confidence, Bytes: &e.LevelBytes, Basis: c.Basis(),
		Title: what + " " + c.Words(), Trend: trend.Thinned(w.series[k].levels), Evidence: e,
	}
	if seconds(c.Seconds) < leastOthers {
		f.Severity = finding.Warning
		f.Detail = []string{"work that ends grows, too" + longer(leastOthers)}
	} else if text := c.Reaches(e, end); text != "" {
		f.Detail = []string{text}
	}
	return f
}
