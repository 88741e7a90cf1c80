// Package handovers compares what a program did to its pausable memory with the plan of a
// step of reinforcement learning: what each tag held in each phase, how long the
// hand-overs took, what stayed behind, and whose it was.
package handovers

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"strandline/finding"
	"strandline/host/store/recording"
	"strandline/internal/sorts"
	"strandline/pausable/history"
	"strandline/pausable/state"
	"strandline/plan"
	"strandline/plan/rl"
)

// A Check is a log beside a plan.
type Check struct {
	PID    int
	Device int // as CUDA counts in the process
	Total  int64
	Way    string // of the plan
	Tags   []Tag
	Phases []Phase
	// Unplanned are the phases that no phase of the way is like.
	Unplanned []Measured
	HandOvers []HandOver
	Speed     float64    // of the link to the host, bytes a second; 0 if it is not known
	Behind    *Remainder // nil if there was no time at which nothing was active
	Findings  []finding.Finding
	Notes     []string

	// ByCalls is whether all this is of a trace of the driver's calls: what was copied is not
	// known then, and Total may be 0.
	ByCalls bool

	traced libraries
	// within returns what was used between two steps, the first of which is the n-th; nil
	// if only their ends are known.
	within func(n int, from, to time.Time) []Split
}

// A Tag is one of the log, and the components of the plan that it is.
type Tag struct {
	Name       string
	Components []string // none if it is in no plan
}

// A Measured is a time between hand-overs, of all cycles together.
type Measured struct {
	Active  []string // tags, by name
	Times   int
	Seconds float64 // the median
	Used    [2]int64
	Most    Split // when most was used, and when least was
	Least   Split
}

// Split is whose the memory of a device is. Sizes are bytes.
type Split struct {
	Used int64 // by the driver's count
	Tags map[string]int64
	// Tensors, Cache and Pools are PyTorch's, in no region: what tensors use, what none
	// does, and pools of CUDA graphs or the program's own. They are nil if unknown.
	Tensors, Cache, Pools *int64
	Rest                  int64 // contexts, NCCL, kernels, and other processes
	// Libraries are those that have part of the rest by their calls of the driver, the most
	// first; nil if no trace shows them.
	Libraries []Library
}

// Unnamed is the rest without the libraries.
func (s *Split) Unnamed() int64 {
	n := s.Rest
	for _, l := range s.Libraries {
		n -= l.Bytes
	}
	return max(n, 0)
}

// A Phase is one of the plan.
type Phase struct {
	Name     string
	Planned  plan.Range
	Tags     map[string]plan.Range // what is planned of those that are active
	Measured *Measured             // nil if it was not seen
}

// Excess is by how much more was used than is planned, 0 for not.
func (p *Phase) Excess() int64 {
	if p.Measured == nil {
		return 0
	}
	return max(p.Measured.Used[1]-p.Planned.High, 0)
}

// A HandOver is what was done to a tag, of all times together.
type HandOver struct {
	Do, Tag string // no tag is all
	Times   int
	Refused int
	Bytes   int64   // that were copied, the median
	Moved   int64   // bytes that left the device or came to it, the median
	Seconds float64 // the median of those that succeeded
	Longest float64
}

// Rate is in bytes a second, 0 if nothing was copied.
func (h *HandOver) Rate() float64 {
	if h.Seconds == 0 {
		return 0
	}
	return float64(h.Bytes) / h.Seconds
}

// Remainder is what a device has while the fewest tags are active.
type Remainder struct {
	Measured
	Planned plan.Range // contexts and NCCL
}

// New lays a log beside the phases of a plan. Names are the components of tags whose names
// do not say them. A trace of the same process, made with --gpu at that time, names the
// libraries that have what is not PyTorch's; it may be nil.
func New(p *rl.Phases, log *history.Log, device int, names map[string]string, trace *recording.Run) (*Check, error) {
	if len(log.Steps) == 0 {
		return nil, errors.New("nothing was paused or resumed in this log")
	}
	c := newCheck(p, log.PID, device)
	for i := range log.Steps {
		if d := deviceOf(log.Steps[i].After, device); d != nil {
			c.Total = d.Total
		}
	}
	if c.Total == 0 {
		return nil, fmt.Errorf("the log has no figures of device %d", device)
	}
	if err := c.tags(p, log, names); err != nil {
		return nil, err
	}
	if err := c.hear(log, trace); err != nil {
		return nil, err
	}
	c.compare(p, log)
	if log.Full {
		c.Notes = append(c.Notes, "the log ended at its bound of 64 MiB before the process did")
	}
	if log.Cut {
		c.Notes = append(c.Notes, "the last record of the log is not whole: the process was killed, or still runs")
	}
	return c, nil
}

func newCheck(p *rl.Phases, pid, device int) *Check {
	return &Check{PID: pid, Device: device, Speed: p.Speeds.Host, Findings: []finding.Finding{}}
}

// compare lays the steps of a log beside the phases, and judges what stays.
func (c *Check) compare(p *rl.Phases, log *history.Log) {
	times, measured := c.measure(log)
	c.matchWay(p, measured)
	c.handOvers(log)
	c.measureRemainder(p, measured)
	c.judge(times)
}

// Failed reports whether something grows from cycle to cycle, or, strictly, whether a
// phase used more than planned.
func (c *Check) Failed(strict bool) bool {
	return slices.ContainsFunc(c.Findings, func(f finding.Finding) bool { return f.Severity == finding.Problem }) ||
		strict && slices.ContainsFunc(c.Phases, func(p Phase) bool { return p.Excess() > 0 })
}

func deviceOf(s *state.Status, device int) *state.Device {
	for i := range s.Devices {
		if s.Devices[i].Index == device {
			return &s.Devices[i]
		}
	}
	return nil
}

// words are those of tags' names that identify their components; the first that is
// found counts.
var words = []struct {
	word       string
	components []string
}{
	{"kv", []string{"rollout KV cache"}}, {"cache", []string{"rollout KV cache"}}, {"graph", []string{"rollout graphs"}},
	{"optim", []string{"optimizer"}}, {"grad", []string{"gradients"}}, {"critic", []string{"critic"}}, {"ref", []string{"reference weights"}},
	{"train", []string{"trainer weights", "optimizer"}}, {"actor", []string{"trainer weights", "optimizer"}}, {"default", []string{"trainer weights", "optimizer"}},
	{"weight", []string{"rollout weights"}}, {"model", []string{"rollout weights"}}, {"rollout", []string{"rollout weights"}},
}

// tags finds which components of the plan the tags are.
func (c *Check) tags(p *rl.Phases, log *history.Log, names map[string]string) error {
	has := func(name string) bool {
		return slices.ContainsFunc(p.Components, func(one plan.Component) bool { return one.Name == name })
	}
	for i := range log.Steps {
		for k := range log.Steps[i].Before.Tags {
			name := log.Steps[i].Before.Tags[k].Name
			if slices.ContainsFunc(c.Tags, func(t Tag) bool { return t.Name == name }) {
				continue
			}
			t := Tag{Name: name}
			given, ok := names[name]
			switch {
			case ok && !has(given):
				return fmt.Errorf("the plan has no component %q for tag %s", given, name)
			case ok:
				t.Components = []string{given}
			case has(name):
				t.Components = []string{name}
			default:
				for _, w := range words {
					if strings.Contains(strings.ToLower(name), w.word) {
						t.Components = slices.DeleteFunc(slices.Clone(w.components), func(n string) bool { return !has(n) })
						break
					}
				}
			}
			c.Tags = append(c.Tags, t)
		}
	}
	for name := range names {
		if !slices.ContainsFunc(c.Tags, func(t Tag) bool { return t.Name == name }) {
			return fmt.Errorf("the log has no tag %s", name)
		}
	}
	var unknown []string
	for _, t := range c.Tags {
		if len(t.Components) == 0 {
			unknown = append(unknown, t.Name)
		}
	}
	if len(unknown) > 0 {
		c.Notes = append(c.Notes, "no component of the plan is known for "+strings.Join(unknown, ", ")+": --tag TAG=COMPONENT names one")
	}
	return nil
}

// A moment is the memory of the device at one time.
type moment struct {
	active []string
	split  Split
}

func (c *Check) moment(at time.Time, s *state.Status, outside []history.Outside) (m moment, ok bool) {
	d := deviceOf(s, c.Device)
	if d == nil {
		return m, false
	}
	m.split = Split{Used: d.Total - d.Free, Tags: map[string]int64{}}
	m.split.Rest = m.split.Used
	for i := range s.Tags {
		for _, share := range s.Tags[i].Devices {
			if share.Device == c.Device && share.Held > 0 {
				m.active = append(m.active, s.Tags[i].Name)
				m.split.Tags[s.Tags[i].Name] = share.Held
				m.split.Rest -= share.Held
			}
		}
	}
	slices.Sort(m.active)
	if i := slices.IndexFunc(outside, func(o history.Outside) bool { return o.Device == c.Device }); i >= 0 {
		o := outside[i]
		m.split.Tensors, m.split.Cache, m.split.Pools = &o.Tensors, &o.Cache, &o.Pools
		m.split.Rest -= o.Tensors + o.Cache + o.Pools
	}
	m.split.Rest = max(m.split.Rest, 0)
	m.split.Libraries = c.traced.at(at, m.split.Tensors != nil)
	return m, true
}

// A span is the time between two steps.
type span struct {
	first, last Split
	between     []Split
	length      float64 // seconds
}

// measure returns the times between steps, and groups those in which the same tags are
// active.
func (c *Check) measure(log *history.Log) (times map[string][]span, out []Measured) {
	times = map[string][]span{}
	var order []string
	for i := range len(log.Steps) - 1 {
		from, to := &log.Steps[i], &log.Steps[i+1]
		first, ok := c.moment(from.Ended, from.After, from.Outside)
		last, also := c.moment(to.Began, to.Before, to.Prior)
		if !ok || !also {
			continue
		}
		key := strings.Join(last.active, "\x00")
		if times[key] == nil {
			out = append(out, Measured{Active: last.active, Least: first.split, Most: first.split})
			order = append(order, key)
		}
		s := span{first: first.split, last: last.split, length: to.Began.Sub(from.Ended).Seconds()}
		if c.within != nil {
			s.between = c.within(i+1, from.Ended, to.Began)
		}
		times[key] = append(times[key], s)
	}
	for i, key := range order {
		m := &out[i]
		var lengths []float64
		for _, s := range times[key] {
			lengths = append(lengths, s.length)
			for _, split := range append(s.between, s.first, s.last) {
				if split.Used < m.Least.Used {
					m.Least = split
				}
				if split.Used >= m.Most.Used {
					m.Most = split
				}
			}
		}
		m.Least.borrow(times[key])
		m.Times, m.Seconds, m.Used = len(lengths), sorts.Median(lengths), [2]int64{m.Least.Used, m.Most.Used}
	}
	return times, out
}

// matchWay puts what was measured beside the phases of the way that it is most like.
func (c *Check) matchWay(p *rl.Phases, measured []Measured) {
	best := math.MinInt
	for _, o := range p.Outcomes() {
		phases, seen, rest := c.pairPhases(&o, measured)
		// A way that has more of what was seen, and fewer phases that were not.
		if score := 2*seen - len(phases) - len(rest); score > best {
			best, c.Way, c.Phases, c.Unplanned = score, o.Way, phases, rest
		}
	}
}

// pairPhases pairs the phases of a way with the times in which the same components were on
// the device.
func (c *Check) pairPhases(o *rl.Outcome, measured []Measured) (phases []Phase, seen int, rest []Measured) {
	taken := make([]bool, len(measured))
	for _, peak := range o.Peaks {
		ph := Phase{Name: peak.Phase, Planned: peak.Size, Tags: map[string]plan.Range{}}
		for _, t := range c.Tags {
			var size plan.Range
			on := false
			for _, part := range peak.Parts {
				if slices.Contains(t.Components, part.Name) {
					size, on = size.Plus(part.Size), true
				}
			}
			if on {
				ph.Tags[t.Name] = size
			}
		}
		at := -1
		for i := range measured {
			if c.tagsMatch(ph.Tags, measured[i].Active) && (at < 0 || measured[i].Seconds > measured[at].Seconds) {
				at = i
			}
		}
		if at >= 0 {
			ph.Measured, taken[at] = &measured[at], true
			seen++
		}
		phases = append(phases, ph)
	}
	for i := range measured {
		if !taken[i] {
			rest = append(rest, measured[i])
		}
	}
	return phases, seen, rest
}

// tagsMatch reports whether these are the tags that are active, of those that are planned. If
// none is, no phase can be told from another.
func (c *Check) tagsMatch(planned map[string]plan.Range, active []string) bool {
	known := false
	for _, t := range c.Tags {
		_, on := planned[t.Name]
		if len(t.Components) > 0 && on != slices.Contains(active, t.Name) {
			return false
		}
		known = known || len(t.Components) > 0
	}
	return known
}

// handOvers groups the steps by what they did.
func (c *Check) handOvers(log *history.Log) {
	type figures struct {
		bytes, moved, seconds []float64
		refused               int
	}
	var order []state.Step
	all := map[state.Step]*figures{}
	for i := range log.Steps {
		s := &log.Steps[i]
		f := all[s.Step]
		if f == nil {
			f = &figures{}
			all[s.Step] = f
			order = append(order, s.Step)
		}
		if s.Kind != 0 {
			f.refused++
			continue
		}
		// What is paused already is left as it is, and no hand-over.
		if did := s.After.Did; did != nil && (s.Before.Did == nil || did.Count > s.Before.Did.Count) {
			moved := s.After.Held(c.Device) - s.Before.Held(c.Device)
			f.bytes, f.seconds = append(f.bytes, float64(did.Copied)), append(f.seconds, did.Seconds)
			f.moved = append(f.moved, math.Abs(float64(moved)))
		}
	}
	for _, step := range order {
		f := all[step]
		if len(f.seconds)+f.refused == 0 {
			continue
		}
		h := HandOver{Do: step.Do, Tag: step.Tag, Times: len(f.seconds), Refused: f.refused}
		h.Seconds, h.Bytes, h.Moved = sorts.Median(f.seconds), int64(sorts.Median(f.bytes)), int64(sorts.Median(f.moved))
		if len(f.seconds) > 0 {
			h.Longest = slices.Max(f.seconds)
		}
		c.HandOvers = append(c.HandOvers, h)
	}
}

// measureRemainder is what was used while the fewest tags were active.
func (c *Check) measureRemainder(p *rl.Phases, measured []Measured) {
	held := func(m *Measured) (n int64) {
		for _, size := range m.Least.Tags {
			n += size
		}
		return n
	}
	if len(measured) == 0 {
		return
	}
	at := slices.MinFunc(measured, func(a, b Measured) int { return cmp.Compare(held(&a), held(&b)) })
	c.Behind = &Remainder{Measured: at}
	for _, one := range p.Components {
		if one.Name == "contexts and NCCL" {
			c.Behind.Planned = one.Size
		}
	}
}
