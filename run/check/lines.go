package check

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strandline/face/report"
	"strandline/finding"
	"strandline/host/store/recording"
	"strandline/internal/secret"
	"strandline/internal/shell"
	"strandline/internal/sorts"
	"strandline/judge/gate"
	"strandline/judge/processes"
	"strandline/record"
	"strandline/run/trace"
	"strandline/stack"
	"strandline/units"
)

// A line is named for a leak that the levels show. What names it neither measures nor
// judges: Python's own trace of its objects in some steps, the calls that take memory from
// the system, and a sample of malloc's calls. All begin when the levels so far look like a leak, so that a command
// which does not leak runs undisturbed.

// suspect has lines looked for if the levels so far look like a leak on the host. Python
// processes are asked again when there are some times as many steps, or after some times
// as long without steps, as what grows at first need not be what leaks.
func (w *watch) suspect(pid int) {
	if w.o.Lines == nil || time.Now().Before(w.next) {
		return
	}
	began := time.Now()
	w.measure()
	leak := false
	for _, s := range w.run.series(true, false) {
		j := w.run.judge(&s, w.o.Lines[gate.Host])
		leak = leak || j.Verdict == finding.Leaking
	}
	if leak {
		if w.follower == nil {
			w.follower = trace.Follow(context.Background(), pid)
		}
		n, _ := w.run.Steps()
		steps := n > 0 && n >= retryFactor*w.asked
		if periods := w.periods.begin(time.Since(w.run.began)); (steps || periods) && w.session.AskForLines() == nil {
			w.asked = n
		}
	}
	w.next = time.Now().Add(10 * time.Since(began)) // at most a tenth of the time goes into it
}

// retryFactor is after how many times as many steps processes are asked again.
const retryFactor = 4

// looking reports whether processes are expected to name lines soon, so that the command
// is not stopped yet.
func (w *watch) looking() bool {
	if w.periods.running() {
		return true
	}
	n, _ := w.run.Steps()
	return w.asked > 0 && len(w.run.levels) > 0 && len(w.run.growing) == 0 && n < w.asked+w.asked/2+2*minSteps
}

// minSteps is about how many steps a process traces at least.
const minSteps = 20

// lines names the line of each leak on the host, or states what names it.
func (j *judging) lines(findings []finding.Finding) {
	for i := range findings {
		f := &findings[i]
		e, ok := f.Evidence.(*finding.StepGrowthEvidence)
		if !ok || e.Metric != gate.Host || f.Severity != finding.Problem {
			continue
		}
		traced := j.tracedFor(f)
		if traced != nil {
			if cause := processes.Cause(traced.Findings, j.run.grower(f)); cause != nil {
				if !retains(cause.Kind) || !j.byMalloc(f) { // what is not freed is not kept by an allocator
					processes.Attribute(f, cause)
				}
				continue
			}
		}
		if byObjects(f, cmp.Or(j.run.alike(f, j.run.tracedObjects), j.run.grower(f)), j.run.growing, j.seriesOf(f)) || traced != nil && byCalls(f, traced) || j.byMalloc(f) || traced != nil && byKind(f, traced, j.run.grower(f)) {
			continue
		}
		f.Detail = append(f.Detail, noLine+j.unnamed(f))
		command := shell.Line(secret.Args(j.run.command)...)
		if j.run.traced != nil { // a trace would find no more
			f.Remedies = []finding.Remedy{finding.CodeChange("find the line with a heap profiler, which sees each allocation: `heaptrack " + command + "`; in Python, `memray run --native`")}
		}
		if j.run.containers != nil {
			processes.NameContainers(f, j.run.containers(j.run.grower(f)))
		}
		for k := range f.Remedies {
			f.Remedies[k].Text = strings.Replace(f.Remedies[k].Text, "-- CMD", "-- "+command, 1)
		}
	}
}

// tracedFor is what a trace found that can be the cause of a finding: where the memory in use
// grows, what an allocator keeps of freed memory is not. It is nil if nothing was traced.
func (j *judging) tracedFor(f *finding.Finding) *report.Trace {
	inUse := j.mallocKeeps(f) || slices.ContainsFunc(j.all, func(k gate.Judgment) bool {
		return k.InUse && k.Series.Metric == gate.Host && k.Series.Process == f.Process
	})
	if j.run.traced == nil || !inUse {
		return j.run.traced
	}
	out := *j.run.traced
	out.Findings = slices.DeleteFunc(slices.Clone(out.Findings), func(g finding.Finding) bool {
		return retains(g.Kind)
	})
	return &out
}

// retains reports whether a kind is memory that an allocator keeps after it was freed.
func retains(kind finding.Kind) bool {
	return kind == finding.ArenaRetention || kind == finding.AllocatorRetention
}

// noLine begins the detail that says so.
const noLine = "no line is named: "

// unnamed says why no line is named.
func (j *judging) unnamed(f *finding.Finding) string {
	switch {
	case j.run.untraced != nil:
		return j.run.untraced.Error()
	case j.run.traced == nil:
		return trace.ErrTooSoon.Error()
	case len(j.run.growing) > 0:
		return "neither one line of Python nor one call to the system took most of it"
	}
	return "no single call to the system took most of it, nor one line by a sample of malloc's calls" + j.heap(processes.PIDOf(f.Process))
}

// heap states which calls made the heap of a process grow, 0 for any; "" if that is not
// known. Those are not always the ones of which something stays.
func (j *judging) heap(pid int) string {
	for i := range j.run.traced.Findings {
		g := &j.run.traced.Findings[i]
		if q := processes.PIDOf(g.Process); g.Kind == finding.HeapLeak && g.Site != nil && !fromObserver(g) && (q == pid || pid == 0 || q == 0) {
			return fmt.Sprintf(". It grew most by allocations %s, which need not be the kept ones", at(*g.Site))
		}
	}
	return ""
}

// minLeakShare is the least share of a leak that is named by a line or a few, and near how much
// the growth at a line may differ from that of the process to be all of it. underWay is how many
// times as fast as the leak a process may grow for a short time. maxReused is how many times as
// much as a process grows its allocator may have in use more: what lies in memory that was free.
const (
	maxReused    = 1.6
	minLeakShare = 0.5
	tolerance    = 0.25
	underWay     = 2
)

// seriesOf returns the levels on the host that a finding is about, nil if it is not known.
func (j *judging) seriesOf(f *finding.Finding) *gate.Series {
	i := slices.IndexFunc(j.all, func(k gate.Judgment) bool { return k.Series.Metric == gate.Host && k.Series.Process == f.Process })
	if i < 0 {
		return nil
	}
	return j.all[i].Series
}

// usual is by how much levels usually grow in so many seconds: the median over all their
// moments, so that it has no part in what comes in bursts further apart.
func usual(s *gate.Series, seconds float64) float64 {
	var grew []float64
	for i, k := 0, 0; k < len(s.At); {
		if s.At[k]-s.At[i] < seconds {
			k++
			continue
		}
		grew = append(grew, (s.Bytes[k]-s.Bytes[i])*seconds/(s.At[k]-s.At[i]))
		i++
	}
	if len(grew) == 0 {
		return math.Inf(1)
	}
	slices.Sort(grew)
	return grew[len(grew)/2]
}

// byObjects names the line of a leak that consists of Python's objects, and reports
// whether there is one.
//
// A program runs slower while it is traced. But if it usually grows by less than half of
// the leak in as long, most of that comes in bursts, and a trace that saw none names a
// part of the leak.
//
// A cache that drops its oldest, and what is kept for some steps, also grow while they
// are traced: what they replace was allocated before. So if the lines grow by more than
// the process does, the only one that grows by about as much is named.
func byObjects(f *finding.Finding, pid int, all []record.Growing, levels *gate.Series) bool {
	i := slices.IndexFunc(all, func(g record.Growing) bool { return pid == g.PID })
	if i < 0 {
		return false
	}
	g := &all[i]
	kept := grown{steps: g.Steps, seconds: g.Seconds, bytes: g.Grew, stacks: map[finding.Site][]finding.Frame{}}
	if g.Seconds == 0 {
		if f.BytesPerStep == nil {
			return false
		}
		kept.bytes = *f.BytesPerStep * int64(g.Steps)
	}
	for _, l := range g.Lines {
		site, frames := siteOf(l.Frames)
		if kept.stacks[site] == nil {
			kept.stacks[site] = frames
		}
		kept.places = append(kept.places, finding.Place{Site: site, Bytes: l.Bytes, Count: l.Count})
	}
	kept.places = merged(kept.places)
	return byKept(f, kept, "traced", levels)
}

// grown is what a process kept while it was looked into, in some steps or in a time.
type grown struct {
	steps   int
	seconds float64
	bytes   int64           // by which the process grew meanwhile
	most    *int64          // of it that can be of these places; nil if that is not known
	places  []finding.Place // that allocated what was kept, the one with most bytes first
	stacks  map[finding.Site][]finding.Frame
}

// byKept names the line of a leak by what its process kept, and reports whether there is one.
// The word says how that was seen.
func byKept(f *finding.Finding, g grown, seen string, levels *gate.Series) bool {
	grew, places := float64(g.bytes), g.places
	whole := grew // of which the places are a part
	if g.most != nil {
		if most := float64(*g.most); most < grew {
			grew, whole = most, most
		} else if most <= maxReused*grew {
			whole = most
		}
	}
	if e, ok := f.Evidence.(*finding.StepGrowthEvidence); ok && e.Unit == gate.Second && g.seconds > 0 {
		if grew < tolerance*float64(e.LowBytes)*g.seconds {
			return false // what leaks is not made of objects
		}
		if grew > underWay*float64(e.HighBytes)*g.seconds {
			return false // more of it was under way than leaks
		}
		if least := minLeakShare * float64(e.LowBytes) * g.seconds; grew < least && levels != nil && usual(levels, g.seconds) < least {
			f.Detail = append(f.Detail, fmt.Sprintf("most of it came in bursts: in %.1f %s seconds, which saw none, the process grew by %s", g.seconds, seen, units.Bytes(g.bytes)))
			return false
		}
	}
	var sum int64
	for _, p := range places {
		sum += p.Bytes
	}
	if len(places) == 0 || grew <= 0 || float64(sum) < minLeakShare*grew {
		return false
	}
	others := ""
	if float64(sum) > (1+tolerance)*whole {
		off := func(p finding.Place) float64 { return math.Abs(float64(p.Bytes) - grew) }
		places = slices.DeleteFunc(slices.Clone(places), func(p finding.Place) bool { return off(p) > minLeakShare*grew })
		if len(places) != 1 || off(places[0]) > tolerance*grew {
			return false // none, or it could be either
		}
	} else {
		others = shares(places, sum)
	}
	f.Site, f.Stack, f.Sites = &places[0].Site, g.stacks[places[0].Site], places
	text := fmt.Sprintf("in %d %s steps, kept allocations %s grew by %s a step", g.steps, seen, at(*f.Site), units.Bytes(places[0].Bytes/int64(max(g.steps, 1))))
	if g.seconds > 0 {
		text = fmt.Sprintf("in %.1f %s seconds, the process grew by %s, and kept allocations %s by %s", g.seconds, seen, units.Bytes(g.bytes), at(*f.Site), units.Bytes(places[0].Bytes))
	}
	if others != "" && len(places) > 1 {
		text += " (" + others + ")"
	}
	f.Detail = append(f.Detail, text)
	f.Remedies = []finding.Remedy{finding.CodeChange("drop the references to these allocations, or bound their holder")}
	return true
}

// byCalls names the place whose calls to the system took most of a leak, and reports
// whether there is one. Only calls that are allocations themselves count: where an
// allocator asks for more, any line can be the one that finds it empty.
func byCalls(f *finding.Finding, doc *report.Trace) bool {
	for i := range doc.Findings {
		g := &doc.Findings[i]
		e, ok := g.Evidence.(*finding.CallGrowthEvidence)
		if !ok || g.Site == nil || g.Severity == finding.Info || fromObserver(g) || !exact(g.Kind, e, doc.Stacks) || float64(e.ResidentBytes) < minLeakShare*float64(e.RSSGrowthBytes) {
			continue
		}
		if a, b := processes.PIDOf(f.Process), processes.PIDOf(g.Process); a != b && a > 0 && b > 0 {
			continue
		}
		places := merged(g.Sites)
		if len(places) == 0 {
			places = []finding.Place{{Site: *g.Site, Bytes: *g.Bytes, Count: *g.Count}}
		}
		var sum int64
		for _, p := range places {
			sum += p.Bytes
		}
		f.Site, f.Stack, f.Sites = g.Site, g.Stack, places
		f.Detail = append(f.Detail, fmt.Sprintf("calls to the system that were traced took %s which stayed: %s", units.Bytes(sum), shares(places, sum)))
		f.Remedies = []finding.Remedy{finding.CodeChange("free these allocations, or bound their holder")}
		return true
	}
	return false
}

// byKind names what a trace says of most of a leak, and reports whether it says more than
// that the heap of malloc grows.
func byKind(f *finding.Finding, doc *report.Trace, pid int) bool {
	g := processes.Leading(doc.Findings, pid)
	if g == nil || g.Kind == finding.HeapLeak || fromObserver(g) {
		return false
	}
	processes.Attribute(f, g)
	return true
}

// fromObserver reports whether the memory of a finding was taken while the module in the process
// looked for lines: in a handler of a signal, above whatever the program did just then.
func fromObserver(f *finding.Finding) bool {
	return slices.ContainsFunc(f.Stack, func(f finding.Frame) bool { return record.InModule(f.File) })
}

// exact reports whether the calls behind a finding are each one allocation of the
// program.
func exact(kind finding.Kind, e *finding.CallGrowthEvidence, stacks []recording.Stack) bool {
	switch kind {
	case finding.PythonObjects, finding.AllocatorRetention, finding.ArenaRetention, finding.FileMapping:
		return false
	}
	var direct, all int64
	for _, s := range stacks {
		if slices.Contains(e.Stacks, s.ID) {
			all += s.LiveBytes
			if s.Call == "mmap" || s.Call == "mremap" {
				direct += s.LiveBytes
			}
		}
	}
	return all > 0 && 10*direct >= 9*all
}

// siteOf is the innermost place of a stack of Python that is the program's own, and the
// stack.
func siteOf(places []record.Frame) (site finding.Site, frames []finding.Frame) {
	for _, p := range places {
		frames = append(frames, finding.Frame{File: p.File, Line: p.Line})
	}
	own := slices.IndexFunc(frames, func(f finding.Frame) bool { return stack.OriginOf(stack.Frame(f)) == stack.Own })
	return frames[max(own, 0)], frames
}

// merged sums up places, the one with most bytes first.
func merged(all []finding.Place) (out []finding.Place) {
	for _, p := range all {
		if i := slices.IndexFunc(out, func(q finding.Place) bool { return q.Site == p.Site }); i >= 0 {
			out[i].Bytes, out[i].Count = out[i].Bytes+p.Bytes, out[i].Count+p.Count
		} else {
			out = append(out, p)
		}
	}
	sorts.StableBy(out, func(a, b finding.Place) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// shares says in words where most of some memory was allocated.
func shares(places []finding.Place, sum int64) string {
	var parts []string
	for _, p := range places[:min(3, len(places))] {
		if 20*p.Bytes >= sum {
			parts = append(parts, units.Percent(float64(p.Bytes)/float64(max(sum, 1)))+" "+at(p.Site))
		}
	}
	return strings.Join(parts, ", ")
}

// at is a place in a few words.
func at(s finding.Site) string {
	if s.Line == 0 {
		return fmt.Sprintf("in %s (%s)", s.Function, filepath.Base(s.File))
	}
	return fmt.Sprintf("at %s:%d", filepath.Base(s.File), s.Line)
}
