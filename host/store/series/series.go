// Package series is the file in which a watch keeps its samples, for days: appended to
// and never rewritten but to thin it, readable while it is written and after any end,
// and bounded in size.
//
// Its form is that of package journal. A frame holds a header, then a line for each
// sample, with the processes that changed since the line before; the first one has all.
// Each line is flushed to the file by itself. docs/recordings.md describes the format.
package series

import (
	"errors"
	"io"
	"reflect"
	"time"

	"strandline/host/sampling/sample"
	"strandline/host/store/journal"
	"strandline/internal/secret"
	"strandline/internal/sorts"
)

// formerSchema is that of the files of earlier versions, in which Of is missing.
const formerSchema = "strandline.recording/2"

// of states in the header that the file is of a watch.
const of = "watch"

// A header is the first line of each frame.
type header struct {
	Schema string `json:"schema"`
	Of     string `json:"of,omitempty"`
	// Run is the moment at which the watch began that wrote the frame, by the clock of
	// the machine in Unix nanoseconds: another watch can go on with a file.
	Run int64 `json:"run"`
}

// line is a sample less what is as in the line before.
type line struct {
	Time      time.Time        `json:"time"`
	Seconds   float64          `json:"at_seconds"`
	Processes []sample.Process `json:"processes,omitempty"` // that are new or changed
	Ended     []sample.ID      `json:"ended,omitempty"`
	// Rest is the devices, groups and the machine; nil if they are as before.
	Rest *rest `json:"rest,omitempty"`
	// Load is that of the engine; nil if it is as before, or none was asked.
	Load *sample.Load `json:"load,omitempty"`
	// Over is the control groups after the last processes have ended; such a line states
	// nothing else.
	Over []sample.Group `json:"over,omitzero"`
}

type rest struct {
	Devices []sample.Device `json:"devices"`
	Note    string          `json:"devices_note,omitempty"`
	Groups  []sample.Group  `json:"groups"`
	Machine *sample.Machine `json:"machine"`
}

// Is reports whether a file begins as a recording of a watch does.
func Is(r io.Reader) bool { return journal.Is(r, journal.Watch) }

// ErrOther is the error for a file that is something else, or of a later version.
var ErrOther = errors.New("this is not the recording of a watch, or one of a version that is not known")

// changes is a sample as it differs from the state, which it becomes.
func (st *state) changes(s *sample.Sample) line {
	l := line{Time: s.Time, Seconds: s.Seconds}
	if s.Over != nil {
		l.Over = s.Over
		return l
	}
	live := make(map[sample.ID]bool, len(s.Processes))
	for i := range s.Processes {
		p := &s.Processes[i]
		id := p.ID()
		live[id] = true
		if before, ok := st.processes[id]; !ok || otherHost(before.Host, p.Host) || !reflect.DeepEqual(before, *p) {
			l.Processes = append(l.Processes, *p)
			st.processes[id] = *p
		}
	}
	for id := range st.processes {
		if !live[id] {
			l.Ended = append(l.Ended, id)
			delete(st.processes, id)
		}
	}
	sorts.By(l.Ended, compare)
	if now := (rest{s.Devices, s.DevicesNote, s.Groups, s.Machine}); st.rest == nil || !reflect.DeepEqual(*st.rest, now) {
		st.rest = &now
		l.Rest = &now
	}
	if s.Load != nil && !reflect.DeepEqual(st.load, s.Load) {
		st.load, l.Load = s.Load, s.Load
	}
	return l
}

// otherHost reports whether two are different, which mostly is what changed of a process.
func otherHost(a, b *sample.Host) bool { return a != nil && b != nil && *a != *b }

// state is what the lines of a frame add up to.
type state struct {
	processes map[sample.ID]sample.Process
	parts     int // of all processes
	rest      *rest
	load      *sample.Load
}

func newState() *state { return &state{processes: map[sample.ID]sample.Process{}} }

// apply takes in a line, and makes a sample of it, for [state.fill] to complete.
func (st *state) apply(l *line) *sample.Sample {
	if l.Over != nil {
		return &sample.Sample{Schema: sample.Schema, Time: l.Time, Seconds: l.Seconds, Over: l.Over}
	}
	for _, id := range l.Ended {
		st.parts -= partsOf(st.processes[id])
		delete(st.processes, id)
	}
	for _, p := range l.Processes {
		st.parts += partsOf(p) - partsOf(st.processes[p.ID()])
		if before, ok := st.processes[p.ID()]; !ok || before.Command != p.Command {
			p.Command = secret.Line(p.Command) // versions before this one kept secrets
		}
		st.processes[p.ID()] = p
	}
	if l.Rest != nil {
		st.rest = l.Rest
	}
	if l.Load != nil {
		st.load = l.Load
	}
	return &sample.Sample{Schema: sample.Schema, Time: l.Time, Seconds: l.Seconds}
}

// partsOf is how many parts a process has that are followed for themselves.
func partsOf(p sample.Process) int { return len(p.Devices) + len(p.Pausable) }

// subjects is how many processes, parts of them, devices and control groups there are.
func (st *state) subjects() int {
	n := 1 + len(st.processes) + st.parts
	if st.rest != nil {
		n += len(st.rest.Devices) + len(st.rest.Groups)
	}
	return n
}

// fill gives a sample the whole state.
func (st *state) fill(s *sample.Sample) {
	s.Processes = make([]sample.Process, 0, len(st.processes))
	s.Devices, s.Groups, s.Load = []sample.Device{}, []sample.Group{}, st.load
	for _, p := range st.processes {
		s.Processes = append(s.Processes, p)
	}
	sorts.By(s.Processes, func(a, b sample.Process) int { return compare(a.ID(), b.ID()) })
	if r := st.rest; r != nil {
		s.Devices, s.DevicesNote, s.Groups, s.Machine = r.Devices, r.Note, r.Groups, r.Machine
	}
}
