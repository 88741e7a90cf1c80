package api

import (
	"maps"
	"slices"

	"strandline/finding"
	"strandline/judge/handovers"
)

// HandOvers is the document of `strandline plan rl --check`.
type HandOvers struct {
	Schema    string            `json:"schema"`
	Path      string            `json:"path"`
	Processes []HandOverProcess `json:"processes"`
}

// HandOverProcess is what a process did to its pausable memory, beside the plan.
type HandOverProcess struct {
	PID       int               `json:"pid"`
	Device    int               `json:"device"`      // as CUDA counts in the process
	Total     int64             `json:"total_bytes"` // 0 if it is not known
	ByCalls   bool              `json:"by_calls"`    // it is of a trace of the driver's calls
	Way       string            `json:"way"`
	Tags      []HandOverTag     `json:"tags"`
	Phases    []HandOverPhase   `json:"phases"`
	Unplanned []HandOverTime    `json:"unplanned"`
	HandOvers []HandOver        `json:"hand_overs"`
	Speed     *float64          `json:"host_link"` // bytes per second
	Behind    *HandOverBehind   `json:"behind"`
	Findings  []finding.Finding `json:"findings"`
	Notes     []string          `json:"notes"`
}

// HandOverTag is a tag, and the components of the plan that it is.
type HandOverTag struct {
	Tag        string   `json:"tag"`
	Components []string `json:"components"`
}

// HandOverPhase is a phase of the plan. Measured is nil if it was not seen.
type HandOverPhase struct {
	Name     string        `json:"name"`
	Low      int64         `json:"low_bytes"`
	High     int64         `json:"high_bytes"`
	Tags     []PlannedPart `json:"tags"`
	Beyond   int64         `json:"beyond_bytes"`
	Measured *HandOverTime `json:"measured"`
}

// HandOverTime is a time between hand-overs, of all cycles together.
type HandOverTime struct {
	Active  []string      `json:"active"`
	Times   int           `json:"times"`
	Seconds float64       `json:"seconds"`
	Used    [2]int64      `json:"used_bytes"` // the least and the most
	Most    HandOverSplit `json:"most"`
}

// HandOverSplit is whose the memory of a device is. What is not known is nil.
type HandOverSplit struct {
	Used    int64          `json:"used_bytes"`
	Tags    []HandOverHeld `json:"tags"`
	Tensors *int64         `json:"tensors_bytes"`
	Cache   *int64         `json:"cache_bytes"`
	Pools   *int64         `json:"pools_bytes"`
	Rest    int64          `json:"rest_bytes"`
	// Libraries have part of the rest; nil if no trace shows them.
	Libraries []HandOverLibrary `json:"libraries"`
}

// HandOverLibrary is what a library has of a device by its calls of the driver.
type HandOverLibrary struct {
	Library string `json:"library"`
	Bytes   int64  `json:"bytes"`
}

// HandOverHeld is what a tag has of a device.
type HandOverHeld struct {
	Tag  string `json:"tag"`
	Held int64  `json:"held_bytes"`
}

// HandOver is what was done to a tag.
type HandOver struct {
	Do      string  `json:"do"`
	Tag     *string `json:"tag"` // nil for all
	Times   int     `json:"times"`
	Refused int     `json:"refused"`
	Bytes   *int64  `json:"copied_bytes"` // the median; nil if it is not known
	Moved   int64   `json:"moved_bytes"`  // that left the device or came to it, the median
	Seconds float64 `json:"seconds"`
	Longest float64 `json:"longest_seconds"`
}

// HandOverBehind is what is used while the fewest tags are active.
type HandOverBehind struct {
	Active []string      `json:"active"`
	Split  HandOverSplit `json:"split"`
	Low    int64         `json:"planned_low_bytes"` // of contexts and NCCL
	High   int64         `json:"planned_high_bytes"`
}

// NewHandOvers is logs of pausable memory beside a plan.
func NewHandOvers(path string, checks []*handovers.Check) *HandOvers {
	d := &HandOvers{Schema: PlanSchema, Path: path, Processes: []HandOverProcess{}}
	for _, c := range checks {
		d.Processes = append(d.Processes, handOverProcess(c))
	}
	return d
}

func handOverProcess(c *handovers.Check) HandOverProcess {
	p := HandOverProcess{PID: c.PID, Device: c.Device, Total: c.Total, ByCalls: c.ByCalls, Way: c.Way, Speed: given(max(c.Speed, 0)), Findings: c.Findings, Notes: list(c.Notes),
		Tags: []HandOverTag{}, Phases: []HandOverPhase{}, Unplanned: []HandOverTime{}, HandOvers: []HandOver{}}
	for _, t := range c.Tags {
		p.Tags = append(p.Tags, HandOverTag{Tag: t.Name, Components: list(t.Components)})
	}
	for i := range c.Phases {
		ph := &c.Phases[i]
		one := HandOverPhase{Name: ph.Name, Low: ph.Planned.Low, High: ph.Planned.High, Beyond: ph.Excess(), Tags: []PlannedPart{}}
		for _, name := range slices.Sorted(maps.Keys(ph.Tags)) {
			one.Tags = append(one.Tags, partOf(name, ph.Tags[name], ""))
		}
		if ph.Measured != nil {
			m := handOverTime(ph.Measured)
			one.Measured = &m
		}
		p.Phases = append(p.Phases, one)
	}
	for i := range c.Unplanned {
		p.Unplanned = append(p.Unplanned, handOverTime(&c.Unplanned[i]))
	}
	for i := range c.HandOvers {
		h := &c.HandOvers[i]
		one := HandOver{Do: h.Do, Tag: given(h.Tag), Times: h.Times, Refused: h.Refused, Moved: h.Moved, Seconds: h.Seconds, Longest: h.Longest}
		if !c.ByCalls {
			one.Bytes = &h.Bytes
		}
		p.HandOvers = append(p.HandOvers, one)
	}
	if b := c.Behind; b != nil {
		p.Behind = &HandOverBehind{Active: list(b.Active), Split: handOverSplit(&b.Least), Low: b.Planned.Low, High: b.Planned.High}
	}
	return p
}

func handOverTime(m *handovers.Measured) HandOverTime {
	return HandOverTime{Active: list(m.Active), Times: m.Times, Seconds: m.Seconds, Used: m.Used, Most: handOverSplit(&m.Most)}
}

func handOverSplit(s *handovers.Split) HandOverSplit {
	out := HandOverSplit{Used: s.Used, Tags: []HandOverHeld{}, Tensors: s.Tensors, Cache: s.Cache, Pools: s.Pools, Rest: s.Rest}
	for _, name := range slices.Sorted(maps.Keys(s.Tags)) {
		out.Tags = append(out.Tags, HandOverHeld{Tag: name, Held: s.Tags[name]})
	}
	if s.Libraries != nil {
		out.Libraries = []HandOverLibrary{}
	}
	for _, l := range s.Libraries {
		out.Libraries = append(out.Libraries, HandOverLibrary{Library: l.Name, Bytes: l.Bytes})
	}
	return out
}
