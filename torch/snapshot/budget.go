package snapshot

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"strandline/stack"
	"strandline/torch/pickle"
)

// Bounds beside the budget.
const (
	finalBytes = 16 << 20 // for what is put together when the reading has ended
	maxSilent  = 4 << 20  // bytes of which nothing is kept, where the budget is not looked at
	maxOther   = 8 << 20  // bytes of JSON before the first record of a snapshot

	maxDevices = 128    // c10::DeviceIndex is an int8_t
	maxFrames  = 1024   // of one stack; Python goes 1,000 deep
	maxListed  = 10_000 // of a list that may become one
	maxName    = 1 << 10
)

// Bytes of memory that things take.
const (
	valueBytes   = 16
	listBytes    = 64
	dictBytes    = 24
	fieldBytes   = 48
	textBytes    = 80 // besides the text
	eventBytes   = 48
	plainBytes   = 192 // a container as Go data
	extraBytes   = 56
	frameBytes   = 96
	blockBytes   = 48
	historyBytes = 56
	segmentBytes = 240
	traceBytes   = 320
)

// recordBytes are what a record takes that is not an event.
var recordBytes = [...]int{rFrame: 8, rBlock: 2 * blockBytes, rSegment: 2*segmentBytes + 40, rHistory: 2 * historyBytes, rAnnotation: 160, rEvent: 0}

// A source is the unpacked input. It ends where an error comes, which it keeps,
// and where much comes of which the builder gets nothing: a text as large as
// the memory allowed, or padding.
type source struct {
	r      io.Reader
	n      int64
	err    error
	b      *builder
	things int
	silent int64
	text   bool // it is JSON, which logs and notebooks are too
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, io.EOF
	}
	n, err := s.r.Read(p)
	s.n += int64(n)
	if things := s.b.things(); things != s.things {
		s.things, s.silent = things, 0
	}
	s.silent += int64(n)
	if s.silent > maxSilent && 3*s.silent > s.b.budget.Available() {
		err = errors.New("the file unpacks to more than its size accounts for: too long a text, or too much of nothing")
	}
	if s.text && s.n > maxOther && s.b.events.Len()+len(s.b.blocks)+len(s.b.segments)+len(s.b.annotations) == 0 {
		err = fmt.Errorf("%w: its beginning has neither segments nor traces", ErrUnknown)
	}
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		s.err, err = err, io.EOF
	}
	return n, err
}

// things is a number that changes as the builder is given anything.
func (b *builder) things() int { return b.objs.n + len(b.snap.Strings) + len(b.texts) }

// tupleStore keeps the items of all tuples, each after a Mark with their number.
type tupleStore struct{ pages [][]pickle.Value }

const tuplePage = 4096

func (b *builder) addTuple(items []pickle.Value) (uint64, error) {
	t, n := &b.tuples, len(items)
	if n == 0 && len(t.pages) > 0 {
		return 0, nil // the first one is empty
	}
	last := len(t.pages) - 1
	if last < 0 || cap(t.pages[last])-len(t.pages[last]) < n+1 {
		size := max(tuplePage, n+1)
		if err := b.budget.Spend(valueBytes*size, "tuples"); err != nil {
			return 0, err
		}
		t.pages = append(t.pages, make([]pickle.Value, 0, size))
		if last++; last == 0 {
			t.pages[0] = append(t.pages[0], pickle.Value{Kind: pickle.Mark})
			return b.addTuple(items)
		}
	}
	page := &t.pages[last]
	id := uint64(last)<<32 | uint64(len(*page))
	*page = append(*page, pickle.Value{Kind: pickle.Mark, N: uint64(n)})
	*page = append(*page, items...)
	return id, nil
}

func (t *tupleStore) at(id uint64) []pickle.Value {
	page, from := t.pages[id>>32], id&(1<<32-1)
	return page[from+1:][:page[from].N]
}

// intern is the id of a stack of frames. Of one that is deeper than any is, frames
// in the middle are left out.
func (b *builder) intern(frames []stack.FrameID) stack.ID {
	if out := len(frames) - maxFrames + 1; out > 1 {
		const outer = maxFrames / 4
		gap := b.snap.Stacks.Frame(stack.Frame{Function: fmt.Sprintf("(%d frames left out)", out)}, nil)
		frames = slices.Concat(frames[:maxFrames-outer-1], []stack.FrameID{gap}, frames[len(frames)-outer:])
		b.deep++
	}
	before := b.snap.Stacks.Len()
	id := b.snap.Stacks.Intern(frames)
	if b.snap.Stacks.Len() != before {
		b.budget.Spend(16+16*len(frames), "frames of stacks")
	}
	return id
}
