package handovers

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"strandline/host/calls/event"
	"strandline/host/store/recording"
	"strandline/internal/sorts"
	"strandline/pausable/history"
	"strandline/pausable/state"
	"strandline/plan"
	"strandline/plan/rl"
)

// The bounds of a trace: how many groups it is divided into, and how many hand-overs of a
// process are compared, the last ones.
const (
	maxGroups = 12
	maxDone   = 10000
)

// Traced lays a trace that was made with --gpu beside the phases of a plan, a process at a
// time. Calls of the driver have no tags: memory that is always handed over together is a
// group, which is taken for the component of its size unless names state it.
func Traced(p *rl.Phases, trace *recording.Run, device int, names map[string]string) (out []*Check, err error) {
	of := map[int][]recording.HandOver{}
	for _, h := range trace.HandOvers {
		of[h.PID] = append(of[h.PID], h)
	}
	if len(of) == 0 {
		return nil, errors.New("no memory in this recording left a device and returned to its addresses; record again with `strandline trace --gpu --out`")
	}
	for _, pid := range slices.Sorted(maps.Keys(of)) {
		c, err := traceOf(p, trace, pid, of[pid], len(of) == 1, device, names)
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", pid, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func traceOf(p *rl.Phases, trace *recording.Run, pid int, done []recording.HandOver, alone bool, device int, names map[string]string) (*Check, error) {
	c := newCheck(p, pid, device)
	c.ByCalls = true
	if len(done) > maxDone {
		c.Notes = append(c.Notes, fmt.Sprintf("of %d hand-overs, the last %d are compared", len(done), maxDone))
		done = done[len(done)-maxDone:]
	}
	t := tracing{check: c, began: time.UnixMicro(trace.BeganUS), groups: groupsOf(done), done: done, base: math.MinInt64}
	t.courses()
	if alone {
		c.traced = newLibraries(trace)
		c.traced.dropTraced(&t)
		t.account(trace)
	} else {
		c.Notes = append(c.Notes, "several processes hand over memory: their other memory is unknown and not counted")
	}
	log := t.log(pid)
	if len(log.Steps) < 2 {
		return nil, errors.New("there is one hand-over: a phase lies between two")
	}
	if err := c.tags(p, log, t.named(p, names)); err != nil {
		return nil, err
	}
	c.within = t.usageBetween
	c.compare(p, log)
	c.Notes = append(c.Notes, "a hand-over lasts from the first to the last call that makes, maps, unmaps or releases its memory. Calls within a second belong together. Copies before and after are not in it")
	if trace.Partial != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("the recording is only partly readable: %v", trace.Partial))
	}
	if trace.Document != nil && trace.Document.Drops > 0 {
		c.Notes = append(c.Notes, "events were lost in this trace: hand-overs may be missing")
	}
	return c, nil
}

// tracing makes a log of a trace.
type tracing struct {
	check  *Check
	began  time.Time
	groups map[recording.Block]string
	done   []recording.HandOver
	size   map[string]int64   // of groups
	held   []map[string]int64 // that groups have of the device, by how many hand-overs have ended
	base   int64              // that is used besides what was traced; the least integer if it is not known
}

// groupsOf names the blocks that are always handed over together, the largest group first.
func groupsOf(done []recording.HandOver) map[recording.Block]string {
	when := map[recording.Block]uint64{} // the hand-overs that a block is in, as a hash
	for i := range done {
		for _, b := range done[i].Blocks {
			h := fnv.New64a()
			binary.Write(h, binary.LittleEndian, [2]uint64{when[b], uint64(i)})
			when[b] = h.Sum64()
		}
	}
	bytes := map[uint64]int64{}
	for b, w := range when {
		bytes[w] += b.Bytes
	}
	order := sorts.Collect(maps.Keys(bytes), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(bytes[b], bytes[a]), cmp.Compare(a, b))
	})
	out := map[recording.Block]string{}
	for b, w := range when {
		if i := slices.Index(order, w); i < maxGroups {
			out[b] = fmt.Sprintf("group%d", i+1)
		} else {
			out[b] = "others"
		}
	}
	return out
}

func (t *tracing) at(seconds float64) time.Time {
	return t.began.Add(time.Duration(seconds * float64(time.Second)))
}

// account finds what is used that no call of the trace took: by the driver's count, if it
// was noted for one device.
func (t *tracing) account(trace *recording.Run) {
	if trace.Document == nil || trace.Document.GPU == nil || len(trace.Document.GPU.Devices) != 1 {
		return
	}
	d := &trace.Document.GPU.Devices[0]
	if d.Total != nil {
		t.check.Total = *d.Total
	}
	if d.Used == nil {
		return
	}
	t.base = 0
	for _, p := range d.Parts {
		if p.Part != recording.PartTraced && p.Part != recording.PartPyTorch {
			t.base += p.Bytes
		}
	}
}

// courses finds what each group has in all, and after each number of hand-overs. What is
// given back first is there from the beginning.
func (t *tracing) courses() {
	t.size = map[string]int64{}
	away := map[recording.Block]bool{}
	for b, group := range t.groups {
		t.size[group] += b.Bytes
	}
	now := maps.Clone(t.size)
	met := map[recording.Block]bool{}
	for i := range t.done {
		for _, b := range t.done[i].Blocks {
			if !met[b] && t.done[i].Do == recording.Resume {
				away[b] = true
				now[t.groups[b]] -= b.Bytes
			}
			met[b] = true
		}
	}
	t.held = []map[string]int64{maps.Clone(now)}
	for i := range t.done {
		for _, b := range t.done[i].Blocks {
			switch pause := t.done[i].Do == recording.Pause; {
			case pause && !away[b]:
				now[t.groups[b]] -= b.Bytes
			case !pause && away[b]:
				now[t.groups[b]] += b.Bytes
			}
			away[b] = t.done[i].Do == recording.Pause
		}
		t.held = append(t.held, maps.Clone(now))
	}
}

// status is what is held at a time, after n hand-overs.
func (t *tracing) status(n int, at time.Time) *state.Status {
	s := &state.Status{}
	used := max(t.base, 0)
	for _, l := range t.check.traced.at(at, false) {
		used += l.Bytes
	}
	for _, group := range slices.Sorted(maps.Keys(t.size)) {
		held := t.held[n][group]
		used += held
		s.Tags = append(s.Tags, state.Tag{Name: group, Devices: []state.Share{{Device: t.check.Device, Bytes: t.size[group], Held: held}}})
	}
	s.Devices = []state.Device{{Index: t.check.Device, Total: t.check.Total, Free: t.check.Total - used}}
	return s
}

// log is the trace as the library would have written it.
func (t *tracing) log(pid int) *history.Log {
	log := &history.Log{PID: pid}
	for i := range t.done {
		h := &t.done[i]
		var groups []string
		for _, b := range h.Blocks {
			if g := t.groups[b]; !slices.Contains(groups, g) {
				groups = append(groups, g)
			}
		}
		slices.Sort(groups)
		step := state.Step{Do: string(h.Do), Tag: strings.Join(groups, ", ")}
		s := history.Step{Step: step, Began: t.at(h.Began), Ended: t.at(h.Ended)}
		s.Before, s.After = t.status(i, s.Began), t.status(i+1, s.Ended)
		s.After.Did = &state.Did{Step: step, Seconds: h.Ended - h.Began, Count: int64(i) + 1}
		if i > 0 {
			s.Before.Did = log.Steps[i-1].After.Did
		}
		log.Steps = append(log.Steps, s)
	}
	return log
}

// usageBetween returns what was used at the samples between two hand-overs, after n of them.
func (t *tracing) usageBetween(n int, from, to time.Time) (out []Split) {
	l := &t.check.traced
	i, _ := slices.BinarySearchFunc(l.times, from, time.Time.Compare)
	for ; i < len(l.times) && l.times[i].Before(to); i++ {
		if m, ok := t.check.moment(l.times[i], t.status(n, l.times[i]), nil); ok {
			out = append(out, m.split)
		}
	}
	return out
}

// named gives each group the component of the plan that is most like it in size, if one is
// within a factor of two and no name states another.
func (t *tracing) named(p *rl.Phases, given map[string]string) map[string]string {
	out := maps.Clone(given)
	if out == nil {
		out = map[string]string{}
	}
	type pair struct {
		group, component string
		difference       float64
	}
	var pairs []pair
	for group, n := range t.size {
		for _, one := range p.Components {
			if apart := distance(n, one.Size); handed(one.Name) && apart <= math.Ln2 {
				pairs = append(pairs, pair{group, one.Name, apart})
			}
		}
	}
	sorts.By(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.difference, b.difference), strings.Compare(a.group, b.group), strings.Compare(a.component, b.component))
	})
	taken := slices.Collect(maps.Values(out))
	var by []string
	for _, one := range pairs {
		if out[one.group] == "" && !slices.Contains(taken, one.component) {
			out[one.group] = one.component
			taken = append(taken, one.component)
			by = append(by, fmt.Sprintf("%s is taken for %s", one.group, one.component))
		}
	}
	if slices.Sort(by); len(by) > 0 {
		t.check.Notes = append(t.check.Notes, strings.Join(by, ", ")+", by size (--tag GROUP=COMPONENT sets it)")
	}
	return out
}

// handed reports whether a component can be memory that is given back and taken again.
func handed(component string) bool {
	return component != "contexts and NCCL" && component != "activations"
}

// distance is the logarithm of the factor between a size and a range.
func distance(n int64, r plan.Range) float64 {
	switch {
	case n <= 0 || r.High <= 0:
		return math.Inf(1)
	case n < r.Low:
		return math.Log(float64(r.Low) / float64(n))
	case n > r.High:
		return math.Log(float64(n) / float64(r.High))
	}
	return 0
}

// dropTraced takes what the log of a trace has as groups out of what libraries have; what is
// left of their owners was never handed over.
func (l *libraries) dropTraced(t *tracing) {
	owners := map[string]bool{}
	for _, h := range t.done {
		owners[cmp.Or(h.Owner, "unknown")] = true
	}
	n := 0
	for i, at := range l.times {
		for n < len(t.done) && !t.at(t.done[n].Ended).After(at) {
			n++
		}
		held := total(t.held[n])
		var rest []recording.GPUOwner
		for _, o := range l.held[i] {
			if o.Memory == event.Device.String() && owners[o.Owner] {
				from := min(held, o.LiveBytes)
				held -= from
				// Before the first one it is not known what was there.
				if o.LiveBytes -= from; n == 0 || o.LiveBytes < minGrowth {
					continue
				}
				o.Owner += ", never handed over"
			}
			rest = append(rest, o)
		}
		l.held[i] = rest
	}
}
