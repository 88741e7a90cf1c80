package series

import (
	"cmp"
	"encoding/json"
	"io"

	"strandline/host/sampling/sample"
	"strandline/host/store/journal"
)

func compare(a, b sample.ID) int {
	return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Started, b.Started))
}

// Read gives the samples of a recording to take, in order. Their Seconds count on over
// the watches that wrote it. What cannot be read is left out, and partial states why; the
// end of a frame that is still being written, or whose watch was killed, does not count.
// An error of take ends the reading.
func Read(r io.Reader, take func(*sample.Sample) error) (partial, err error) {
	samples, err := readAll(r, take, func(why error) { partial = cmp.Or(partial, why) })
	if samples == 0 && err == nil {
		return nil, errOther
	}
	return partial, err
}

// readAll is [Read] that reports each part that cannot be read when it comes to it, and
// counts the samples.
func readAll(r io.Reader, take func(*sample.Sample) error, unreadable func(why error)) (samples int, err error) {
	j := &joiner{take: take, unreadable: unreadable}
	err = journal.Read(r, journal.Watch, j)
	return j.samples, err
}

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
}

func (j *joiner) Unreadable(why error) { j.unreadable(why) }

func (j *joiner) Header(text []byte) (bad error) {
	j.header, j.state = header{}, newState()
	if json.Unmarshal(text, &j.header) != nil || j.header.Schema != formerSchema && (j.header.Schema != journal.Schema || j.header.Of != of) {
		return errOther
	}
	return nil
}

func (j *joiner) Line(text []byte) (bad, err error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return err, nil
	}
	s := j.state.apply(&l)
	j.place(s)
	return nil, j.take(s)
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
