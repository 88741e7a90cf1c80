package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/internal/sorts"
	"strandline/judge/samples"
	"strandline/trend"
)

// The bounds of what is exported, so that neither a machine with many processes nor a
// process that is strange burdens the store: processes (the largest), devices and tags of
// all of them, findings, and bytes of a label.
const (
	maxProcesses = 512
	maxParts     = 2048
	maxFindings  = 512
	longestLabel = 128
)

// A State is what is exported: a sample, and what was found by then.
type State struct {
	Sample   *sample.Sample
	Verdicts []Verdict
	Samples  int64 // taken since the watch began
	Hostname string
	Version  string
}

// A Verdict is a finding, and what it is about.
type Verdict struct {
	samples.About
	Finding finding.Finding
}

// sorted returns the metrics of a state, by name. Those of what is not known are
// absent, and never 0.
func (s *State) sorted() []*family {
	b := &builder{families: map[string]*family{}, seen: map[string]bool{}, hostname: s.Hostname}
	b.gauge("strandline_build_info", "The version of strandline.", 1, label{"version", s.Version})
	b.counter("strandline_samples_total", "Samples taken since the watch began.", float64(s.Samples))
	if now := s.Sample; now != nil {
		b.sample(now)
		b.findings(s.Verdicts, now)
	}
	return sorts.Collect(maps.Values(b.families), func(x, y *family) int { return cmp.Compare(x.name, y.name) })
}

// A builder collects metrics.
type builder struct {
	families map[string]*family
	seen     map[string]bool // name and labels: a store refuses the same ones twice
	parts    int             // devices and tags of processes
	hostname string
}

func (b *builder) add(counter bool, name, help string, value float64, labels []label) {
	m := metric{value: value}
	for _, l := range labels {
		if l.value != "" { // which is the same as no label
			m.labels = append(m.labels, label{l.name, bounded(l.value)})
		}
	}
	key := fmt.Sprintf("%s%q", name, m.labels)
	if b.seen[key] {
		return
	}
	b.seen[key] = true
	f := b.families[name]
	if f == nil {
		f = &family{name: name, help: help, counter: counter}
		b.families[name] = f
	}
	f.metrics = append(f.metrics, m)
}

func (b *builder) gauge(name, help string, value float64, labels ...label) {
	b.add(false, name, help, value, labels)
}

func (b *builder) counter(name, help string, value float64) {
	b.add(true, name, help, value, nil)
}

// bytes adds a gauge where the value is known.
func (b *builder) bytes(name, help string, value *int64, labels ...label) {
	if value != nil {
		b.gauge(name, help, float64(*value), labels...)
	}
}

// bounded is a label's value that a store takes, and that a terminal shows and does not
// act on: printable but for line breaks, which the formats escape, valid UTF-8, and not too
// long.
func bounded(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != '\n' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	if len(text) <= longestLabel {
		return text
	}
	n := longestLabel
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

func (b *builder) sample(s *sample.Sample) {
	b.gauge("strandline_last_sample_timestamp_seconds", "When the last sample was taken, in seconds since 1970.", float64(s.Time.UnixMilli())/1000)
	up := 1.0
	if s.DevicesNote != "" {
		up = 0
	}
	b.gauge("strandline_devices_up", "Whether the driver of the devices answers.", up)
	devices := map[int]*sample.Device{}
	for i := range s.Devices {
		d := &s.Devices[i]
		if devices[d.Index] == nil {
			devices[d.Index] = d
		}
		b.device(d)
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		b.bytes("strandline_group_memory_used_bytes", "Memory of a control group that counts toward its limit.", g.Used, label{"group", g.Name})
		b.bytes("strandline_group_memory_limit_bytes", "The limit of a control group.", g.Limit, label{"group", g.Name})
	}
	if m := s.Machine; m != nil {
		b.bytes("strandline_host_memory_total_bytes", "Memory of the machine.", &m.Total)
		b.bytes("strandline_host_memory_available_bytes", "Memory of the machine that is available without swapping.", &m.Available)
	}
	largest := largest(s.Processes)
	for _, p := range largest {
		b.process(p, devices)
	}
	b.gauge("strandline_processes", "Processes that are watched.", float64(len(s.Processes)))
	b.gauge("strandline_processes_omitted", "Processes that are watched and not exported, because there are too many.", float64(len(s.Processes)-len(largest)))
}

// ofDevice are the labels of a device as NVIDIA's dcgm-exporter writes them, so that its
// metrics can be joined with ours.
func (b *builder) ofDevice(d *sample.Device) []label {
	gpu := strconv.Itoa(d.Index)
	return []label{{"gpu", gpu}, {"UUID", d.UUID}, {"device", "nvidia" + gpu}, {"modelName", d.Name}, {"Hostname", b.hostname}}
}

func (b *builder) device(d *sample.Device) {
	labels := b.ofDevice(d)
	b.bytes("strandline_device_memory_total_bytes", "Memory of a device.", d.Total, labels...)
	b.bytes("strandline_device_memory_used_bytes", "Memory of a device that is used, by the driver's count.", d.Used, labels...)
	b.bytes("strandline_device_memory_free_bytes", "Memory of a device that is free.", d.Free, labels...)
	b.bytes("strandline_device_memory_unowned_bytes", "Used memory of a device that the driver counts for processes that have ended.", d.Unowned, labels...)
	b.bytes("strandline_device_memory_remainder_bytes", "Used memory of a device that the driver counts for no process.", d.Remainder, labels...)
}

// largest are the processes that are exported.
func largest(all []sample.Process) []*sample.Process {
	out := make([]*sample.Process, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	if len(out) <= maxProcesses {
		return out
	}
	held := func(p *sample.Process) (n int64) {
		for _, d := range p.Devices {
			if d.Used != nil {
				n += *d.Used
			}
		}
		if p.Host != nil {
			n += p.Host.Resident()
		}
		return n
	}
	sorts.StableBy(out, func(x, y *sample.Process) int { return cmp.Compare(held(y), held(x)) })
	return out[:maxProcesses]
}

func (b *builder) process(p *sample.Process, devices map[int]*sample.Device) {
	pid := label{"pid", strconv.Itoa(p.PID)}
	info := []label{pid, {"name", p.Name}, {"pod", p.Pod}, {"slurm_job", p.Job}, {"ray_actor", p.Actor}, {"group", p.Group}}
	if p.Container != nil {
		info = append(info, label{"container_id", *p.Container})
	}
	if p.Rank != nil {
		info = append(info, label{"rank", strconv.Itoa(*p.Rank)})
	}
	b.gauge("strandline_process_info", "A process, and where it runs.", 1, info...)
	if h := p.Host; h != nil {
		const name, help = "strandline_process_memory_bytes", "Resident memory of a process on the host, by kind: anonymous, file, shared."
		b.bytes(name, help, &h.Anonymous, pid, label{"kind", "anonymous"})
		b.bytes(name, help, &h.File, pid, label{"kind", "file"})
		b.bytes(name, help, &h.Shared, pid, label{"kind", "shared"})
		b.bytes("strandline_process_memory_swapped_bytes", "Memory of a process that is swapped out.", &h.Swapped, pid)
		b.bytes("strandline_process_memory_pinned_bytes", "Resident memory of a process that is locked or pinned.", &h.Pinned, pid)
	}
	if p.Threads != nil {
		b.gauge("strandline_process_threads", "Threads of a process.", float64(*p.Threads), pid)
	}
	if p.Descriptors != nil {
		b.gauge("strandline_process_open_fds", "Open file descriptors of a process.", float64(*p.Descriptors), pid)
	}
	for i := range p.Pausable {
		if b.parts++; b.parts > maxParts {
			break
		}
		t := &p.Pausable[i]
		labels := []label{pid, {"tag", t.Tag}}
		const name, help = "strandline_process_pausable_memory_bytes", "Pausable memory of devices by tag: held, or paused, which has addresses and holds nothing."
		paused := t.Bytes - t.Held
		b.bytes(name, help, &t.Held, append(labels[:len(labels):len(labels)], label{"state", "held"})...)
		b.bytes(name, help, &paused, append(labels[:len(labels):len(labels)], label{"state", "paused"})...)
		b.bytes("strandline_process_pausable_backup_bytes", "Contents of paused memory that are kept, by tag and where.", &t.BackupBytes, append(labels[:len(labels):len(labels)], label{"backup", t.Backup})...)
	}
	for i := range p.Devices {
		if b.parts++; b.parts > maxParts {
			break
		}
		d := &p.Devices[i]
		labels := []label{pid}
		if on := devices[d.Device]; on != nil {
			labels = append(labels, b.ofDevice(on)...)
		} else {
			labels = append(labels, label{"gpu", strconv.Itoa(d.Device)}, label{"UUID", d.UUID}, label{"Hostname", b.hostname})
		}
		b.bytes("strandline_process_device_memory_used_bytes", "Memory of a device that a process holds, by the driver's count.", d.Used, labels...)
		const name = "strandline_process_device_memory_bytes"
		const help = "Memory of a device that a process holds, by kind: allocated by PyTorch, cached by it, other."
		b.bytes(name, help, d.Allocated, append(labels[:len(labels):len(labels)], label{"kind", "allocated"})...)
		b.bytes(name, help, d.Cached, append(labels[:len(labels):len(labels)], label{"kind", "cached"})...)
		b.bytes(name, help, d.Other, append(labels[:len(labels):len(labels)], label{"kind", "other"})...)
	}
}

// findings adds what was found, which can be a few samples old: that of a process that
// has ended is left out, as are its series.
func (b *builder) findings(all []Verdict, now *sample.Sample) {
	live := map[sample.ID]bool{}
	for i := range now.Processes {
		live[now.Processes[i].ID()] = true
	}
	count := map[finding.Severity]int{}
	for i := range all[:min(len(all), maxFindings)] {
		v := &all[i]
		if v.Ended || v.Process != nil && !live[v.Process.ID()] {
			continue
		}
		count[v.Finding.Severity]++
		b.verdict(v)
	}
	for _, severity := range []finding.Severity{finding.Problem, finding.Warning, finding.Info} {
		b.gauge("strandline_findings", "Findings by severity.", float64(count[severity]), label{"severity", string(severity)})
	}
}

func (b *builder) verdict(v *Verdict) {
	labels := []label{{"group", v.Group}, {"figure", v.Figure}}
	if v.Process != nil {
		labels = append(labels, label{"pid", strconv.Itoa(v.Process.PID)})
	}
	if v.Device != nil {
		labels = append(labels, b.ofDevice(v.Device)...)
	}
	f := &v.Finding
	e, ok := f.Evidence.(*finding.LevelsEvidence)
	state := append(labels[:len(labels):len(labels)], label{"kind", string(f.Kind)}, label{"severity", string(f.Severity)})
	if ok {
		state = append(state, label{"verdict", e.Verdict})
	}
	b.gauge("strandline_finding", "A finding, for as long as it holds.", 1, state...)
	if !ok {
		return
	}
	switch trend.Shape(e.Verdict) {
	case trend.Growth, trend.SawtoothGrowth:
		b.gauge("strandline_growth_bytes_per_second", "How fast something grows that keeps growing.", *e.RatePerSecond, labels...)
	case trend.Plateau:
		b.gauge("strandline_plateau_bytes", "The level at which something that grew levels off.", float64(*e.LevelBytes), labels...)
	}
	if t := e.SecondsToLimit; t != nil {
		const name = "strandline_time_to_limit_seconds"
		const help = "When growth reaches its limit. In 9 of 10 cases it is between the bounds; the upper is +Inf if it may never do so."
		upper := math.Inf(1)
		if t[1] != nil {
			upper = *t[1]
		}
		b.gauge(name, help, *t[0], append(labels[:len(labels):len(labels)], label{"bound", "lower"})...)
		b.gauge(name, help, upper, append(labels[:len(labels):len(labels)], label{"bound", "upper"})...)
	}
}
