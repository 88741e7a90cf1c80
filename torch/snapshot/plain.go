package snapshot

import (
	"strandline/stack"
	"strandline/torch/pickle"
)

const (
	// maxUnfolded bounds the nested values of one that has no column:
	// containers may refer to each other so that they unfold to any size.
	maxUnfolded = 1 << 20
	maxLevels   = 64
)

// Unread replaces, in Extra, a value too large or too deep to keep, or inside
// itself. It is written as None.
type Unread struct{}

// plain is a value as Go data, with the number of values in it. A container is
// made once, however often it occurs.
type plain struct {
	v any
	n int
}

func (b *builder) fields(pairs []pickle.Value) []Field {
	if len(pairs) == 0 {
		return nil
	}
	if b.budget.Spend(fieldBytes*len(pairs)/2, "values of unknown keys") != nil {
		return nil
	}
	out := make([]Field, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, Field{b.value(pairs[i]), b.value(pairs[i+1])})
	}
	return out
}

// value is v as plain Go data.
func (b *builder) value(v pickle.Value) any { return b.unfold(v, maxLevels).v }

func (b *builder) unfold(v pickle.Value, levels int) plain {
	switch v.Kind {
	case pickle.Bool:
		return plain{v.N == 1, 1}
	case pickle.Int:
		return plain{int64(v.N), 1}
	case pickle.Uint:
		return plain{v.N, 1}
	case pickle.BigInt:
		return plain{b.bigInts[v.N], 1}
	case pickle.Float:
		f, _ := v.Float64()
		return plain{f, 1}
	case pickle.String:
		if whole, ok := b.long[StringID(v.N)]; ok {
			return plain{whole, 1}
		}
		return plain{b.snap.Strings[v.N], 1}
	case pickle.Bytes:
		return plain{b.texts[v.N], 1}
	case pickle.Tuple, pickle.List, pickle.Dict, rangeItem:
		return b.container(v, levels)
	}
	return plain{nil, 1}
}

func (b *builder) container(v pickle.Value, levels int) plain {
	if p, ok := b.plain[v]; ok {
		return p
	}
	p := plain{Unread{}, 1}
	if levels == 0 || b.budget.Spend(plainBytes, "values of unknown keys") != nil {
		return p
	}
	b.plain[v] = p // for a value that contains itself
	switch v.Kind {
	case pickle.Tuple:
		p = b.items(b.tuples.at(v.N), levels)
		if items, ok := p.v.([]any); ok {
			p.v = Tuple(items)
		}
	case pickle.List:
		p = b.list(*b.objs.at(v.N), levels)
	default:
		o, _ := b.objectOf(v)
		p = b.object(o, levels)
	}
	b.plain[v] = p
	return p
}

func (b *builder) items(items []pickle.Value, levels int) plain {
	if len(items) >= maxUnfolded || b.budget.Spend(fieldBytes*len(items), "values of unknown keys") != nil {
		return plain{Unread{}, 1}
	}
	out, n := make([]any, 0, len(items)), 1
	for _, v := range items {
		p := b.unfold(v, levels-1)
		out = append(out, p.v)
		if n += p.n; n > maxUnfolded {
			return plain{Unread{}, 1}
		}
	}
	return plain{out, n}
}

func (b *builder) list(list object, levels int) plain {
	switch list.class() {
	case cStack:
		if b.budget.Spend(4*fieldBytes*len(b.snap.Stacks.Frames(stack.ID(list.index()))), "values of unknown keys") != nil {
			return plain{Unread{}, 1}
		}
		frames := b.snap.stackValue(stack.ID(list.index()))
		return plain{frames, 1 + 8*len(frames)}
	case cList:
		l := b.lists[list.index()]
		if l.of == cFrame && l.n < 0 {
			if b.budget.Spend(4*fieldBytes*len(l.items), "values of unknown keys") != nil {
				return plain{Unread{}, 1}
			}
			frames := make([]any, len(l.items))
			for i, v := range l.items {
				frames[i] = b.snap.frameFields(stack.FrameID(v.N))
			}
			return plain{frames, 1 + 8*len(frames)}
		}
		if l.items == nil && l.n <= maxUnfolded {
			n := b.budget.Afford(l.n, valueBytes, "values of unknown keys")
			l.items = make([]pickle.Value, 0, n)
			b.each(list, n, func(o object) {
				l.items = append(l.items, pickle.Value{Kind: rangeItem, N: uint64(o)})
			})
		}
		if len(l.items) > 0 {
			return b.items(l.items, levels)
		}
		return plain{Unread{}, 1}
	}
	return plain{[]any{}, 1}
}

// object returns a dict. One that was taken for a record, but is not in a
// record's place, is converted back.
func (b *builder) object(o object, levels int) plain {
	s, i := b.snap, o.index()
	var pairs []pair
	var extra []Field
	if b.budget.Spend(8*fieldBytes, "values of unknown keys") != nil {
		return plain{Unread{}, 1}
	}
	switch o.class() {
	case cDict, cOther:
		p := b.items(b.dicts[i], levels)
		if items, ok := p.v.([]any); ok {
			fields := make([]Field, len(items)/2)
			for k := range fields {
				fields[k] = Field{items[2*k], items[2*k+1]}
			}
			p.v = fields
		}
		return p
	case cFrame:
		fields := s.frameFields(stack.FrameID(i))
		return plain{fields, 1 + 2*len(fields)}
	case cAnnotation:
		fields := b.annotations[i].fields()
		return plain{fields, 1 + 2*len(fields)}
	case cEvent:
		var x eventExtra
		for _, x = range b.extraOf(i, 1) {
		}
		pairs, extra = s.eventPairs(nil, &b.events, i, x), x.fields
	case cHistory:
		pairs, extra = s.historyPairs(nil, &b.history[i]), b.history[i].extra
	case cBlock:
		block := &b.blocks[i]
		if b.budget.Spend(4*fieldBytes*len(b.details[block.detail].history), "values of unknown keys") != nil {
			return plain{Unread{}, 1}
		}
		extra = b.fields(b.details[block.detail].pairs)
		pairs = s.blockPairs(nil, block, extra)
		extra = append(extra, s.historyField(b.details[block.detail].history, extra)...)
	case cSegment:
		extra = b.fields(b.segLists[i].pairs)
		pairs = s.segmentPairs(nil, &b.segments[i], extra)
		if !b.segments[i].lacks.has(kBlocks) && !keysOf(extra).has(kBlocks) {
			p := b.list(b.segLists[i].blocks, levels-1)
			extra = append(extra, Field{"blocks", p.v})
			fields := s.pairFields(pairs, extra)
			return plain{fields, 1 + 2*len(fields) + p.n}
		}
	default:
		return plain{[]Field{}, 1}
	}
	fields := s.pairFields(pairs, extra)
	return plain{fields, 1 + 2*len(fields)}
}
