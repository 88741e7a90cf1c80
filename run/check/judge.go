package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/judge/gate"
	"strandline/judge/processes"
	"strandline/judge/snapshots"
	"strandline/record"
	"strandline/torch/snapshot"
)

// Limits are what is allowed for each metric; a metric without an entry is not measured.
type Limits map[string]gate.Limits

// Judge gives a verdict on a run. The parameter snapshots is the judgment of its
// snapshots, or nil if there are none.
func Judge(r *Run, limits Limits, snapshots *snapshots.Answer) *api.CheckRun {
	_, host := limits[gate.Host]
	_, device := limits[gate.Device]
	j := judging{run: r, limits: limits}
	for _, s := range r.series(host, device) {
		if device && s.Metric == gate.Host && r.stepping() == nil && r.recordsDevice() {
			s.Own = snapshotsOwn
		}
		j.all = append(j.all, r.judge(&s, limits[s.Metric]))
	}
	out := &api.CheckRun{ExitStatus: r.Status, Seconds: math.Round(r.lasted.Seconds()*1000) / 1000, Stopped: r.Stopped, Findings: []finding.Finding{}}
	out.Steps, out.StepsFrom = r.Steps()
	for i := range j.all {
		out.Findings = append(out.Findings, j.all[i].Finding())
		if k := &j.all[i]; k.Verdict == finding.Unknown {
			out.Missing = append(out.Missing, k.Series.Name()+": "+k.Why)
		}
	}
	out.Verdict = gate.Verdict(j.all)
	if out.Steps == 0 && r.only != "" {
		out.Missing = append(out.Missing, "no step was seen by "+r.only)
	}
	if device {
		j.snapshots(out, snapshots)
	}
	j.unsteady(out)
	if out.Verdict != finding.Leaking {
		if device {
			j.unmeasured(out)
		}
		j.markUnfinished(out)
	}
	j.lines(out.Findings)
	if snapshots != nil {
		out.Findings = append(out.Findings, j.kept(out.Findings, snapshots.Kept)...)
	}
	out.Findings = oneCause(out.Findings)
	j.peaks(out)
	out.Growth = j.growth()
	sorts.StableBy(out.Findings, func(a, b finding.Finding) int { return cmp.Compare(b.Severity.Rank(), a.Severity.Rank()) })
	return out
}

// judging is the judgment of one run.
type judging struct {
	run    *Run
	limits Limits
	all    []gate.Judgment
}

// snapshots adds what the snapshots of PyTorch's allocator show: the places that leak,
// and the verdict on a device for which no steps were seen.
func (j *judging) snapshots(out *api.CheckRun, a *snapshots.Answer) {
	stepped := slices.ContainsFunc(j.all, func(k gate.Judgment) bool { return k.Series.Metric == gate.Device })
	if a == nil {
		if _, host := j.limits[gate.Host]; !host && !stepped {
			out.Verdict = finding.Unknown
			out.Missing = append(out.Missing, "no process used PyTorch's allocator of a device; --metric host judges main memory")
		}
		return
	}
	var some []finding.Finding
	leaks := false
	for _, f := range a.Findings {
		metric := gate.Device
		if f.Device == nil {
			metric = gate.Host
		}
		limit := j.limits[metric].Growth
		allowed := limit != nil && metric == gate.Host || limit != nil && f.BytesPerStep != nil && *f.BytesPerStep <= *limit
		leak := f.Kind == finding.Leak || f.Kind == finding.AutogradGraph
		if leak && allowed && f.Severity == finding.Problem {
			f.Severity = finding.Info
		}
		leaks = leaks || leak && f.Severity == finding.Problem
		if f.Severity != finding.Info || leak {
			some = append(some, f)
		}
	}
	out.Findings = append(some, out.Findings...)
	if leaks {
		out.Verdict = finding.Leaking
		for i := range out.Findings[len(some):] { // the snapshots name the line
			f := &out.Findings[len(some)+i]
			if e, ok := f.Evidence.(*finding.StepGrowthEvidence); ok && e.Metric == gate.Device {
				f.Remedies = nil
			}
		}
		return
	}
	if stepped || out.Verdict == finding.Leaking {
		return
	}
	for _, d := range a.Judged {
		if !d.Enough && d.Device != snapshot.Host {
			out.Verdict = finding.Unknown
			out.Missing = append(out.Missing, fmt.Sprintf("device %d: too few snapshots to judge growth: run for longer, or count steps (strandline.step)", d.Device))
		}
	}
}

// kept are the tensors in main memory that explain the growth of a process which has no line, though
// few looks saw them: they take as much a step.
func (j *judging) kept(findings, few []finding.Finding) (out []finding.Finding) {
	for i := range findings {
		host := &findings[i]
		if e, ok := host.Evidence.(*finding.StepGrowthEvidence); !ok || e.Metric != gate.Host || host.Severity != finding.Problem || host.Site != nil || host.BytesPerStep == nil {
			continue
		}
		k := slices.IndexFunc(few, func(f finding.Finding) bool {
			return f.BytesPerStep != nil && sameProcess(host, &f) && math.Abs(float64(*f.BytesPerStep-*host.BytesPerStep)) < tolerance*float64(*host.BytesPerStep)
		})
		if k >= 0 {
			out = append(out, few[k])
		}
	}
	return out
}

// oneCause joins findings of one cause: the growth of a process's main memory, and what its
// snapshots show to be kept, there or on a device. Of two it keeps the one that knows the cause.
func oneCause(findings []finding.Finding) []finding.Finding {
	for i := range findings {
		host := &findings[i]
		level, ok := host.Evidence.(*finding.StepGrowthEvidence)
		if !ok || host.Severity != finding.Problem {
			continue
		}
		for k := range findings {
			kept := &findings[k]
			e, ok := kept.Evidence.(*finding.LeakEvidence)
			if !ok || kept.Severity == finding.Info || !sameProcess(host, kept) {
				continue
			}
			graph := kept.Kind == finding.AutogradGraph
			switch {
			case level.Metric == gate.Device:
				if kept.Severity == finding.Problem && sameDevice(host, kept) && kept.Bytes != nil && float64(*kept.Bytes) >= minKeptShare*float64(host.Grew()) {
					kept.Detail = append(kept.Detail, host.Title)
					return oneCause(slices.Delete(findings, i, i+1))
				}
			case kept.Device == nil && len(e.HeldBy) > 0 && (graph || mostOf(host, kept)),
				kept.Device != nil && !graph && host.Kind == finding.AutogradGraph:
				if kept.Device == nil {
					host.Kind, host.Remedies = kept.Kind, kept.Remedies
					host.Detail = slices.DeleteFunc(host.Detail, func(text string) bool { return strings.HasPrefix(text, processes.Traced) })
				} else {
					kept.Detail = append([]string{kept.Title}, kept.Detail...)
				}
				host.Site, host.Stack, host.Sites = kept.Site, nil, nil
				host.Detail = append(slices.DeleteFunc(host.Detail, func(text string) bool { return strings.HasPrefix(text, noLine) }), kept.Detail...)
				host.Brief.Title = host.Title + ": " + cmp.Or(kept.Brief.Title, kept.Title)
				return oneCause(slices.Delete(findings, k, k+1))
			case kept.Device != nil && (graph && host.Kind == finding.AutogradGraph || takesAsMuch(host, kept)):
				kept.Detail = append(kept.Detail, "so does its main memory: "+host.Title)
				if kept.Severity != finding.Problem {
					kept.Severity, kept.Confidence = finding.Problem, host.Confidence
				}
				return oneCause(slices.Delete(findings, i, i+1))
			}
		}
	}
	return findings
}

// minKeptShare is the least share of a device's growth that a place explains: up to half of it
// comes after the last snapshot.
const minKeptShare = minLeakShare / 2

func sameDevice(a, b *finding.Finding) bool {
	return a.Device != nil && b.Device != nil && *a.Device == *b.Device
}

// maxBesideTensor is the most main memory that a tensor of a device takes, in bytes: its
// object, its nodes of a graph, and what the recorder notes of both.
const maxBesideTensor = 32 << 10

// takesAsMuch reports whether the tensors that are kept on a device explain growth of main memory
// of which no cause is known, or the same line.
func takesAsMuch(host, kept *finding.Finding) bool {
	unknown := host.Kind == finding.Leak && host.Site == nil
	same := host.Site != nil && kept.Site != nil && host.Site.File == kept.Site.File && host.Site.Line == kept.Site.Line
	return (unknown || same) && kept.Count != nil && host.Grew() <= maxBesideTensor**kept.Count
}

// mostOf reports whether what is kept makes up most of the growth: by steps, as it was looked at
// before the end, otherwise by its bytes.
func mostOf(host, kept *finding.Finding) bool {
	if host.BytesPerStep != nil && kept.BytesPerStep != nil {
		return float64(*kept.BytesPerStep) >= minLeakShare*float64(*host.BytesPerStep)
	}
	return kept.Bytes != nil && float64(*kept.Bytes) >= minLeakShare*float64(host.Grew())
}

// sameProcess reports whether findings may be of one process: growth can be that of all.
func sameProcess(host, kept *finding.Finding) bool {
	a, b := processes.PIDOf(host.Process), processes.PIDOf(kept.Process)
	return a == b || a == 0
}

// unsteady takes back the verdict of a leak over time if a process could not be seen to
// count the steps of PyTorch's optimizers: an import of PyTorch grows for seconds.
func (j *judging) unsteady(out *api.CheckRun) {
	if !j.run.guessed || out.Steps > 0 || out.Verdict != finding.Leaking || len(j.run.unseen) == 0 {
		return
	}
	out.Verdict = finding.Unknown
	for i := range out.Findings {
		if f := &out.Findings[i]; f.Severity == finding.Problem {
			f.Kind, f.Severity, f.Remedies = finding.Growth, finding.Warning, nil
		}
	}
	out.Missing = append(out.Missing, fmt.Sprintf("%s uses PyTorch and did not load the recorder (see the note). Its steps are not counted, and its imports look like a leak. Count steps by --step-line, or judge by time alone with --steps-from time", j.run.name(j.run.unseen[0].PID)))
}

// unmeasured makes a verdict unknown if processes used a device of which nothing was
// measured.
func (j *judging) unmeasured(out *api.CheckRun) {
	missing := func(pid int, why string) {
		out.Missing = append(out.Missing, fmt.Sprintf("the device memory of %s was not measured: %s; --metric host judges main memory alone", j.run.name(pid), why))
		if out.Verdict == finding.OK {
			out.Verdict = finding.Unknown
		}
	}
	for _, n := range j.run.unseen {
		missing(n.PID, "it did not load the recorder (see the note)")
	}
	for _, n := range j.run.others {
		missing(n.PID, n.Why)
	}
	if j.run.Manifest == nil {
		return
	}
	for i := range j.run.Manifest.Processes {
		p := &j.run.Manifest.Processes[i]
		judged := func(k gate.Judgment) bool {
			return k.Series.Metric == gate.Device && processes.PIDOf(k.Series.Process) == p.PID
		}
		if len(p.Devices) > 0 && len(p.Dumps) == 0 && !slices.ContainsFunc(j.all, judged) {
			missing(p.PID, "it wrote no snapshot")
		}
	}
}

// markUnfinished makes a verdict unknown if processes of the command are still running, since they
// were not measured to their end.
func (j *judging) markUnfinished(out *api.CheckRun) {
	n := len(j.run.left)
	if n == 0 || j.run.Stopped {
		return
	}
	out.Verdict = finding.Unknown
	left, until := "1 process it started is", "it ends"
	if n > 1 {
		left, until = fmt.Sprintf("%d processes it started are", n), "they end"
	}
	out.Missing = append(out.Missing, fmt.Sprintf("the command ended, but %s still running (pid %d): keep the command in the foreground until %s", left, j.run.left[0], until))
}

// peaks records the highest levels of memory, and adds findings if they exceed what is
// allowed.
func (j *judging) peaks(out *api.CheckRun) {
	if _, ok := j.limits[gate.Host]; ok {
		out.Peak.HostBytes = j.run.hostPeak()
	}
	if _, ok := j.limits[gate.Device]; ok {
		out.Peak.DeviceBytes = j.run.devicePeak()
	}
	for metric, peak := range map[string]*int64{gate.Host: out.Peak.HostBytes, gate.Device: out.Peak.DeviceBytes} {
		limit := j.limits[metric].Peak
		switch {
		case limit == nil:
		case peak == nil && metric == gate.Device && j.limits[metric].Together && !j.run.usesDevice():
		case peak == nil:
			if out.Verdict == finding.OK {
				out.Verdict = finding.Unknown
			}
			out.Missing = append(out.Missing, fmt.Sprintf("the peak of the %s's memory is not known: no process was seen to use it", metric))
		case *peak > *limit:
			out.Findings = append(out.Findings, gate.Peak(metric, *peak, *limit))
			if out.Verdict != finding.Leaking {
				out.Verdict = finding.Over
			}
		}
	}
}

// hostPeak is the most that was seen of all processes together, or of one of them at the
// end of a step; nil if nothing was seen.
func (r *Run) hostPeak() *int64 {
	most := r.Samples.Peak
	for _, p := range r.levels {
		for _, l := range p {
			if l.Host != nil {
				most = max(most, *l.Host)
			}
		}
	}
	if most == 0 {
		return nil
	}
	return &most
}

// devicePeak is the sum, over all processes and devices, of the most that PyTorch's
// allocator reserved; nil if it was not seen to reserve anything.
func (r *Run) devicePeak() *int64 {
	var sum int64
	for _, p := range r.levels {
		for _, d := range p[len(p)-1].Devices {
			sum += d.Peak
		}
	}
	if sum == 0 && r.Manifest != nil { // no steps: the snapshots show a few moments
		for _, p := range r.Manifest.Processes {
			most := map[int]int64{}
			for _, d := range p.Dumps {
				for _, u := range d.Devices {
					most[u.Device] = max(most[u.Device], u.Reserved)
				}
			}
			for _, b := range most {
				sum += b
			}
		}
	}
	if sum == 0 {
		return nil
	}
	return &sum
}

// usesDevice reports whether a process was seen that uses a device.
func (r *Run) usesDevice() bool {
	return len(r.unseen)+len(r.others) > 0 || r.recordsDevice()
}

// recordsDevice reports whether a process recorded the history of a device.
func (r *Run) recordsDevice() bool {
	return r.Manifest != nil && slices.ContainsFunc(r.Manifest.Processes, func(p record.Process) bool { return len(p.Devices) > 0 })
}

// growth is that of the series that leaks most, otherwise of the first one that was judged.
func (j *judging) growth() *api.CheckGrowth {
	var best *gate.Judgment
	for i := range j.all {
		k := &j.all[i]
		if k.Growth.Unit == "" {
			continue
		}
		leaks := k.Verdict == finding.Leaking
		if best == nil || leaks && (best.Verdict != finding.Leaking || k.Growth.Rate > best.Growth.Rate) {
			best = k
		}
	}
	if best == nil {
		return nil
	}
	g := &api.CheckGrowth{
		Metric: best.Series.Metric, Process: best.Series.Process,
		Low: int64(math.Round(best.Growth.Low)), High: int64(math.Round(best.Growth.High)),
	}
	rate := int64(math.Round(best.Growth.Rate))
	if best.Growth.Unit == gate.Second {
		g.BytesPerSecond = &rate
	} else {
		g.BytesPerStep = &rate
	}
	return g
}
