package pauses

import (
	"fmt"
	"maps"
	"slices"

	"strandline/pausable/history"
	"strandline/pausable/state"
)

// Name is that of a process: its rank, or its number.
func Name(rank *int, pid int) string {
	if rank != nil {
		return fmt.Sprintf("rank %d", *rank)
	}
	return fmt.Sprintf("process %d", pid)
}

// maxMoments bounds a course that is watched: those of some hundred cycles.
const maxMoments = 1 << 10

// Add adds a moment, and reports whether it differs: one in which the same tags are active only
// lowers the last.
func (c *Course) Add(m Moment) (differs bool) {
	if n := len(c.Moments); n > 0 && sameTags(c.Moments[n-1].Tags, m.Tags) {
		last := &c.Moments[n-1]
		last.again++
		for _, p := range []struct{ to, from **int64 }{{&last.Tensors, &m.Tensors}, {&last.Cache, &m.Cache}, {&last.Pools, &m.Pools}, {&last.Other, &m.Other}} {
			if *p.to == nil || *p.from != nil && **p.from < **p.to {
				*p.to = *p.from
			}
		}
		return false
	}
	if len(c.Moments) == maxMoments {
		c.Moments = slices.Delete(c.Moments, 0, 1)
	}
	c.Moments = append(c.Moments, m)
	return true
}

// Divide makes the course one whose moments have pools apart, and forgets those levels that have not.
func (c *Course) Divide() {
	if c.Divided {
		return
	}
	c.Divided = true
	for i := range c.Moments {
		c.Moments[i].Tensors, c.Moments[i].Cache = nil, nil
	}
}

func sameTags(a, b map[string]Share) bool {
	return maps.EqualFunc(a, b, func(x, y Share) bool { return x.Bytes == y.Bytes && (x.Held > 0) == (y.Held > 0) })
}

// logged is the job of logs: those that are given together are of one.
const logged = "logs"

// Logged are the courses of a log, one of each device with pausable memory.
func Logged(log *history.Log) (out []Course) {
	at := map[int]int{}
	add := func(s *state.Status, outside []history.Outside) {
		for i := range s.Devices {
			d := &s.Devices[i]
			m := momentOf(s, d.Index, d.Total-d.Free)
			for k := range outside {
				if o := &outside[k]; o.Device == d.Index {
					m.outside(o.Tensors, o.Cache, o.Split, o.Pools)
				}
			}
			if len(m.Tags) == 0 {
				continue
			}
			k, ok := at[d.Index]
			if !ok {
				k, at[d.Index] = len(out), len(out)
				out = append(out, Course{Name: Name(log.Rank, log.PID), Device: d.Index, Job: logged})
			}
			out[k].Moments = append(out[k].Moments, m)
		}
	}
	for i := range log.Steps {
		add(log.Steps[i].Before, log.Steps[i].Prior)
		add(log.Steps[i].After, log.Steps[i].Outside)
	}
	return out
}

// Course is what a process has of a device now.
func (p *Process) Course(device int) Course {
	m := momentOf(p.Status, device, -1)
	for i := range p.Seen {
		if s := &p.Seen[i]; s.Device == device {
			if s.Used != nil {
				m.Other = new(max(*s.Used-m.held(), 0))
			}
			if o := s.Outside; o != nil {
				m.outside(o.Tensors, o.Cache, o.Split, o.Pools)
				if m.Other != nil {
					*m.Other = max(*m.Other-o.Expandable, 0)
				}
			}
		}
	}
	return Course{Name: p.Name, Device: device, Moments: []Moment{m}}
}

// momentOf is what a process has of a device, of which used bytes are in use; -1 if that is unknown.
func momentOf(s *state.Status, device int, used int64) Moment {
	m := Moment{Tags: map[string]Share{}}
	for i := range s.Tags {
		for _, share := range s.Tags[i].Devices {
			if share.Device == device {
				m.Tags[s.Tags[i].Name] = Share{Bytes: share.Bytes, Held: share.Held}
			}
		}
	}
	if used >= 0 {
		m.Other = new(max(used-m.held(), 0))
	}
	return m
}

func (m *Moment) held() (n int64) {
	for _, share := range m.Tags {
		n += share.Held
	}
	return n
}

// outside adds what PyTorch has in no region, which is no more of others.
func (m *Moment) outside(tensors, cache, split, pools int64) {
	m.Tensors, m.Cache, m.Pools = &tensors, new(max(cache-split, 0)), &pools
	if m.Other != nil {
		*m.Other = max(*m.Other-tensors-cache-pools, 0)
	}
}
