package samples

import (
	"cmp"
	"fmt"
	"slices"

	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/trend"
	"strandline/units"
)

// A rule judges one figure of a process on the host or on a device.
type rule struct {
	figure figure
	device bool
	// only reports with what else the figure is judged; nil if with anything.
	only func(w *Watch, k key) bool
	// Of a leak:
	kind     finding.Kind
	severity finding.Severity
	what     string // the subject of the sentence
	detail   string
	remedies func(p *sample.Process) []finding.Remedy
	// fills is a detail of one that levels off, empty if it is not reported.
	fills   string
	release finding.Remedy
}

// rules are judged in this order; of one subject, an earlier leak keeps a later one
// from being reported where only states so.
//
// To add one: a field in host/sampling/sample, filled by host/sampling/sampler; a figure in watch.go; its
// line in addProcess; a rule here; docs/watch.md.
var rules = []rule{
	{
		figure: allocated, device: true, kind: finding.Leak, severity: finding.Problem, what: "memory allocated by PyTorch",
		detail: "tensors are kept: the allocations themselves grow, not the cache around them",
		remedies: func(p *sample.Process) []finding.Remedy {
			if p.Outside {
				return []finding.Remedy{finding.CodeChange(fmt.Sprintf("find the line that keeps the tensors: `strandline record --pid %d --duration 60s`", p.PID))}
			}
			return []finding.Remedy{finding.CodeChange(fmt.Sprintf("find the line that keeps the tensors: `strandline diagnose -- \"$(strandline snapshot --pid %d)\"`", p.PID))}
		},
		fills: "tensors were allocated, and stay; this is not a leak",
	},
	{
		figure: reserved, device: true, only: unlessLeaks(allocated), kind: finding.Fragmentation, severity: finding.Problem, what: "PyTorch's cache",
		detail: "reserved memory grows while allocated memory does not: free blocks do not fit the requests",
		remedies: func(p *sample.Process) []finding.Remedy {
			sizes := fmt.Sprintf("see which sizes fragment it: `strandline simulate -- \"$(strandline snapshot --pid %d)\"`", p.PID)
			if p.Outside {
				sizes = fmt.Sprintf("see which sizes fragment it: `strandline record --pid %d --duration 60s`", p.PID)
			}
			return []finding.Remedy{finding.CacheRemedies()[0], finding.CodeChange(sizes)}
		},
		fills:   "memory that PyTorch keeps for its next allocations; this is not a leak",
		release: finding.CacheRemedies()[1],
	},
	{
		figure: otherMemory, device: true, kind: finding.Leak, severity: finding.Problem, what: "device memory outside PyTorch",
		detail: "a library, CUDA graphs or the driver takes it, not PyTorch's allocator",
		remedies: func(p *sample.Process) []finding.Remedy {
			return []finding.Remedy{finding.CodeChange(fmt.Sprintf("find its allocations: `strandline trace --gpu --pid %d`", p.PID))}
		},
		fills: "the context, kernels and libraries; this is not a leak",
	},
	{
		figure: used, device: true, only: unsplit, kind: finding.Leak, severity: finding.Problem, what: "device memory",
		detail: "the growing part is unknown: the process has no recorder, and no readable PyTorch counters",
		remedies: func(p *sample.Process) []finding.Remedy {
			return []finding.Remedy{finding.CodeChange(fmt.Sprintf("find its allocations: `strandline trace --gpu --pid %d`; `strandline doctor --pid %d` says whether PyTorch's part can be recorded", p.PID, p.PID))}
		},
		fills: "it does not grow any more",
	},
	{
		figure: residue, device: true, kind: finding.Leak, severity: finding.Problem, what: "memory that stays on the device while all pausable memory is paused",
		detail: "each pause and resume leaves more behind: it is in no region, or was allocated again and not freed",
		remedies: func(p *sample.Process) []finding.Remedy {
			return []finding.Remedy{
				finding.CodeChange("before a pause: `torch.cuda.empty_cache()`, so that segments go that no tensor uses"),
				finding.CodeChange(fmt.Sprintf("while it is paused: `strandline mem status --pid %d` says whose the rest is, and `strandline trace --gpu --pid %d` over some cycles who allocates it", p.PID, p.PID)),
			}
		},
	},
	{
		figure: anonymous, kind: finding.Leak, severity: finding.Problem, what: "anonymous memory on the host",
		detail: "heap, Python's objects or mappings of its own", remedies: traceHost, fills: "it does not grow any more",
	},
	{
		figure: shared, kind: finding.Leak, severity: finding.Problem, what: "shared memory on the host",
		detail: "/dev/shm, memory shared between workers, or pinned by CUDA", remedies: traceHost, fills: "it does not grow any more",
	},
	{
		figure: file, kind: finding.FileMapping, severity: finding.Info, what: "file pages in memory",
		detail: "the kernel drops them when memory is short; this is not a leak",
	},
}

func traceHost(p *sample.Process) []finding.Remedy {
	return []finding.Remedy{finding.CodeChange(fmt.Sprintf("find the calls that allocate it: `strandline trace --pid %d`", p.PID))}
}

// unlessLeaks holds where another figure of the same subject does not leak.
func unlessLeaks(f figure) func(w *Watch, k key) bool {
	return func(w *Watch, k key) bool {
		k.figure = f
		c := w.course(k)
		return c == nil || !c.Leaks()
	}
}

// unsplit holds where PyTorch's share is not known.
func unsplit(w *Watch, k key) bool {
	k.figure = allocated
	return w.series[k] == nil
}

// judgeProcess applies the rules to a process.
func (w *Watch) judgeProcess(p *sample.Process) (out []Found) {
	for i := range rules {
		r := &rules[i]
		if !r.device {
			if f, ok := w.apply(r, p, -1); ok {
				out = append(out, f)
			}
			continue
		}
		for k := range p.Devices {
			if f, ok := w.apply(r, p, p.Devices[k].Device); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// apply judges one figure. It is not ok if there is nothing to report. Of what was found
// so far, it is what was found a moment ago unless the series was judged again since: to
// find when hundreds of processes reach their limits takes tens of milliseconds.
func (w *Watch) apply(r *rule, p *sample.Process, device int) (out Found, ok bool) {
	const moment = 30 // seconds
	k := key{subject{process: p.ID(), device: device}, r.figure}
	s := w.series[k]
	if s == nil {
		return out, false
	}
	if w.lazy && s.latest.of == s.judged && w.now-s.latest.at < moment {
		return s.latest.Found, s.latest.ok
	}
	out, ok = w.find(r, p, k)
	s.latest = latest{out, ok, s.judged, w.now}
	return out, ok
}

// find is [Watch.apply] by now.
func (w *Watch) find(r *rule, p *sample.Process, k key) (out Found, ok bool) {
	device := k.device
	c := w.course(k)
	if c == nil || c.Shape == trend.Unknown || r.only != nil && !r.only(w, k) {
		return out, false
	}
	s := w.series[k]
	left := w.roomLeft(p, device)
	var limit *int64
	if left != nil {
		limit = finding.Int(int64(s.now) + left.bytes)
	}
	column := string(r.figure)
	if device >= 0 {
		column = fmt.Sprintf("device %d %s", device, r.figure)
	}
	e := c.Evidence(column, limit)
	f := finding.Finding{
		Kind: finding.Usage, Severity: finding.Info, Confidence: e.Confidence, Process: name(p), Bytes: e.LevelBytes,
		Title: fmt.Sprintf("%s of %s %s", r.what, name(p), c.Words()), Basis: c.Basis(), Trend: trend.Thinned(s.levels), Evidence: e,
	}
	if device >= 0 {
		f.Device = &device
	}
	switch {
	case c.Leaks():
		f.Kind, f.Severity, f.Detail = r.kind, r.severity, []string{r.detail}
		doubt := w.doubt(p, s)
		if r.figure == anonymous {
			doubt = cmp.Or(CacheDoubt(Caches(p), int64(s.high-s.low)), doubt) // the one that is known first
			if text := unboundedCache(Caches(p)); text != "" {
				f.Detail = append(f.Detail, text)
			}
		}
		if doubt != "" && r.severity == finding.Problem {
			f.Severity = finding.Warning
			f.Detail = append(f.Detail, doubt)
		}
		if text := w.load.hold(c, s, e); text != "" {
			f.Detail = append(f.Detail, text)
		}
		if left != nil && f.Severity == finding.Problem {
			if text := c.Reaches(e, left.limit); text != "" {
				f.Detail = append(f.Detail, text)
			}
		}
		if note := w.groupNote(p); note != "" && !r.device && f.Severity != finding.Info {
			f.Detail = append(f.Detail, fmt.Sprintf("whether its control group %s has a limit, which may be reached sooner, is not known: %s", p.Group, note))
		}
		if r.remedies != nil {
			f.Remedies = r.remedies(p)
			if w.finished {
				f.Detail = append([]string{endedDetail}, f.Detail...)
			}
		}
		if !r.device && r.severity == finding.Problem {
			classes(&f, p)
		}
	case (c.Shape == trend.Plateau || c.Shape == trend.Step) && r.fills != "" && s.levels[len(s.levels)-1] > s.levels[0]:
		f.Detail = []string{r.fills}
		if r.release.Text != "" {
			f.Remedies = []finding.Remedy{r.release}
		}
	default:
		return out, false
	}
	return w.found(f, k), true
}

// room is what is left until a limit.
type room struct {
	bytes int64
	limit string // in words
}

// unified reports whether a device uses the memory of the host.
func (w *Watch) unified(device int) bool {
	return slices.ContainsFunc(w.last.Devices, func(d sample.Device) bool { return d.Index == device && d.Unified })
}

// groupNote is why it is not known whether the control group of a process has a limit.
func (w *Watch) groupNote(p *sample.Process) string {
	if w.last == nil {
		return ""
	}
	for i := range w.last.Groups {
		if g := &w.last.Groups[i]; g.Name == p.Group {
			return g.Note
		}
	}
	return ""
}

// roomLeft is how much more a process can take on a device, or on the host if that is -1;
// nil if no limit is known.
func (w *Watch) roomLeft(p *sample.Process, device int) (least *room) {
	if w.last == nil {
		return nil
	}
	if device >= 0 {
		for i := range w.last.Devices {
			if d := &w.last.Devices[i]; d.Index == device && d.Free != nil && d.Total != nil {
				return &room{*d.Free, fmt.Sprintf("the end of %s's %s, of which %s is free,", d.Label(), units.Bytes(*d.Total), units.Bytes(*d.Free))}
			}
		}
		if !w.unified(device) {
			return nil
		}
	}
	nearer := func(left int64, format string, args ...any) {
		if left = max(left, 0); least == nil || left < least.bytes {
			least = &room{left, fmt.Sprintf(format, append(args, units.Bytes(left))...)}
		}
	}
	ray := func(used, limit int64, whose string) {
		if p.RayKills != nil {
			kills := int64(*p.RayKills * float64(limit))
			nearer(kills-used, "%s of %s %s, from which Ray kills its workers and of which %s is left,", units.Percent(*p.RayKills), whose, units.Bytes(limit))
		}
	}
	if m := w.last.Machine; m != nil {
		least = &room{m.Available, fmt.Sprintf("the end of the machine's %s, of which %s is available,", units.Bytes(m.Total), units.Bytes(m.Available))}
		ray(m.Total-m.Available, m.Total, "the machine's")
	}
	for i := range w.last.Groups {
		g := &w.last.Groups[i]
		if g.Name != p.Group || g.Used == nil || g.Limit == nil {
			continue
		}
		nearer(*g.Limit-*g.Used, "the limit of its control group, %s, of which %s is left,", units.Bytes(*g.Limit))
		ray(*g.Used, *g.Limit, "its control group's")
	}
	return least
}
