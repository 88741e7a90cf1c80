// Package samples judges samples of running processes: who takes memory, whether that
// goes on, when it ends, and what to do about it. [Watch.Findings] is the entry point; rules.go
// holds the table for one process, limits.go what is found of groups and devices. The
// title of a finding is put together in rules.go of its subject and of the words of
// trend (words.go); row.go has the words of the screen.
//
// Each figure of each process is a series, which package trend judges. Judging takes
// some milliseconds, so while the watch runs only what changed is judged, at most one
// series per sample; [Watch.Findings] judges the rest.
package samples

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/internal/sorts"
	"strandline/judge/pauses"
	"strandline/trend"
)

// What is measured of a subject.
type figure string

const (
	anonymous   figure = "anonymous"
	file        figure = "file"
	shared      figure = "shared"
	used        figure = "used"
	allocated   figure = "allocated"
	reserved    figure = "reserved"
	otherMemory figure = "other"
	residue     figure = "residue" // what is used while all pausable memory is paused, of each time
)

// A subject is what a series is of: a process on the host or on a device, a control
// group, or a device. What does not apply is zero, and -1 of devices.
type subject struct {
	process sample.ID
	device  int
	group   string
}

type key struct {
	subject
	figure figure
}

// A Watch collects samples. The zero Watch is not ready; use [New]. It keeps a bounded
// number of points of each series, so that it does not grow over time.
type Watch struct {
	series map[key]*series
	last   *sample.Sample
	// processes are those that live, by their latest sample.
	processes map[sample.ID]sample.Process
	begun     map[sample.ID]beginning
	now       float64            // when the last sample was taken, seconds
	finished  bool               // the processes that are judged have ended
	ended     []Found            // leaks of processes that have ended, and kills
	kills     map[string]killing // by control group
	lazy      bool               // series are not judged again
	load      load               // of the engine that is asked
	// paused is the least that was used since all pausable memory of a process is paused.
	paused map[key]int64
	// courses are what processes with pausable memory have of their device.
	courses map[sample.ID]*pauses.Course
	turned  bool    // memory was paused or resumed since they were judged
	stayed  []Found // what was found in them
}

// New is a Watch without samples.
func New() *Watch {
	return &Watch{series: map[key]*series{}, processes: map[sample.ID]sample.Process{}, begun: map[sample.ID]beginning{}, kills: map[string]killing{}, paused: map[key]int64{}, courses: map[sample.ID]*pauses.Course{}}
}

// maxEnded is how many problems of ended processes are kept.
const maxEnded = 64

// Add takes note of a sample, which comes after those before it. It keeps the sample, but
// for one that only states that the processes have ended.
func (w *Watch) Add(s *sample.Sample) {
	if w.finished = s.Over != nil; w.finished { // until another watch goes on with the recording
		w.countKills(s.Over, nil)
		return
	}
	w.now = s.Seconds
	live := map[sample.ID]bool{}
	for i := range s.Processes {
		p := &s.Processes[i]
		live[p.ID()] = true
		if _, seen := w.begun[p.ID()]; !seen {
			w.begun[p.ID()] = begin(s.Seconds, p)
		}
		w.addProcess(s.Seconds, p)
	}
	w.countKills(s.Groups, live)
	w.end(live)
	for i := range s.Processes {
		w.processes[s.Processes[i].ID()] = s.Processes[i]
	}
	for i := range s.Devices {
		w.add(s.Seconds, key{subject{device: s.Devices[i].Index}, used}, s.Devices[i].Used)
	}
	for i := range s.Groups {
		w.add(s.Seconds, key{subject{device: -1, group: s.Groups[i].Name}, used}, s.Groups[i].Used)
	}
	w.load.add(s.Seconds, s.Load)
	w.last = s
	w.judgeOne()
}

func (w *Watch) addProcess(at float64, p *sample.Process) {
	of := subject{process: p.ID(), device: -1}
	if h := p.Host; h != nil {
		w.add(at, key{of, anonymous}, &h.Anonymous)
		w.add(at, key{of, file}, &h.File)
		w.add(at, key{of, shared}, &h.Shared)
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		of.device = d.Device
		w.add(at, key{of, used}, d.Used)
		w.add(at, key{of, allocated}, d.Allocated)
		w.add(at, key{of, reserved}, d.Reserved())
		w.add(at, key{of, otherMemory}, d.Other)
	}
	w.addResidue(at, p)
	w.addCourse(p)
}

// addCourse follows the pauses of a process with one device.
func (w *Watch) addCourse(p *sample.Process) {
	const maxCourses = 256
	if len(p.Pausable) == 0 || len(p.Devices) != 1 {
		return
	}
	c := w.courses[p.ID()]
	if c == nil {
		if len(w.courses) == maxCourses {
			return
		}
		c = &pauses.Course{Name: pauses.Name(p.Rank, p.PID), PID: p.PID, Device: p.Devices[0].Device, Sampled: true}
		w.courses[p.ID()] = c
	}
	c.Job = p.Launch
	d := &p.Devices[0]
	m := pauses.Moment{Tags: map[string]pauses.Share{}, Cache: d.Cached, Other: d.Other}
	var inside int64
	for i := range p.Pausable {
		t := &p.Pausable[i]
		m.Tags[t.Tag] = pauses.Share{Bytes: t.Bytes, Held: t.Held}
		inside += t.Bytes
	}
	if d.Allocated != nil {
		m.Tensors = new(max(*d.Allocated-inside, 0))
	}
	if pools := d.Pools; pools != nil && m.Tensors != nil && m.Cache != nil {
		c.Divide()
		m.Tensors, m.Cache, m.Pools = new(max(*m.Tensors-pools.Tensors, 0)), new(max(*m.Cache-(pools.All-pools.Tensors)-pools.Split, 0)), &pools.All
		if pools.Stale {
			m.Cache = nil // tensors may have come into its segments
		}
	} else if m.Tensors != nil && *m.Tensors > 0 {
		m.Cache = nil // a part of it may be in segments of these tensors
	}
	w.turned = c.Add(m) || w.turned
}

// stays finds what processes keep while other memory is paused.
func (w *Watch) stays() []Found {
	if w.lazy && !w.turned {
		return w.stayed
	}
	w.turned, w.stayed = false, nil
	var courses []pauses.Course
	for _, id := range slices.SortedFunc(maps.Keys(w.courses), func(a, b sample.ID) int {
		return cmp.Or(cmp.Compare(w.courses[a].Name, w.courses[b].Name), cmp.Compare(a.PID, b.PID))
	}) {
		courses = append(courses, *w.courses[id])
	}
	for _, f := range pauses.Stays(courses) {
		w.stayed = append(w.stayed, Found{Finding: f})
	}
	return w.stayed
}

// poolsOf are the pools whose growth a figure of a process's device memory shows.
var poolsOf = map[figure][]finding.Pool{
	allocated:   {finding.TagPool, finding.TensorPool, finding.GraphPool},
	reserved:    {finding.CachePool, finding.GraphPool},
	otherMemory: {finding.DriverPool},
	residue:     {finding.TensorPool, finding.CachePool, finding.GraphPool, finding.DriverPool},
	used:        {finding.TagPool, finding.TensorPool, finding.CachePool, finding.GraphPool, finding.DriverPool},
}

// withStays adds what processes keep while other memory is paused. A finding of a process's device memory that
// grows by it becomes a detail.
func (w *Watch) withStays(found []Found) []Found {
	stays := slices.Clone(w.stays())
	for i := range stays {
		f := &stays[i]
		e := f.Evidence.(*finding.StayEvidence)
		if f.Kind != finding.Leak {
			continue
		}
		f.Detail = slices.Clone(f.Detail)
		found = slices.DeleteFunc(found, func(g Found) bool {
			same := g.Severity != finding.Info && e.Explains(g.Process.PID, g.Device, poolsOf[figure(g.Figure)]...)
			if same {
				f.Detail = append(f.Detail, g.Title)
			}
			return same
		})
	}
	return append(found, stays...)
}

// addResidue follows what a process has of devices while all its pausable memory is
// paused: a point for each time, when it ends.
func (w *Watch) addResidue(at float64, p *sample.Process) {
	active := slices.ContainsFunc(p.Pausable, func(t sample.Tag) bool { return t.Held > 0 || t.State != "paused" })
	for i := range p.Devices {
		d := &p.Devices[i]
		k := key{subject{process: p.ID(), device: d.Device}, residue}
		least, was := w.paused[k]
		switch {
		case len(p.Pausable) == 0 || d.Used == nil:
		case active && was:
			delete(w.paused, k)
			w.add(at, k, &least)
		case !active && (!was || *d.Used < least):
			w.paused[k] = *d.Used
		}
	}
}

func (w *Watch) add(at float64, k key, level *int64) {
	if level == nil {
		return
	}
	s := w.series[k]
	if s == nil {
		s = &series{}
		w.series[k] = s
	}
	s.add(at, *level)
}

// endedDetail is the detail of a finding on a process that has ended.
const endedDetail = "it has ended; when it runs again, watch it with the command below and its new process ID"

// shortLived is the time that a process must have been watched for its growth to be
// reported after its end, seconds: one that does its work and ends also grows.
const shortLived = 60

// end forgets the processes that are not live, but for what they were found to do.
func (w *Watch) end(live map[sample.ID]bool) {
	gone := map[sample.ID]bool{}
	for id, p := range w.processes {
		if !live[id] {
			gone[id] = true
			w.keepFound(&p)
		}
	}
	if len(gone) == 0 {
		return
	}
	maps.DeleteFunc(w.processes, func(id sample.ID, _ sample.Process) bool { return gone[id] })
	maps.DeleteFunc(w.begun, func(id sample.ID, _ beginning) bool { return gone[id] })
	maps.DeleteFunc(w.series, func(k key, _ *series) bool { return gone[k.process] })
	maps.DeleteFunc(w.paused, func(k key, _ int64) bool { return gone[k.process] })
}

// keepFound keeps what a process that has ended was found to do.
func (w *Watch) keepFound(p *sample.Process) {
	if len(w.ended) == maxEnded {
		return
	}
	w.finished = true
	defer func() { w.finished = false }()
	for _, f := range w.judgeProcess(p) {
		e, ok := f.Evidence.(*finding.LevelsEvidence)
		if ok && f.Severity != finding.Info && (e.Seconds != nil && *e.Seconds >= shortLived || w.killed(p)) && len(w.ended) < maxEnded {
			if f.Severity == finding.Problem {
				f.Detail = []string{endedDetail}
			}
			w.ended = append(w.ended, f)
		}
	}
}

// judgeOne judges the series that changed most since it was last judged, if one is due.
func (w *Watch) judgeOne() {
	var most *series
	var weight float64
	for _, s := range w.series {
		if n := s.overdue(); n > weight {
			most, weight = s, n
		}
	}
	if most != nil {
		most.judge()
	}
}

// course is the judgment of a series by now; nil if it did not change.
func (w *Watch) course(k key) *trend.Course {
	s := w.series[k]
	if s == nil || !s.material() {
		return nil
	}
	if s.stale() && !w.lazy {
		s.judge()
	}
	if s.judged == 0 {
		return nil
	}
	return &s.course
}

// Current is what was found so far without judging anything again: it costs little, and
// may be some samples late.
func (w *Watch) Current() []finding.Finding { return Plain(w.FoundSoFar()) }

// Findings judges what was seen so far, the weightiest finding first.
func (w *Watch) Findings() []finding.Finding { return Plain(w.Found()) }

// FoundSoFar is [Watch.Current] with the series that the findings are of.
func (w *Watch) FoundSoFar() []Found {
	w.lazy = true
	defer func() { w.lazy = false }()
	return w.Found()
}

// Found is [Watch.Findings] with the series that the findings are of.
func (w *Watch) Found() []Found {
	out := slices.Clone(w.ended)
	if w.last == nil {
		return nil
	}
	for i := range w.last.Processes {
		out = append(out, w.judgeProcess(&w.last.Processes[i])...)
	}
	growing := slices.ContainsFunc(out, func(f Found) bool { return f.Severity != finding.Info }) || slices.ContainsFunc(w.stays(), func(f Found) bool { return f.Kind == finding.Leak })
	out = append(out, w.judgeGroups(growing)...)
	out = append(out, w.judgeDevices(growing)...)
	out = w.withStays(out)
	sorts.StableBy(out, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(rate(&b.Finding), rate(&a.Finding)))
	})
	return out
}

func rate(f *finding.Finding) float64 {
	if e, ok := f.Evidence.(*finding.LevelsEvidence); ok && e.RatePerSecond != nil {
		return *e.RatePerSecond
	}
	return 0
}

// name is a process as a person calls it.
func name(p *sample.Process) string {
	out := fmt.Sprintf("pid %d", p.PID)
	if p.Name != "" {
		out += " (" + p.Name + ")"
	}
	return out
}
