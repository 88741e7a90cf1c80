package state

import (
	"fmt"
	"maps"
	"slices"
)

// A Step is a pause or resume of a tag, or of all.
type Step struct {
	Do  string // Pause or Resume
	Tag string
	All bool
}

func (s Step) String() string {
	if s.All {
		return s.Do + " all"
	}
	return s.Do + " " + s.Tag
}

// A Planned is what a step would do.
type Planned struct {
	Step
	// Saved is what would be copied to backups, and Restored what would be copied back.
	Saved, Restored int64
	Devices         []PlannedDevice

	taken map[int]int64
}

// Fits reports whether the memory that the step takes is free.
func (p *Planned) Fits() bool {
	return !slices.ContainsFunc(p.Devices, func(d PlannedDevice) bool { return d.Free < 0 })
}

// A PlannedDevice is a device after a step that changes what is taken of it.
type PlannedDevice struct {
	Device int
	Taken  int64 // by the step; negative is given back
	// Free is what is free afterwards, beyond the margin; negative is what is missing.
	Free  int64
	Total int64
}

// Plan computes what steps would do, one after the other, if nobody else took or gave
// back memory meanwhile. It goes on after a step that does not fit as if it had not been
// tried. The error is a tag that the process does not have.
func (s *Status) Plan(steps []Step) ([]Planned, error) {
	now := make(map[string][]Share, len(s.Tags))
	for i := range s.Tags {
		now[s.Tags[i].Name] = slices.Clone(s.Tags[i].Devices)
	}
	devices := slices.Clone(s.Devices)
	for i := range devices {
		devices[i].Free -= s.Margin
	}
	var out []Planned
	for _, step := range steps {
		if _, known := now[step.Tag]; !known && !step.All {
			return nil, fmt.Errorf("there is no tag %s", step.Tag)
		}
		p, after := step.on(now)
		for i := range devices {
			d := &devices[i]
			if n := p.taken[d.Index]; n != 0 {
				p.Devices = append(p.Devices, PlannedDevice{d.Index, n, d.Free - n, d.Total})
			}
		}
		if p.Fits() {
			for i := range devices {
				devices[i].Free -= p.taken[devices[i].Index]
			}
			maps.Copy(now, after)
		}
		out = append(out, p)
	}
	return out, nil
}

// on is what a step does to tags, and what they are afterwards.
func (s Step) on(tags map[string][]Share) (p Planned, after map[string][]Share) {
	p, after = Planned{Step: s, taken: map[int]int64{}}, map[string][]Share{}
	for name, shares := range tags {
		if !s.All && name != s.Tag {
			continue
		}
		shares = slices.Clone(shares)
		for i := range shares {
			h := &shares[i]
			switch {
			case s.Do == Pause && h.Held > 0:
				p.taken[h.Device] -= h.Held
				p.Saved += h.Keep
				h.Held, h.Keep, h.Backup = 0, 0, h.Backup+h.Keep
			case s.Do == Resume && h.Held < h.Bytes:
				p.taken[h.Device] += h.Bytes - h.Held
				p.Restored += h.Backup
				h.Held, h.Keep, h.Backup = h.Bytes, h.Keep+h.Backup, 0
			}
		}
		after[name] = shares
	}
	return p, after
}
