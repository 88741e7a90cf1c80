package engine

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"strandline/host/sampling/sample"
)

// What a watch knows beside the subjects that it lists: the load of an engine, and the
// mappings of processes that grow. Each has a course, which is asked for as theirs are.

// loadKey is the key of the engine's course.
const loadKey = "load"

// The parts of an engine's load. The share of the KV cache is in millionths.
const (
	runningPart = "running requests"
	waitingPart = "waiting requests"
	cachePart   = "KV cache in use"
)

// engine adds the load of an engine, as far as it is known.
func (w *Watch) engine(s *sample.Sample, gap bool) {
	l := s.Load
	if l == nil {
		return
	}
	if w.load == nil {
		w.load = &subject{key: loadKey}
	}
	w.load.label = cmp.Or(l.Engine, w.load.label)
	w.load.facts = [][2]string{{"note", cut(l.Note)}}
	m := moment{s: w.load}
	m.known(runningPart, l.Running)
	m.known(waitingPart, l.Waiting)
	if l.KVCache != nil {
		m.put(cachePart, cachePart, int64(*l.KVCache*1e6+0.5), true)
	}
	if len(m.state) > 0 {
		w.take(&m, s.Seconds, gap)
	}
}

// A mapped process is one whose mappings were looked at.
type mapped struct {
	subject
	looked float64 // between the looks that are known
	places []place
}

// A place is a mapping, which can grow and join its neighbors.
type place struct {
	start, end uint64
	part       int
	bytes      int64 // 0 if it is not among those that grew most
}

// mappings adds those of processes that grow. What is not known to grow is in the total
// alone.
func (w *Watch) mappings(s *sample.Sample, gap bool) {
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.Grown == nil || len(p.Grown.Mappings) == 0 || p.Host == nil {
			continue
		}
		x := w.mapped[p.ID()]
		if x == nil {
			x = &mapped{subject: subject{key: processKey(p, "mappings")}}
			w.mapped[p.ID()] = x
		}
		if x.looked != p.Grown.Seconds {
			x.looked = p.Grown.Seconds
			x.look(p.Grown.Mappings)
		}
		m := moment{s: &x.subject}
		var known int64
		for _, place := range x.places {
			if place.bytes > 0 {
				m.state = append(m.state, share{place.part, place.bytes})
				known += place.bytes
			}
		}
		m.total = max(p.Host.Resident(), known)
		m.largest()
		w.take(&m, s.Seconds, gap)
	}
}

// look takes the mappings of a look. One that overlaps an earlier one is that.
func (x *mapped) look(now []sample.Mapping) {
	for i := range x.places {
		x.places[i].bytes = 0
	}
	for _, m := range now {
		found := false
		for i := range x.places {
			p := &x.places[i]
			if found = p.bytes == 0 && m.Start < p.end && p.start < m.End; found {
				p.start, p.end, p.bytes = m.Start, m.End, m.Resident
				break
			}
		}
		if found {
			continue
		}
		name := strings.Trim(path.Base(m.Name), "[]")
		if m.Name == "" || name == m.Kind {
			name = ""
		}
		if n := x.part(m.Start, strings.TrimSpace(fmt.Sprintf("%x %s %s", m.Start, m.Kind, cut(name))), false); n >= 0 {
			x.places = append(x.places, place{m.Start, m.End, n, m.Resident})
		}
	}
}
