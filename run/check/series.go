package check

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"strandline/finding"
	"strandline/host/sampling/levels"
	"strandline/judge/gate"
	"strandline/judge/processes"
	"strandline/judge/samples"
	"strandline/record"
)

// Steps returns how many steps were seen, and what they were counted by; "" if there are
// none.
func (m *Measured) Steps() (n int, by string) {
	if p := m.stepping(); p != nil {
		last := p[len(p)-1]
		return last.Step, counted[last.By]
	}
	if m.lines > 0 {
		return m.lines, "lines of output"
	}
	return 0, ""
}

var counted = map[string]string{
	"call": "calls of strandline.step", "optimizer": "steps of the optimizer", "annotation": "ends of the annotation", "function": "calls of the function",
}

// stepping returns the levels of the process that has the most steps, or nil.
func (m *Measured) stepping() (out []record.StepLevel) {
	for _, p := range m.levels {
		if out == nil || p[len(p)-1].Step > out[len(out)-1].Step {
			out = p
		}
	}
	return out
}

// series returns the series of a metric, or of both: one for each process with steps, and
// one for all the others together.
func (m *Measured) series(host, device bool) (out []gate.Series) {
	if device {
		for _, p := range m.levels {
			out = append(out, m.devices(p)...)
		}
	}
	if !host {
		return out
	}
	switch main := m.stepping(); {
	case main != nil:
		for _, p := range m.levels {
			s := m.ofSteps(p)
			if device && len(p[len(p)-1].Devices) > 0 {
				s.Own = snapshotsOwn
			}
			out = append(out, s)
		}
		return append(out, m.others(main)...)
	case m.lines > 0:
		return append(out, m.ofLines())
	case m.only != "":
		return out
	}
	return append(out, m.ofTime()...)
}

// judge judges a series, after a warm-up that may be given as a time.
func (m *Measured) judge(s *gate.Series, l gate.Limits) gate.Judgment {
	if l.WarmUpSeconds > 0 {
		l.WarmUp = l.WarmUpSeconds
		if s.Unit == gate.Step && len(s.At) > 0 {
			l.WarmUp = m.stepAfter(l.WarmUpSeconds) - s.At[0]
		}
	}
	j := gate.Judge(s, l)
	traced(&j, l)
	m.loads(&j)
	m.caching(&j)
	return j
}

// traced takes back the verdict of a leak that a trace in the process can have made: one that did
// not grow by more than a trace takes, nor as fast before the trace.
func traced(j *gate.Judgment, l gate.Limits) {
	s := j.Series
	if j.Verdict != finding.Leaking || s.Traced == 0 {
		return
	}
	own, before := *s, *s
	own.Own += traceOwn
	quiet := len(s.At) - s.Traced
	before.At, before.Bytes = s.At[:quiet], s.Bytes[:quiet]
	if gate.Judge(&own, l).Verdict == finding.Leaking {
		return
	}
	if quiet > 0 {
		k := gate.Judge(&before, l)
		if k.Verdict == finding.Leaking && math.Abs(k.Growth.Rate-j.Growth.Rate) <= tolerance*j.Growth.Rate {
			return
		}
	}
	j.Verdict, j.Course.Growing = finding.Unknown, undecided
	j.Why = fmt.Sprintf("grows by %s, and its allocations were traced until it ended, which takes up to %s: run twice as long", j.Growth, gate.Size(traceOwn))
}

// stepAfter is the first step that ended after the command had run for some seconds;
// infinite if none did.
func (m *Measured) stepAfter(seconds float64) float64 {
	began := m.began.Add(time.Duration(seconds * float64(time.Second)))
	if main := m.stepping(); main != nil {
		unix := float64(began.UnixMicro()) / 1e6
		if i := sort.Search(len(main), func(i int) bool { return main[i].Time >= unix }); i < len(main) {
			return float64(main[i].Step)
		}
		return math.Inf(1)
	}
	for _, s := range m.Samples.Samples {
		if s.Step > 0 && !s.At.Before(began) {
			return float64(s.Step)
		}
	}
	return math.Inf(1)
}

// snapshotsOwn is the host memory that snapshots of a device take in the process itself:
// the history of its events, and what remains after writing it.
const snapshotsOwn = 16 << 20

// ofSteps is the host memory of a process at its own steps.
func (m *Measured) ofSteps(p []record.StepLevel) gate.Series {
	s := gate.Series{Metric: gate.Host, Unit: gate.Step, Process: m.name(p[0].PID)}
	for _, l := range p {
		if l.Host == nil {
			continue
		}
		s.At, s.Bytes = append(s.At, float64(l.Step)), append(s.Bytes, float64(*l.Host))
		if l.Heap != nil {
			s.InUse = append(s.InUse, float64(*l.Heap))
		}
	}
	return s
}

// devices is what a process has allocated on each device at its own steps.
func (m *Measured) devices(p []record.StepLevel) (out []gate.Series) {
	index := map[int]int{}
	for _, l := range p {
		for _, d := range l.Devices {
			i, ok := index[d.Device]
			if !ok {
				i = len(out)
				index[d.Device] = i
				n := d.Device
				out = append(out, gate.Series{Metric: gate.Device, Unit: gate.Step, Device: &n, Process: m.name(p[0].PID)})
			}
			out[i].At, out[i].Bytes = append(out[i].At, float64(l.Step)), append(out[i].Bytes, float64(d.Allocated))
		}
	}
	return out
}

// others is the host memory of all processes that count no steps, at the steps of the
// main one: data loaders, servers, what a program starts.
func (m *Measured) others(main []record.StepLevel) []gate.Series {
	at := func(t time.Time) float64 {
		unix := float64(t.UnixMicro()) / 1e6
		i := sort.Search(len(main), func(i int) bool { return main[i].Time >= unix })
		if i == 0 || i == len(main) {
			return -1
		}
		a, b := main[i-1], main[i]
		return float64(a.Step) + float64(b.Step-a.Step)*(unix-a.Time)/max(b.Time-a.Time, 1e-9)
	}
	s := gate.Series{Metric: gate.Host, Unit: gate.Step}
	names := map[int]bool{}
	var times []time.Time
	for _, sample := range m.Samples.Samples {
		step := at(sample.At)
		if step < 0 {
			continue
		}
		var sum int64
		for i, b := range sample.Bytes {
			if !m.stepped(m.Samples.Processes[i].PID) {
				sum += b
				names[i] = true
			}
		}
		s.At, s.Bytes, times = append(s.At, step), append(s.Bytes, float64(sum)), append(times, sample.At)
	}
	m.bridge(&s, times)
	if len(names) == 0 || slices.Max(s.Bytes) < minPeak {
		return nil
	}
	s.Process = fmt.Sprintf("%d other processes", len(names))
	if len(names) == 1 {
		for i := range names {
			s.Process = m.name(m.Samples.Processes[i].PID)
		}
	}
	return []gate.Series{s}
}

// minPeak is the memory, in bytes, below which processes without steps are not judged, such
// as a shell that waits for its command.
const minPeak = 16 << 20

// ofLines is the memory of all processes at lines of output, except the last line: the
// command may have been ending when it was read, and may have freed what it held.
func (m *Measured) ofLines() gate.Series {
	s := gate.Series{Metric: gate.Host, Unit: gate.Step, Process: m.all()}
	var times []time.Time
	for _, sample := range m.Samples.Samples {
		if sample.Step > 0 && sample.Step < m.lines {
			s.At, s.Bytes, times = append(s.At, float64(sample.Step)), append(s.Bytes, float64(sample.Sum())), append(times, sample.At)
		}
	}
	m.bridge(&s, times)
	return s
}

// bridge replaces the levels of a series that were measured while a process traced its
// allocations, given the times at which all were. What was added meanwhile is known from
// the levels before and after; the line between them stands for how. Without it, a leak
// that was traced for much of a run would be left with what looks like a step. Levels
// before the first such neighbor are left out. Those after the last one stay if they are
// more than a few, with what tracing takes: else the run would be judged by its beginning.
func (m *Measured) bridge(s *gate.Series, times []time.Time) {
	var at, bytes []float64
	last := -1 // that was not traced
	for i, x := range s.At {
		if !m.quiet(times[i]) {
			continue
		}
		for k := last + 1; k < i && last >= 0; k++ {
			share := (s.At[k] - s.At[last]) / (x - s.At[last])
			at, bytes = append(at, s.At[k]), append(bytes, s.Bytes[last]+share*(s.Bytes[i]-s.Bytes[last]))
		}
		at, bytes, last = append(at, x), append(bytes, s.Bytes[i]), i
	}
	if traced := len(times) - 1 - last; float64(traced) > maxLeftOut*float64(len(times)) {
		at, bytes = append(at, s.At[last+1:]...), append(bytes, s.Bytes[last+1:]...)
		s.Traced = traced
	}
	s.At, s.Bytes = at, bytes
}

// maxLeftOut is the largest share of the levels that the end of a trace may leave out, and
// traceOwn what a trace takes in a process that it looks into, in bytes: the module bounds
// what tracemalloc takes, and a look copies that.
const (
	maxLeftOut = 0.1
	traceOwn   = 64 << 20
)

// The end of a command, when it frees what it holds, as a share of its time: at least
// ends, and as long as it takes to free more than half, but at most endsMost, which is
// for a loaded machine.
const (
	ends    = 0.02
	endsMin = 50 * time.Millisecond
	maxEnds = 0.1
)

// running returns the samples before the end of a command that ran from began to ended.
func running(all []levels.Sample, began, ended time.Time) []levels.Sample {
	before := func(share float64) time.Time { return ended.Add(-time.Duration(share * float64(ended.Sub(began)))) }
	last := before(ends)
	if least := ended.Add(-endsMin); least.Before(last) {
		last = least
	}
	n := sort.Search(len(all), func(i int) bool { return !all[i].At.Before(last) })
	from := max(sort.Search(n, func(i int) bool { return !all[i].At.Before(before(maxEnds)) })-1, 0)
	peak := from
	for i := from; i < n; i++ {
		if all[i].Sum() >= all[peak].Sum() {
			peak = i
		}
	}
	if n > 0 && 2*all[n-1].Sum() < all[peak].Sum() {
		n = peak + 1
	}
	return all[:n]
}

// ofTime is the memory of all processes over time.
func (m *Measured) ofTime() []gate.Series {
	s := gate.Series{Metric: gate.Host, Unit: gate.Second, Process: m.all()}
	all := m.Samples.Samples
	if len(all) == 0 {
		return []gate.Series{s}
	}
	var times []time.Time
	for _, sample := range running(all, m.began, all[len(all)-1].At) {
		s.At, s.Bytes, times = append(s.At, sample.At.Sub(m.began).Seconds()), append(s.Bytes, float64(sample.Sum())), append(times, sample.At)
	}
	m.bridge(&s, times)
	return []gate.Series{s}
}

// The reading that growth may be explained by, as a share of it: objects that are made of
// a text take up to some 20 times as much.
const (
	minRead = 0.04
	maxRead = 4
)

// loads takes back the verdict of a leak over time that nobody asked to judge by time, if
// the processes also read about as much as they grew, in both halves of the time: they may
// be loading what they read.
func (m *Measured) loads(j *gate.Judgment) {
	at := j.Series.At
	if !m.guessed || j.Verdict != finding.Leaking || j.Series.Unit != gate.Second {
		return
	}
	from, last := len(at)-j.Course.Samples, len(at)-1
	read := func(i int) float64 {
		when := m.began.Add(time.Duration(at[i] * float64(time.Second)))
		all := m.Samples.Samples
		k := sort.Search(len(all), func(k int) bool { return !all[k].At.Before(when) })
		return float64(all[min(k, len(all)-1)].Read)
	}
	mid := (from + last) / 2
	for _, half := range [][2]int{{from, mid}, {mid, last}} {
		grew, in := j.Series.Bytes[half[1]]-j.Series.Bytes[half[0]], read(half[1])-read(half[0])
		if in < minRead*grew || in > maxRead*grew {
			return
		}
	}
	j.Verdict, j.Course.Growing = finding.Unknown, undecided
	j.Why = fmt.Sprintf("grows by %s while %s are read, so it may be loading. Count the repeated steps (strandline.step, --step-line), or judge by time alone with --steps-from time", j.Growth, gate.Size(read(last)-read(from)))
}

// caching takes back the verdict of a leak of a process that is known to fill a cache up to a bound, such
// as llama.cpp's server with prompts, where its growth is within the bound.
func (m *Measured) caching(j *gate.Judgment) {
	s := j.Series
	if j.Verdict != finding.Leaking || s.Metric != gate.Host || len(m.Samples.Processes) == 0 {
		return
	}
	pid := m.grower(&finding.Finding{Process: s.Process})
	i := slices.IndexFunc(m.Samples.Processes, func(p levels.Process) bool { return p.PID == pid })
	if i < 0 {
		return
	}
	if text := samples.CacheDoubt(m.Samples.Processes[i].Caches, int64(s.Bytes[len(s.Bytes)-1]-s.Bytes[0])); text != "" {
		j.Verdict, j.Course.Growing = finding.Unknown, undecided
		j.Why = fmt.Sprintf("grows by %s. %s", j.Growth, text)
	}
}

// undecided is the probability of growth that is as likely as not.
const undecided = 0.5

// grower is the process that a finding is about: the one it names, otherwise the one that
// most of the growth of all is of since a quarter of the time; 0 if there is none.
func (m *Measured) grower(f *finding.Finding) int {
	if pid := processes.PIDOf(f.Process); pid > 0 {
		return pid
	}
	grew := m.grew()
	var sum int64
	for _, b := range grew {
		sum += b
	}
	for i, b := range grew {
		if float64(b) > minLeakShare*float64(sum) {
			return m.Samples.Processes[i].PID
		}
	}
	return 0
}

// alike is the process that stands for all that a finding is about, where those that grow run one
// command, as the workers of a data loader do: of those whose lines are known, the one that grew most,
// unless another grew twice as much. It is 0 if there is none.
func (m *Measured) alike(f *finding.Finding, known func(pid int) bool) (pid int) {
	if processes.PIDOf(f.Process) > 0 {
		return 0
	}
	var command string
	var grew, most int64
	for i, b := range m.grew() {
		p := m.Samples.Processes[i]
		if command != "" && command != p.Command {
			return 0
		}
		command, most = p.Command, max(most, b)
		if b > grew && known(p.PID) {
			pid, grew = p.PID, b
		}
	}
	if 2*grew < most {
		return 0
	}
	return pid
}

// tracedObjects reports whether the lines of a process are known by a trace of its objects.
func (m *Measured) tracedObjects(pid int) bool {
	return slices.ContainsFunc(m.growing, func(g record.Growing) bool { return g.PID == pid })
}

// grew is by how much processes without a series of their own grew since a quarter of the time, by
// their index, of those that did.
func (m *Measured) grew() map[int]int64 {
	out, at := map[int]int64{}, m.Samples.Samples
	if len(at) == 0 {
		return nil
	}
	first, last := at[len(at)/4], at[len(at)-1-len(at)/16] // at the very end processes free what they hold
	for i, b := range last.Bytes {
		if b > first.Bytes[i] && !m.stepped(m.Samples.Processes[i].PID) {
			out[i] = b - first.Bytes[i]
		}
	}
	return out
}

// stepped reports whether a process counts steps.
func (m *Measured) stepped(pid int) bool {
	return slices.ContainsFunc(m.levels, func(p []record.StepLevel) bool { return p[0].PID == pid })
}

// all names all processes together.
func (m *Measured) all() string {
	if n := len(m.Samples.Processes); n != 1 {
		return "all processes"
	}
	return m.name(m.Samples.Processes[0].PID)
}

// name is the name of a process for a person.
func (m *Measured) name(pid int) string {
	for _, p := range m.Samples.Processes {
		if p.PID == pid {
			return label(p)
		}
	}
	return fmt.Sprintf("pid%d", pid)
}

// label is the id of a process and the name of its program or script.
func label(p levels.Process) string {
	var words []string
	for _, w := range strings.Fields(p.Command) {
		if w == "-c" { // a program follows
			break
		}
		if w = filepath.Base(w); !strings.HasPrefix(w, "-") && len(words) < 2 && len(w) < 40 {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return fmt.Sprintf("pid%d", p.PID)
	}
	return fmt.Sprintf("pid%d (%s)", p.PID, strings.Join(words, " "))
}
