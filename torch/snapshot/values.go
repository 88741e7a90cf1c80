package snapshot

import (
	"strings"

	"strandline/stack"
	"strandline/torch/pickle"
)

// strange counts a value of the record at hand that is not of its key's type,
// and keeps it. None is usual enough not to be counted.
func (b *builder) strange(k int) {
	if b.rec[k].Kind != pickle.None {
		b.odd[keyNames[k]]++
	}
	b.keep(k)
}

func (b *builder) int(k int) int64 {
	v := b.rec[k]
	if v.Kind == pickle.Int {
		return int64(v.N)
	}
	n, ok := v.Int64()
	if !ok && v.Kind != absent {
		b.strange(k)
	}
	return n
}

// addr is an address, or another number that may have all 64 bits.
func (b *builder) addr(k int) uint64 {
	v := b.rec[k]
	if v.Kind == pickle.Int {
		b.present.signed = b.present.signed || v.N>>63 != 0
		return v.N
	}
	n, ok := v.Uint64()
	if !ok && v.Kind != absent {
		b.strange(k)
	}
	return n
}

// stringID is a text, or 0 where it is absent.
func (b *builder) stringID(k int) StringID {
	v := b.rec[k]
	if v.Kind == pickle.String {
		id := StringID(v.N)
		if _, long := b.long[id]; long {
			b.keep(k) // the whole of it, to be written again
		}
		return id
	}
	if v.Kind != absent {
		b.strange(k)
	}
	return kNoKey
}

// clipName returns the beginning of a name that is too long to print.
func clipName(s string) string {
	if len(s) <= maxName {
		return s
	}
	return strings.ToValidUTF8(s[:maxName-len("…")], "") + "…"
}

func (b *builder) text(k int) string { return b.snap.Strings[b.stringID(k)] }

func (b *builder) streamOf() StreamID {
	if v := b.rec[kStream]; v.Kind != pickle.Int || v.N != b.last.stream {
		b.last.stream = b.addr(kStream)
		b.last.streamID = b.stream(b.last.stream)
	}
	return b.last.streamID
}

func (b *builder) stream(n uint64) StreamID {
	id, ok := b.streams[n]
	if !ok {
		id = StreamID(len(b.snap.Streams))
		b.snap.Streams = append(b.snap.Streams, n)
		b.streams[n] = id
	}
	return id
}

// pool is the id of a pair of numbers: a tuple, or in JSON a list.
func (b *builder) pool(k int) PoolID {
	var pair []pickle.Value
	switch v := b.rec[k]; v.Kind {
	case pickle.Tuple:
		pair = b.tuples.at(v.N)
	case pickle.List:
		if o := *b.objs.at(v.N); o.class() == cList {
			pair = b.lists[o.index()].items
		}
		b.present.poolLists = b.snap.Format.Encoding == "pickle"
	case absent:
		return 0
	}
	if len(pair) == 2 {
		x, ok1 := pair[0].Int64()
		y, ok2 := pair[1].Int64()
		if ok1 && ok2 {
			return b.poolID(Pool{x, y})
		}
	}
	b.strange(k)
	return 0
}

func (b *builder) poolID(p Pool) PoolID {
	id, ok := b.pools[p]
	if !ok {
		id = PoolID(len(b.snap.Pools))
		b.snap.Pools = append(b.snap.Pools, p)
		b.pools[p] = id
	}
	return id
}

// stack is the id of a list of frames.
func (b *builder) stack() stack.ID {
	v := b.rec[kFrames]
	if v.Kind == absent {
		return stack.None
	}
	if v.Kind != pickle.List {
		b.strange(kFrames)
		return stack.None
	}
	o := b.objs.at(v.N)
	switch o.class() {
	case cStack:
		return stack.ID(o.index())
	case cList: // one that came item by item, or in several batches
		l := &b.lists[o.index()]
		b.frames = b.frames[:0]
		for _, item := range l.items {
			if l.of == cFrame && l.n < 0 {
				b.frames = append(b.frames, stack.FrameID(item.N))
				continue
			}
			f, ok := b.objectOf(item)
			if !ok || f.class() != cFrame {
				b.odd["frames"]++
				continue
			}
			b.frames = append(b.frames, stack.FrameID(f.index()))
		}
		id := b.intern(b.frames)
		if n, err := b.newObject(cStack, int(id)); err == nil {
			*o = n
			l.items, l.of, l.n = nil, 0, 0
		}
		return id
	}
	return stack.Empty
}
