package snapshot

import (
	"errors"
	"slices"

	"strandline/stack"
	"strandline/torch/pickle"
)

// Append adds items to a list. A list of frames becomes a stack, a list of
// records a range of their columns.
func (b *builder) Append(list uint64, items []pickle.Value) error {
	o := b.objs.at(list)
	if o.class() == cEmptyList && len(items) > 1 {
		if done, err := b.appendFrames(o, items); done || err != nil {
			return err
		}
	}
	if o.class() != cList {
		data := listData{}
		if err := b.budget.Spend(listBytes, "lists"); err != nil {
			return err
		}
		if o.class() == cStack { // frames that came in several batches
			data = listData{of: cFrame, n: -1}
			if err := b.budget.Spend(2*valueBytes*len(b.snap.Stacks.Frames(stack.ID(o.index()))), "frames of stacks"); err != nil {
				return err
			}
			for _, f := range b.snap.Stacks.Frames(stack.ID(o.index())) {
				data.items = append(data.items, pickle.Value{Kind: pickle.Dict, N: uint64(f)})
			}
		}
		b.lists = append(b.lists, data)
		n, err := b.newObject(cList, len(b.lists)-1)
		if err != nil {
			return err
		}
		*o = n
	}
	l := &b.lists[o.index()]
	if l.of == cFrame && l.n < 0 {
		for _, v := range items {
			if v.Kind != pickle.Dict || b.objs.at(v.N).class() != cFrame {
				return errors.New("a list of frames holds something else")
			}
			if len(l.items) > maxListed { // one more, to detect a longer one
				break
			}
			l.items = append(l.items, pickle.Value{Kind: pickle.Dict, N: uint64(b.objs.at(v.N).index())})
		}
		return b.budget.Spend(valueBytes*len(items), "frames of stacks")
	}
	before := len(l.items)
	if before > 0 && cap(l.items)-before < len(items) {
		l.items = slices.Grow(l.items, len(items))
	}
	for i, v := range items {
		b.appendItem(l, v, len(items)-i)
	}
	if made := len(l.items) - before; made > 0 {
		return b.budget.Spend(valueBytes*made, "items of lists")
	}
	return b.budget.Err()
}

// appendFrames makes a stack of items, if all are frames.
func (b *builder) appendFrames(o *object, items []pickle.Value) (bool, error) {
	b.frames = b.frames[:0]
	for _, v := range items {
		if v.Kind != pickle.Dict {
			return false, nil
		}
		f := *b.objs.at(v.N)
		if f.class() != cFrame {
			return false, nil
		}
		b.frames = append(b.frames, stack.FrameID(f.index()))
	}
	var err error
	if *o, err = b.newObject(cStack, int(b.intern(b.frames))); err == nil {
		err = b.budget.Err()
	}
	return true, err
}

// Repeat makes a stack of a list of frames that is known to be one.
func (b *builder) Repeat(list, of uint64) bool {
	o, known := b.objs.at(list), *b.objs.at(of)
	if o.class() != cEmptyList || known.class() != cStack {
		return false
	}
	*o = known
	return true
}

// appendItem adds v to a list, the first of the given number to come.
func (b *builder) appendItem(l *listData, v pickle.Value, coming int) {
	if v.Kind == pickle.Dict && l.items == nil {
		o := b.settled(v.N)
		if c := o.class(); c >= cEvent && (l.n == 0 || l.of == c && o.index() == l.first+l.n) {
			if l.n == 0 {
				l.of, l.first = c, o.index()
			}
			l.n++
			return
		}
	}
	if l.items == nil {
		l.items = make([]pickle.Value, 0, l.n+coming)
	}
	if l.n > 0 && len(l.items) == 0 { // spell out the range
		for i := range l.n {
			l.items = append(l.items, pickle.Value{Kind: rangeItem, N: uint64(l.of)<<classShift | uint64(l.first+i)})
		}
		l.n, l.of = 0, 0
	}
	l.items = append(l.items, v)
}
