package soak

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/secret"
	"strandline/internal/sorts"
	"strandline/judge/gate"
	"strandline/judge/processes"
	"strandline/run/soak/load"
	"strandline/units"
)

// A measure reads a level from a wave; false if the wave has none.
type measure func(w *api.SoakWave) (int64, bool)

// deviceLevel reads all that is held of a device, and tensorLevel what PyTorch's tensors
// have of it: a server that reserves a device when it starts hides their growth for long.
func deviceLevel(index int) measure {
	return func(w *api.SoakWave) (int64, bool) {
		d := of(w.Devices, index)
		if d == nil {
			return 0, false
		}
		return d.Bytes, true
	}
}

func tensorLevel(index int) measure {
	return func(w *api.SoakWave) (int64, bool) {
		d := of(w.Devices, index)
		if d == nil || d.Allocated == nil {
			return 0, false
		}
		return *d.Allocated, true
	}
}

// of is what is held of a device; nil if nothing is.
func of(devices []api.SoakDevice, index int) *api.SoakDevice {
	for i := range devices {
		if devices[i].Device == index {
			return &devices[i]
		}
	}
	return nil
}

// series are the levels of the waves since the server was started last, by the requests
// that had not been sent before. What repeated requests added is left out of them, unless
// they add as new ones do.
func (e *experiment) series(metric string, device *int, level measure, apart bool) (s gate.Series, tokens float64) {
	s = gate.Series{Metric: metric, Unit: gate.Request, Device: device}
	var at, added float64
	var before int64
	var skipped float64 // requests of waves that are not judged
	for i := e.life; i < len(e.doc.Waves); i++ {
		w := &e.doc.Waves[i]
		if w.Load == nil {
			continue
		}
		bytes, ok := level(w)
		requests, generated := e.work(i)
		switch {
		case !ok:
			skipped += requests
			continue
		case w.WarmUp:
		case w.Repeats > 0 && apart:
			added += float64(bytes - before)
		case w.Unjudged:
			skipped += requests
			continue
		default:
			tokens += generated
		}
		before = bytes
		if w.Repeats > 0 && apart {
			continue
		}
		at, skipped = at+requests+skipped, 0
		if w.WarmUp {
			s.At, s.Bytes = s.At[:0], s.Bytes[:0]
		}
		s.At, s.Bytes = append(s.At, at), append(s.Bytes, float64(bytes)-added)
	}
	for i := range s.Bytes {
		s.Bytes[i] += added
	}
	if n := len(s.At); n > 1 {
		tokens /= max(s.At[n-1]-s.At[0], 1)
	}
	s.Process, s.PID = e.holder(metric, device)
	return s, tokens
}

// repeated is what a request that had been sent before added since the server was started
// last; false if none was sent again.
func (e *experiment) repeated(level measure) (rate float64, ok bool) {
	var bytes int64
	var requests float64
	for i := max(e.life, 1); i < len(e.doc.Waves); i++ {
		w := &e.doc.Waves[i]
		if w.Repeats == 0 || w.Unjudged {
			continue
		}
		now, ok := level(w)
		before, known := level(&e.doc.Waves[i-1])
		if ok && known {
			n, _ := e.work(i)
			bytes, requests = bytes+now-before, requests+n
		}
	}
	return float64(bytes) / max(requests, 1), requests > 0
}

// A judged series.
type judged struct {
	gate.Judgment
	level  measure
	tokens float64 // generated for each request; NaN where that is not known
}

// confirms is the least growth by repeated requests that confirms a leak, as a share of
// the growth by new ones.
const confirms = 0.5

// judgeOne judges a series: by new requests, and by those that were sent again if it grows.
func (e *experiment) judgeOne(metric string, device *int, level measure) judged {
	limits := e.o.Limits[metric]
	s, tokens := e.series(metric, device, level, true)
	j := judged{gate.JudgeWaves(&s, limits), level, tokens}
	again, sent := e.repeated(level)
	if !sent || !grows(&j.Judgment) {
		return j
	}
	if again < confirms*j.Growth.Rate {
		j.Verdict, j.Course.Growing = finding.Unknown, undecided
		j.Why = fmt.Sprintf("grows by %s if the content is new, and by %s if it was sent before. This is a content cache that still fills, or a leak of new content. To decide, start the server without such caches (vLLM: --mm-processor-cache-gb 0 --no-enable-prefix-caching; SGLang: --disable-radix-cache) and run this again with --repeat=false; or send more waves%s until its caches are full", j.Growth, gate.Size(again), e.longer())
		return j
	}
	s, tokens = e.series(metric, device, level, false)
	if all := gate.JudgeWaves(&s, limits); all.Verdict == finding.Leaking || j.Verdict != finding.Leaking {
		j = judged{all, level, tokens}
	}
	j.Why += fmt.Sprintf("; requests that were sent again add %s each", gate.Size(again))
	return j
}

// longer names the options that send more than this experiment did.
func (e *experiment) longer() string {
	if e.o.Further > 0 {
		return " (a larger --waves or --requests)"
	}
	return " (--until-verdict, a larger --requests)"
}

// undecided is the probability of growth that is as likely as not.
const undecided = 0.5

// grows reports whether a series leaks, or may: it grows by more than servers also do
// without a leak.
func grows(j *gate.Judgment) bool {
	levels := j.Series.Bytes
	if len(levels) == 0 || levels[len(levels)-1]-levels[0] < gate.Grain {
		return false
	}
	return j.Verdict == finding.Leaking || j.Verdict == finding.Unknown && j.Course.Growing == undecided && j.Growth.Low > 0
}

// judgeAll judges what is measured.
func (e *experiment) judgeAll() (out []judged) {
	if _, ok := e.o.Limits[gate.Host]; ok {
		all := e.judgeOne(gate.Host, nil, (*api.SoakWave).Host)
		e.compiling(&all)
		e.caching(&all)
		stay := e.staying(&all)
		out = append(append(out, all), stay...)
	}
	if _, ok := e.o.Limits[gate.Device]; !ok || len(e.doc.Waves) == 0 {
		return out
	}
	for _, d := range e.devices() {
		index := d.Device
		out = append(out, e.judgeOne(gate.Device, &index, deviceLevel(index)))
		if d.Allocated != nil {
			tensors := e.judgeOne(gate.Device, &index, tensorLevel(index))
			tensors.Series.Process += ", tensors of PyTorch"
			out = append(out, tensors)
		}
	}
	return out
}

// devices are those that were read last.
func (e *experiment) devices() (out []api.SoakDevice) {
	for i := range e.doc.Waves {
		if d := e.doc.Waves[i].Devices; len(d) > 0 {
			out = d
		}
	}
	return out
}

func (e *experiment) judge() (out []gate.Judgment) {
	for _, j := range e.judgeAll() {
		out = append(out, j.Judgment)
	}
	return out
}

// suspect reports whether requests are to be sent again: a series looks like a leak, or
// may be one and no further wave follows.
func (e *experiment) suspect(all []gate.Judgment, last bool) bool {
	return slices.ContainsFunc(all, func(j gate.Judgment) bool {
		return j.Verdict == finding.Leaking || (last || e.repeatedAt > 0) && grows(&j)
	})
}

// holder names the process that growth is in, or all of them with the PID 0.
func (e *experiment) holder(metric string, device *int) (who string, pid int) {
	if len(e.doc.Waves) == 0 {
		return "", 0
	}
	first := e.doc.Waves[min(e.life, len(e.doc.Waves)-1)].Processes
	last := first
	for i := e.life; i < len(e.doc.Waves); i++ {
		if p := e.doc.Waves[i].Processes; len(p) > 0 {
			last = p
		}
	}
	held := func(p *api.SoakProcess) int64 {
		if metric == gate.Host {
			return p.HostBytes
		}
		if d := of(p.Devices, *device); d != nil {
			return d.Bytes
		}
		return 0
	}
	var grown, most int64
	var one *api.SoakProcess
	for i := range last {
		p := &last[i]
		by := held(p)
		for k := range first {
			if first[k].PID == p.PID {
				by -= held(&first[k])
			}
		}
		grown += max(by, 0)
		if by > most {
			most, one = by, p
		}
	}
	for i := range first { // what others of the same kind took over is no growth of theirs
		if !slices.ContainsFunc(last, func(p api.SoakProcess) bool { return p.PID == first[i].PID }) {
			return "all processes", 0
		}
	}
	const share = 0.8
	if one != nil && float64(most) >= share*float64(grown) || one == nil && len(last) == 1 {
		if one == nil {
			one = &last[0]
		}
		return name(one), one.PID
	}
	return "all processes", 0
}

// name is a process for a person.
func name(p *api.SoakProcess) string {
	var words []string
	for _, w := range strings.Fields(p.Command) {
		if w = filepath.Base(w); !strings.HasPrefix(w, "-") && len(words) < 2 && len(w) < 40 {
			words = append(words, w)
		}
	}
	return strings.TrimSpace(fmt.Sprintf("pid%d (%s)", p.PID, strings.Join(words, " ")))
}

// note adds what could not be measured, once.
func (e *experiment) note(devices string, busy bool) {
	if _, ok := e.o.Limits[gate.Device]; ok && devices != "" {
		e.add("devices were not measured: " + devices)
	}
	if busy {
		e.add("the engine was still working on requests at the end of a gap: is something else sending requests? A longer --gap waits for them")
	}
}

// conclude gives the verdict on the whole experiment.
func (e *experiment) conclude(ctx context.Context) {
	d := e.doc
	d.PID = e.server.root.PID
	d.Seconds = math.Round(time.Since(e.began).Seconds()*1000) / 1000
	d.Load = *loadOf(&e.total)
	d.Interrupted = ctx.Err() != nil
	e.failing()
	all := e.judgeAll()
	var plain []gate.Judgment
	for i := range all {
		j := &all[i].Judgment
		if _, sent := e.repeated(all[i].level); j.Verdict == finding.Leaking && e.o.Repeat && !sent {
			j.Verdict, j.Course.Growing = finding.Unknown, undecided
			j.Why = "grows steadily, and the experiment ended before requests were sent again to rule out a cache"
		}
		f := j.Finding()
		if cause := processes.Leading(e.traced, j.Series.PID); cause != nil && j.Verdict == finding.Leaking && j.Series.Metric == gate.Host {
			processes.Attribute(&f, cause)
		}
		d.Findings = append(d.Findings, f)
		plain = append(plain, *j)
		if j.Verdict == finding.Unknown && d.Failed == "" {
			d.Missing = append(d.Missing, j.Series.Name()+": "+j.Why+e.unanswered())
		}
	}
	d.Verdict = gate.Verdict(plain)
	e.peaks()
	d.Growth = growth(all)
	sorts.StableBy(d.Findings, func(a, b finding.Finding) int { return cmp.Compare(b.Severity.Rank(), a.Severity.Rank()) })
	if rate, sent := e.repeated((*api.SoakWave).Host); sent {
		d.Repeated = &api.SoakRepeated{BytesPerRequest: int64(math.Round(rate)), Grows: d.Verdict == finding.Leaking}
	}
	e.reclaimed()
	e.traffic()
	if e.unmeasured() && d.Failed == "" {
		d.Missing = append(d.Missing, "device memory of the server's processes was not measured. Run soak where the driver or PyTorch reports it, give the right process with --pid, or judge --metric host")
	}
	e.elsewhere()
	if d.Failed != "" && d.Verdict == finding.OK {
		d.Verdict = finding.Unknown
	}
	if n := d.Load.Failed; n > 0 && d.Failed == "" {
		d.Notes = append(d.Notes, fmt.Sprintf("%d of %d requests failed: %s", n, d.Load.Requests, d.Load.Example))
	}
	if slices.ContainsFunc(d.Waves, func(w api.SoakWave) bool { return w.Falling }) {
		d.Notes = append(d.Notes, "memory was still falling at the end of a gap: a longer --gap reads more exact levels")
	}
}

// failing enters that the server failed, if most requests of the last wave did: what it
// held before says nothing of the server that there is now.
func (e *experiment) failing() {
	last := &e.doc.Waves[len(e.doc.Waves)-1]
	if l := last.Load; l != nil && e.doc.Failed == "" && !e.doc.Interrupted && !last.Ended && 2*l.Failed > l.Requests {
		e.doc.Failed = fmt.Sprintf("wave %d: %d of %d requests failed: %s", last.Wave, l.Failed, l.Requests, l.Example)
	}
}

// unanswered states how many waves do not count because of what failed in them; "" if all
// do.
func (e *experiment) unanswered() string {
	var n int64
	for i := e.life; i < len(e.doc.Waves); i++ {
		if w := &e.doc.Waves[i]; w.Unjudged && w.Load != nil && 2*w.Load.Failed > w.Load.Requests {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; not counted: %s most of whose requests failed", units.Plural(n, "wave"))
}

// peaks notes the highest levels, and adds findings for those above what is allowed.
func (e *experiment) peaks() {
	for i := range e.doc.Waves {
		w := &e.doc.Waves[i]
		if _, ok := e.o.Limits[gate.Host]; ok {
			for _, level := range []*int64{w.HostBytes, w.BeforeReclaim} {
				if level != nil {
					e.doc.Peak.HostBytes = higher(e.doc.Peak.HostBytes, *level)
				}
			}
		}
		var sum int64
		for _, d := range w.Devices {
			sum += d.Bytes
		}
		if len(w.Devices) > 0 {
			e.doc.Peak.DeviceBytes = higher(e.doc.Peak.DeviceBytes, sum)
		}
	}
	for _, of := range []struct {
		metric string
		peak   *int64
	}{{gate.Host, e.doc.Peak.HostBytes}, {gate.Device, e.doc.Peak.DeviceBytes}} {
		if limit := e.o.Limits[of.metric].Peak; limit != nil && of.peak != nil && *of.peak > *limit {
			e.doc.Findings = append(e.doc.Findings, gate.Peak(of.metric, *of.peak, *limit))
			if e.doc.Verdict != finding.Leaking {
				e.doc.Verdict = finding.Over
			}
		}
	}
}

// higher returns the greater of a peak, nil if none is known, and a level.
func higher(peak *int64, level int64) *int64 {
	if peak != nil && *peak >= level {
		return peak
	}
	return &level
}

// reclaimed states what the command that reclaims did. Without it, what it released would
// have been kept from wave to wave.
func (e *experiment) reclaimed() {
	if e.o.Reclaim == "" {
		return
	}
	var sum, n int64
	kept := map[int]int64{} // by wave
	for i := range e.doc.Waves {
		w := &e.doc.Waves[i]
		if w.HostBytes == nil {
			continue
		}
		if w.BeforeReclaim != nil && i > 0 {
			sum, n = sum+*w.BeforeReclaim-*w.HostBytes, n+1
		}
		kept[w.Wave] = *w.HostBytes + sum
	}
	s, _ := e.series(gate.Host, nil, func(w *api.SoakWave) (int64, bool) { bytes, ok := kept[w.Wave]; return bytes, ok }, false)
	without := gate.JudgeWaves(&s, e.o.Limits[gate.Host])
	e.doc.Reclaim = &api.SoakReclaim{Command: secret.Text(e.o.Reclaim), ReleasedBytes: sum / max(n, 1), Without: without.Verdict}
}

// allowed reports whether a series grows steadily, and by no more than is allowed.
func (j *judged) allowed() bool {
	return j.Verdict == finding.OK && j.Course.Leaks() && j.Growth.Low > 0
}

// growth is that of the series that leaks most, otherwise of the first whose growth is allowed,
// otherwise of the first that was judged.
func growth(all []judged) *api.SoakGrowth {
	var best *judged
	for i := range all {
		j := &all[i]
		leaks := j.Verdict == finding.Leaking
		if j.Growth.Unit != "" && (best == nil || j.allowed() && best.Verdict == finding.OK && !best.allowed() || leaks && (best.Verdict != finding.Leaking || j.Growth.Rate > best.Growth.Rate)) {
			best = j
		}
	}
	if best == nil {
		return nil
	}
	round := func(x float64) int64 { return int64(math.Round(x)) }
	g := &api.SoakGrowth{
		Metric: best.Series.Metric, Device: best.Series.Device, Process: best.Series.Process,
		BytesPerRequest: round(best.Growth.Rate), Low: round(best.Growth.Low), High: round(best.Growth.High),
		Allowed: best.allowed(),
	}
	if best.tokens > 0 {
		per := func(x float64) *float64 { x = math.Round(10*x/best.tokens) / 10; return &x }
		g.BytesPerToken, g.LowPerToken, g.HighPerToken = per(best.Growth.Rate), per(best.Growth.Low), per(best.Growth.High)
	}
	return g
}

// loadOf is what became of requests, as JSON.
func loadOf(s *load.Stats) *api.SoakLoad {
	out := &api.SoakLoad{
		Requests: s.Sent, Completed: s.Completed, Aborted: s.Aborted, Failed: s.Failed(), Errors: map[string]int64{},
		PromptTokens: s.PromptTokens, OutputTokens: s.OutputTokens, Seconds: math.Round(s.Elapsed.Seconds()*1000) / 1000,
		TTFT: latency(&s.TTFT), TPOT: latency(&s.TPOT), Latency: latency(&s.Total),
	}
	var most int64
	for kind, n := range s.Errors {
		out.Errors[string(kind)] = n
		if n > most {
			most, out.Example = n, strings.ReplaceAll(string(kind), "_", " ")+": "+s.Examples[kind]
		}
	}
	return out
}

func latency(h *load.Histogram) *api.SoakLatency {
	if h.Count() == 0 {
		return nil
	}
	ms := func(share float64) float64 {
		return math.Round(float64(h.Quantile(share).Microseconds())/10) / 100
	}
	return &api.SoakLatency{P50: ms(0.5), P95: ms(0.95)}
}
