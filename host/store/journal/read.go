package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"strandline/internal/budget"
	"strandline/internal/packed"
)

// The longest line, and the largest window of zstd, bytes.
const (
	longest = 128 << 20
	window  = 8 << 20
)

// A Taker takes the lines of a file, the first of each frame as its header. Where it
// states why a line is bad, the rest of the frame is left out. An error ends the reading.
// A line is valid during the call.
type Taker interface {
	Header(line []byte) (bad error)
	Line(line []byte) (bad, err error)
	// Unreadable states why a part of the file is left out.
	Unreadable(why error)
}

// frameBytes is the cost of a frame, besides its lines.
const frameBytes = 4 << 10

// Read gives the lines of a file of the kind to a taker, and takes their cost from b, the
// budget of the file. The end of a frame that is still being written, or whose writer was
// killed, is not among what is unreadable.
func Read(r io.Reader, k Kind, b *budget.Budget, to Taker) error {
	p := &parts{in: bufio.NewReaderSize(r, 64<<10), marker: k.marker()}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return err
	}
	defer z.Close()
	for n := 1; p.next(); n++ {
		bad, err := b.Spend(frameBytes, "frames"), error(nil)
		if bad == nil {
			bad, err = frame(p, z, b, to)
		}
		if err != nil {
			return err
		}
		if err := b.Err(); err != nil {
			to.Unreadable(fmt.Errorf("frame %d: %w", n, err))
			return p.failed
		}
		if bad != nil && !errors.Is(bad, io.ErrUnexpectedEOF) {
			to.Unreadable(fmt.Errorf("frame %d: %w", n, bad))
		}
		for p.rest() { // behind what could not be read
		}
	}
	return p.failed
}

// frame reads one frame, as far as it goes.
func frame(in io.Reader, z *zstd.Decoder, b *budget.Budget, to Taker) (bad, err error) {
	if err := z.Reset(in); err != nil {
		return plain(err), nil
	}
	long := &lineBound{r: z, b: b}
	lines := bufio.NewScanner(long)
	lines.Buffer(make([]byte, 0, 64<<10), longest)
	lines.Split(packed.WholeLines)
	if !lines.Scan() {
		return cmp.Or(plain(lines.Err()), io.ErrUnexpectedEOF), nil
	}
	if bad := to.Header(lines.Bytes()); bad != nil {
		return bad, nil
	}
	for lines.Scan() {
		long.n = 0
		if b.Spend(budget.JSON(lines.Bytes()), "lines") != nil {
			return nil, nil // the budget states it
		}
		if bad, err := to.Line(lines.Bytes()); bad != nil || err != nil {
			return bad, err
		}
	}
	return plain(lines.Err()), nil
}

// A lineBound reads until there is more of one line than a budget allows.
type lineBound struct {
	r io.Reader
	b *budget.Budget
	n int // since the last line
}

func (l *lineBound) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.n += n; l.n > 64<<10 && int64(l.n) > l.b.Available() {
		return 0, l.b.Spend(l.n, "bytes of a line")
	}
	return n, err
}

// errDamaged takes the place of the words of the decoder.
var errDamaged = errors.New("its compressed data is damaged")

// plain is an error of decompression in plain words.
func plain(err error) error {
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, bufio.ErrTooLong) {
		return err
	}
	return errDamaged
}

// parts reads what is between markers. A part ends with io.EOF.
type parts struct {
	in     *bufio.Reader
	marker []byte
	failed error // of reading the file
	ended  bool  // of a part
}

// next goes to the next part. It is called at the beginning, and at the end of a part.
func (p *parts) next() bool {
	head, err := p.in.Peek(len(p.marker))
	if err != nil || !bytes.Equal(head, p.marker) {
		return false
	}
	p.in.Discard(len(p.marker))
	p.ended = false
	return true
}

// rest passes over some of a part. It reports whether there can be more.
func (p *parts) rest() bool {
	var b [4 << 10]byte
	_, err := p.Read(b[:])
	return err == nil
}

func (p *parts) Read(b []byte) (n int, err error) {
	if p.ended {
		return 0, io.EOF
	}
	head, err := p.in.Peek(max(p.in.Buffered(), 1))
	if p.begun(head) == len(head) && err == nil {
		head, err = p.in.Peek(len(p.marker))
	}
	if len(head) == 0 {
		if err != io.EOF {
			p.failed = err
		}
		p.ended = true
		return 0, io.EOF
	}
	n = len(head)
	if i := bytes.Index(head, p.marker); i == 0 {
		p.ended = true
		return 0, io.EOF
	} else if i > 0 {
		n = i
	} else if err == nil {
		n -= p.begun(head)
	}
	n = copy(b, head[:n])
	p.in.Discard(n)
	return n, nil
}

// begun is the length of the beginning of a marker that stands at the end of some bytes.
func (p *parts) begun(b []byte) int {
	for n := min(len(p.marker)-1, len(b)); n > 0; n-- {
		if bytes.HasSuffix(b, p.marker[:n]) {
			return n
		}
	}
	return 0
}
