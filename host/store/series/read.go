package series

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"strandline/host/sampling/sample"
	"strandline/host/store/journal"
	"strandline/internal/budget"
)

func compare(a, b sample.ID) int {
	return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Started, b.Started))
}

// Read gives the samples of a recording to take, in order. Their Seconds count on over
// the watches that wrote it. What cannot be read is left out, and partial states why; the
// end of a frame that is still being written, or whose watch was killed, does not count.
// An error of take ends the reading.
func Read(r io.Reader, take func(*sample.Sample) error) (partial, err error) {
	in, b := budget.Reader(r, budget.Packed)
	samples, err := readAll(in, b, take, func(why error) { partial = cmp.Or(partial, why) })
	if samples == 0 && err == nil {
		return nil, cmp.Or(b.Err(), ErrOther)
	}
	return partial, err
}

// readAll is [Read] that reports each part that cannot be read when it comes to it, and
// counts the samples. The budget is that of what r reads.
func readAll(r io.Reader, b *budget.Budget, take func(*sample.Sample) error, unreadable func(why error)) (samples int, err error) {
	j := &joiner{take: take, unreadable: unreadable, subjects: b.Another()}
	if err = journal.Read(r, journal.Watch, b, j); err != nil {
		return j.samples, err
	}
	return j.samples, j.end()
}

// subjectBytes is the cost of a process, a device or a control group of one sample to
// whoever takes it, as its time is like that of so many bytes.
const subjectBytes = 64

// joiner makes samples of lines, and puts the times of several watches behind each other.
type joiner struct {
	take       func(*sample.Sample) error
	unreadable func(why error)

	header  header
	state   *state
	run     int64
	offset  float64
	last    *sample.Sample
	samples int

	// A line has what changed, a sample everything. Samples that would cost more than the
	// lines account for are passed over, but for the last.
	subjects   *budget.Budget
	lastPassed *sample.Sample // the last that was passed over; nil once one is taken
	passed     int
}

// errFigures is why the rest of a frame is left out.
var errFigures = errors.New("its figures cannot be those of memory")

// plausible reports whether the sizes of a line can be added up.
func (l *line) plausible() bool {
	const maxBytes = 1 << 48 // bytes, of one thing
	ok := func(sizes ...*int64) bool {
		return !slices.ContainsFunc(sizes, func(n *int64) bool { return n != nil && (*n > maxBytes || *n < -maxBytes) })
	}
	for i := range l.Processes {
		p := &l.Processes[i]
		if h := p.Host; h != nil && !ok(&h.Anonymous, &h.File, &h.Shared, &h.Swapped, &h.Pinned) {
			return false
		}
		for k := range p.Devices {
			if d := &p.Devices[k]; !ok(d.Used, d.Allocated, d.Cached, d.Other) {
				return false
			}
		}
	}
	if l.Rest == nil {
		return true
	}
	for i := range l.Rest.Devices {
		d := &l.Rest.Devices[i]
		if !ok(d.Used, d.Free, d.Total, d.Reserved, d.Unowned, d.Remainder) || slices.ContainsFunc(d.Processes, func(h sample.Holding) bool { return !ok(h.Used) }) {
			return false
		}
	}
	m := l.Rest.Machine
	return (m == nil || ok(&m.Total, &m.Available)) && !slices.ContainsFunc(l.Rest.Groups, func(g sample.Group) bool { return !ok(g.Used) })
}

// clip keeps the beginnings of names.
func (l *line) clip() {
	for i := range l.Processes {
		p := &l.Processes[i]
		journal.Clip(&p.Name, &p.Command, &p.Group, &p.Pod, &p.Job, &p.Actor)
		for k := range p.Pausable {
			journal.Clip(&p.Pausable[k].Tag)
		}
	}
	if l.Rest != nil {
		journal.Clip(&l.Rest.Note)
		for i := range l.Rest.Devices {
			journal.Clip(&l.Rest.Devices[i].Name)
		}
		for i := range l.Rest.Groups {
			journal.Clip(&l.Rest.Groups[i].Name)
		}
	}
	for i := range l.Over {
		journal.Clip(&l.Over[i].Name)
	}
}

func (j *joiner) Unreadable(why error) { j.unreadable(why) }

func (j *joiner) Header(text []byte) (bad error) {
	j.header, j.state = header{}, newState()
	if json.Unmarshal(text, &j.header) != nil || j.header.Schema != formerSchema && (j.header.Schema != journal.Schema || j.header.Of != of) {
		return ErrOther
	}
	return nil
}

func (j *joiner) Line(text []byte) (bad, err error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return err, nil
	}
	if !l.plausible() {
		return errFigures, nil
	}
	l.clip()
	s := j.state.apply(&l)
	j.place(s)
	if s.Over != nil {
		return nil, errors.Join(j.takeLate(), j.take(s))
	}
	if j.subjects.Spend(subjectBytes*j.state.subjects(), "processes of samples") != nil {
		j.lastPassed = s
		j.passed++
		return nil, nil
	}
	j.lastPassed = nil
	j.state.fill(s)
	return nil, j.take(s)
}

// takeLate gives the last sample that was passed over, if none came after it.
func (j *joiner) takeLate() error {
	s := j.lastPassed
	if s == nil {
		return nil
	}
	j.lastPassed = nil
	j.passed--
	j.state.fill(s)
	return j.take(s)
}

// end gives what is due when all was read.
func (j *joiner) end() error {
	err := j.takeLate()
	if j.passed > 0 {
		j.unreadable(fmt.Errorf("%d of %d samples: each has more processes than the size of the file accounts for", j.passed, j.samples))
	}
	return err
}

// place puts a sample on the time that counts on. A watch that goes on with a
// recording begins to count at 0 again; between the two the clock of the machine is
// trusted, unless it went back.
func (j *joiner) place(s *sample.Sample) {
	run := j.header.Run
	if j.last != nil && run != j.run {
		gap := max(s.Time.Sub(j.last.Time).Seconds(), 0)
		j.offset = j.last.Seconds + gap - s.Seconds
	}
	s.Seconds += j.offset
	j.run, j.last = run, s
	if s.Over == nil {
		j.samples++
	}
}
