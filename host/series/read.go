package series

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"strandline/host/sample"
	"strandline/internal/packed"
)

func compare(a, b sample.ID) int {
	return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Started, b.Started))
}

// Read gives the samples of a recording to take, in order. Their Seconds count on over
// the watches that wrote it. What cannot be read is left out, and partial says why; the
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
	parts := &parts{in: bufio.NewReaderSize(r, 64<<10)}
	var j joiner
	for n := 1; parts.next(); n++ {
		failed, err := j.frame(parts, take)
		if err != nil {
			return j.samples, err
		}
		if failed != nil && !errors.Is(failed, io.ErrUnexpectedEOF) {
			unreadable(fmt.Errorf("frame %d: %w", n, failed))
		}
		for parts.rest() { // behind what could not be read
		}
	}
	return j.samples, parts.failed
}

// joiner puts the times of several watches behind each other.
type joiner struct {
	run     int64
	offset  float64
	last    *sample.Sample
	samples int
}

// The longest line, and the largest window of zstd, bytes.
const (
	longest = 64 << 20
	window  = 8 << 20
)

// frame reads one frame, as far as it goes.
func (j *joiner) frame(in io.Reader, take func(*sample.Sample) error) (failed, err error) {
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return err, nil
	}
	defer z.Close()
	lines := bufio.NewScanner(z)
	lines.Buffer(make([]byte, 0, 64<<10), longest)
	lines.Split(packed.WholeLines)
	var h header
	if !lines.Scan() {
		return cmp.Or(lines.Err(), io.ErrUnexpectedEOF), nil
	}
	if json.Unmarshal(lines.Bytes(), &h) != nil || h.Schema != fileSchema {
		return errOther, nil
	}
	st := newState()
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return err, nil
		}
		s := st.apply(&l)
		j.place(s, h.Run)
		if err := take(s); err != nil {
			return nil, err
		}
	}
	return lines.Err(), nil
}

// place puts a sample on the time that counts on. A watch that goes on with a
// recording begins to count at 0 again; between the two the clock of the machine is
// trusted, unless it went back.
func (j *joiner) place(s *sample.Sample, run int64) {
	if j.last != nil && run != j.run {
		gap := max(s.Time.Sub(j.last.Time).Seconds(), 0)
		j.offset = j.last.Seconds + gap - s.Seconds
	}
	s.Seconds += j.offset
	j.run, j.last = run, s
	j.samples++
}

// parts reads what is between markers. A part ends with io.EOF.
type parts struct {
	in     *bufio.Reader
	failed error // of reading the file
	over   bool  // of a part
}

// next goes to the next part. It is called at the beginning, and at the end of a part.
func (p *parts) next() bool {
	head, err := p.in.Peek(len(marker))
	if err != nil || !bytes.Equal(head, marker) {
		return false
	}
	p.in.Discard(len(marker))
	p.over = false
	return true
}

// rest passes over some of a part. It reports whether there can be more.
func (p *parts) rest() bool {
	var b [4 << 10]byte
	_, err := p.Read(b[:])
	return err == nil
}

func (p *parts) Read(b []byte) (n int, err error) {
	if p.over {
		return 0, io.EOF
	}
	head, err := p.in.Peek(max(p.in.Buffered(), 1))
	if begun(head) == len(head) && err == nil {
		head, err = p.in.Peek(len(marker))
	}
	if len(head) == 0 {
		if err != io.EOF {
			p.failed = err
		}
		p.over = true
		return 0, io.EOF
	}
	n = len(head)
	if i := bytes.Index(head, marker); i == 0 {
		p.over = true
		return 0, io.EOF
	} else if i > 0 {
		n = i
	} else if err == nil {
		n -= begun(head)
	}
	n = copy(b, head[:n])
	p.in.Discard(n)
	return n, nil
}

// begun is the length of the beginning of a marker that stands at the end of some bytes.
func begun(b []byte) int {
	for n := min(len(marker)-1, len(b)); n > 0; n-- {
		if bytes.HasSuffix(b, marker[:n]) {
			return n
		}
	}
	return 0
}
