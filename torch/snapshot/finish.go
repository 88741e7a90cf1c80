package snapshot

import (
	"maps"
	"slices"
	"sort"

	"strandline/stack"
	"strandline/torch/pickle"
)

// finish makes the snapshot of the value that the file holds.
func (b *builder) assemble(root pickle.Value) error {
	switch root.Kind {
	case pickle.List:
		return b.assembleList(*b.objs.at(root.N))
	case pickle.Dict:
		if o := b.settled(root.N); o.class() == cDict || o.class() == cOther {
			return b.assembleDict(b.dicts[o.index()])
		}
	}
	return errNotSnapshot
}

// assembleList takes a bare list of segments.
func (b *builder) assembleList(list object) error {
	b.snap.Format.BareList = true
	b.snap.Segments = b.segmentsOf(list)
	if len(b.snap.Segments) == 0 && list.class() != cEmptyList {
		return errNotSnapshot
	}
	b.conclude()
	return nil
}

func (b *builder) assembleDict(pairs []pickle.Value) error {
	s := b.snap
	found := false
	for i := 0; i < len(pairs); i += 2 {
		key, v := pairs[i], pairs[i+1]
		list := object(cEmptyList) << classShift
		if v.Kind == pickle.List {
			list = *b.objs.at(v.N)
		}
		known := key.Kind == pickle.String && v.Kind == pickle.List
		switch {
		case known && key.N == kSegments:
			s.Segments, found = b.segmentsOf(list), true
		case known && key.N == kDeviceTraces:
			s.Traces, found = b.tracesOf(list), true
			b.present.traces = true
		case known && key.N == kHostSegments:
			s.HostSegments, b.present.host = b.segmentsOf(list), true
		case known && key.N == kHostTraces:
			s.HostTraces, b.present.host2 = b.tracesOf(list), true
		case known && key.N == kExternalAnnotations:
			b.present.annotations = true
			n := b.afford(b.length(list), 80, "annotations")
			b.each(list, n, func(o object) {
				if o.class() == cAnnotation {
					s.Annotations = append(s.Annotations, b.annotations[o.index()])
				} else {
					b.odd["external_annotations"]++
				}
			})
		case key.Kind == pickle.String && key.N == kAllocatorSettings && v.Kind == pickle.Dict:
			b.present.settings = true
			s.Settings = b.settings(v)
		default:
			s.Extra = append(s.Extra, Field{b.value(key), b.value(v)})
		}
	}
	if !found {
		return errNotSnapshot
	}
	b.conclude()
	return nil
}

func (b *builder) conclude() {
	s := b.snap
	s.present = b.present
	s.Faults = append(s.Faults, b.oddities()...)
	for k := range b.unknown {
		s.UnknownKeys = append(s.UnknownKeys, k)
	}
	sortStrings(s.UnknownKeys)
	s.details = make([]detail, len(b.details))
	for i, d := range b.details {
		s.details[i] = detail{d.history, b.fields(d.pairs)}
	}
}

// segmentsOf are the segments of a list, each with its blocks.
func (b *builder) segmentsOf(list object) (out []Segment) {
	n := b.afford(b.length(list), segmentBytes, "segments")
	if n > 0 {
		out = make([]Segment, 0, n)
	}
	b.each(list, n, func(o object) {
		if o.class() != cSegment {
			b.odd["segments"]++
			return
		}
		s, lists := b.segments[o.index()], b.segLists[o.index()]
		if s.Device < 0 || s.Device >= maxDevices {
			b.devices++
			return
		}
		s.Extra = b.fields(lists.pairs)
		s.Blocks = b.blocksOf(lists.blocks)
		addr := s.Addr
		for i := range s.Blocks { // before 2.1 blocks have no address of their own
			if s.Blocks[i].form.noAddress {
				s.Blocks[i].Addr = addr
			}
			addr = s.Blocks[i].Addr + uint64(s.Blocks[i].Size)
		}
		out = append(out, s)
	})
	return out
}

// blocksOf are the blocks of a list: a view of all blocks where they stand one
// after another, but a copy for the second segment that has the list.
func (b *builder) blocksOf(list object) []Block {
	if list.class() == cList {
		l := &b.lists[list.index()]
		if l.items == nil && l.of == cBlock && !l.used {
			l.used = true
			return b.blocks[l.first : l.first+l.n : l.first+l.n]
		}
	}
	n := b.afford(b.length(list), blockBytes, "blocks")
	if n == 0 {
		return nil
	}
	out := make([]Block, 0, n)
	b.each(list, n, func(o object) {
		if o.class() == cBlock {
			out = append(out, b.blocks[o.index()])
		} else {
			b.odd["blocks"]++
		}
	})
	return out
}

// tracesOf are the traces of a list of lists. A trace whose events stand one
// after another is a view of the columns.
func (b *builder) tracesOf(list object) (out []Trace) {
	if list.class() != cList {
		return nil
	}
	items := b.lists[list.index()].items
	if n := len(items) - maxDevices; n > 0 {
		items = items[:maxDevices]
		b.devices += n
	}
	items = items[:b.afford(len(items), traceBytes, "devices")]
	for device, v := range items {
		t := Trace{Device: device}
		if v.Kind != pickle.List {
			b.odd["device_traces"]++
			out = append(out, t)
			continue
		}
		o := *b.objs.at(v.N)
		if o.class() == cList {
			if l := &b.lists[o.index()]; l.items == nil && l.of == cEvent {
				n := l.n
				if l.used { // the events count once more
					n = b.afford(n, eventBytes+extraBytes, "events in several traces")
				}
				l.used = true
				t.Events = b.events.slice(l.first, l.first+n)
				t.extra = b.extraOf(l.first, n)
				if l.first+n <= b.timeFrom {
					t.Time = nil
				}
			} else {
				t = b.gather(device, o)
			}
		}
		out = append(out, t)
	}
	return out
}

// gather copies a trace whose events do not stand in order, as in files that
// were put together by hand.
func (b *builder) gather(device int, list object) Trace {
	t := Trace{Device: device}
	n := b.afford(b.length(list), eventBytes+8, "events in several places")
	at := make([]uint32, 0, n)
	b.each(list, n, func(o object) {
		if o.class() == cEvent {
			at = append(at, uint32(o.index()))
		} else {
			b.odd["device_traces"]++
		}
	})
	e := &b.events
	t.Events = Events{
		Action: pick(e.Action, at), Addr: pick(e.Addr, at), Size: pick(e.Size, at), Stream: pick(e.Stream, at),
		Stack: pick(e.Stack, at), Time: pick(e.Time, at), CompileContext: pick(e.CompileContext, at),
		UserMetadata: pick(e.UserMetadata, at), Pool: pick(e.Pool, at), Category: pick(e.Category, at),
	}
	extra := 0
	for _, i := range at {
		extra += len(b.pending(int(i), 1))
	}
	extra = b.afford(extra, 2*extraBytes, "events with unknown keys")
	for k, i := range at {
		for _, x := range b.pending(int(i), 1) {
			if len(t.extra) == extra {
				return t
			}
			if t.extra == nil {
				t.extra = make([]eventExtra, 0, extra)
			}
			t.extra = append(t.extra, eventExtra{k, b.fields(x.pairs), x.lacks})
		}
	}
	return t
}

func pick[T any](column []T, at []uint32) []T {
	if column == nil {
		return nil
	}
	out := make([]T, len(at))
	for k, i := range at {
		out[k] = column[i]
	}
	return out
}

// pending is what was kept of n events from the first on.
func (b *builder) pending(first, n int) []pendingExtra {
	after := func(event int) int {
		return sort.Search(len(b.eventExtra), func(i int) bool { return b.eventExtra[i].index >= event })
	}
	return b.eventExtra[after(first):after(first+n)]
}

// extraOf is what the columns do not tell of n events from the first on.
func (b *builder) extraOf(first, n int) (out []eventExtra) {
	rest := b.pending(first, n)
	untimed := first // events before the first one with a time
	if b.timeFrom < first+n {
		for ; untimed < b.timeFrom; untimed++ {
			x := eventExtra{event: untimed - first, lacks: bit(kTimeUS)}
			if len(rest) > 0 && rest[0].index == untimed {
				x.fields, x.lacks = b.fields(rest[0].pairs), rest[0].lacks|x.lacks
				rest = rest[1:]
			}
			out = append(out, x)
		}
	}
	if len(rest) > 0 && b.spend(extraBytes*len(rest), "events with unknown keys") != nil {
		return out
	}
	out = slices.Grow(out, len(rest))
	for ; len(rest) > 0; rest = rest[1:] {
		out = append(out, eventExtra{rest[0].index - first, b.fields(rest[0].pairs), rest[0].lacks})
	}
	return out
}

func (b *builder) settings(v pickle.Value) *Settings {
	fields, _ := b.value(v).([]Field)
	return NewSettings(fields)
}

// NewSettings are the settings that fields as PyTorch writes them give.
func NewSettings(fields []Field) *Settings {
	s := &Settings{fields: fields}
	for _, f := range fields {
		switch f.Key {
		case "PYTORCH_CUDA_ALLOC_CONF":
			s.Conf, _ = f.Value.(string)
			s.Conf = clipName(s.Conf)
		case "max_split_size":
			s.MaxSplitSize, _ = f.Value.(int64)
		case "garbage_collection_threshold":
			s.GCThreshold, _ = f.Value.(float64)
		case "expandable_segments":
			s.ExpandableSegments, _ = f.Value.(bool)
		case "roundup_power2_divisions":
			s.Roundup, _ = f.Value.([]Field)
		case "trace_alloc_max_entries":
			for _, x := range listOrOne(f.Value) {
				n, _ := x.(int64)
				s.TraceMaxEntries = append(s.TraceMaxEntries, n)
			}
		case "trace_alloc_overflowed":
			for _, x := range listOrOne(f.Value) {
				on, _ := x.(bool)
				s.TraceOverflowed = append(s.TraceOverflowed, on)
			}
		}
	}
	return s
}

func listOrOne(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

const (
	// maxUnfolded bounds the values, within values, of one that has no column:
	// containers may refer to each other so that they unfold to any size.
	maxUnfolded = 1 << 20
	maxLevels   = 64
)

// Unread stands in Extra for a value too large or too deep to keep, or inside
// itself. It is written as None.
type Unread struct{}

// plain is a value as Go data, with the number of values in it. A container is
// made once, however often it is met.
type plain struct {
	v any
	n int
}

func (b *builder) fields(pairs []pickle.Value) []Field {
	if len(pairs) == 0 {
		return nil
	}
	if b.spend(fieldBytes*len(pairs)/2, "values of unknown keys") != nil {
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
	if levels == 0 || b.spend(plainBytes, "values of unknown keys") != nil {
		return p
	}
	b.plain[v] = p // for what contains itself
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
	if len(items) >= maxUnfolded || b.spend(fieldBytes*len(items), "values of unknown keys") != nil {
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
		if b.spend(4*fieldBytes*len(b.snap.Stacks.Frames(stack.ID(list.index()))), "values of unknown keys") != nil {
			return plain{Unread{}, 1}
		}
		frames := b.snap.stackValue(stack.ID(list.index()))
		return plain{frames, 1 + 8*len(frames)}
	case cList:
		l := b.lists[list.index()]
		if l.of == cFrame && l.n < 0 {
			if b.spend(4*fieldBytes*len(l.items), "values of unknown keys") != nil {
				return plain{Unread{}, 1}
			}
			frames := make([]any, len(l.items))
			for i, v := range l.items {
				frames[i] = b.snap.frameFields(stack.FrameID(v.N))
			}
			return plain{frames, 1 + 8*len(frames)}
		}
		if l.items == nil && l.n <= maxUnfolded {
			n := b.afford(l.n, valueBytes, "values of unknown keys")
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

// object is a dict. One that was taken for a record, but stands in a place of
// its own, is spelled out again.
func (b *builder) object(o object, levels int) plain {
	s, i := b.snap, o.index()
	var pairs []pair
	var extra []Field
	if b.spend(8*fieldBytes, "values of unknown keys") != nil {
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
		if b.spend(4*fieldBytes*len(b.details[block.detail].history), "values of unknown keys") != nil {
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

// conclusion allows for what is put together when the reading has ended.
func (b *builder) conclusion() {
	b.budget.more = finalBytes
	b.raise()
}

// Salvage puts what stood on the machine's stack where it was going: items
// into the container below them, a segment's blocks into the segment. What
// follows a dict that is not whole belongs to it.
func (b *builder) Salvage(rest []pickle.Value) {
	// What is unexpected here is unexpected because of the cut.
	defer func(odd map[string]int) { b.odd = odd }(maps.Clone(b.odd))
	b.conclusion()
	b.salvaged = pickle.Value{Kind: absent}
	if len(rest) == 0 {
		return
	}
	b.salvaged = rest[0]
	switch root := rest[0]; root.Kind {
	case pickle.List:
		b.salvageRecords(root, rest[1:], cSegment)
	case pickle.Dict:
		b.salvageDict(root, rest[1:], func(key uint64, v pickle.Value, inner []pickle.Value) {
			if v.Kind != pickle.List {
				return
			}
			switch key {
			case kSegments, kHostSegments:
				b.salvageRecords(v, inner, cSegment)
			case kDeviceTraces, kHostTraces:
				b.salvageTraces(v, inner)
			case kExternalAnnotations:
				b.salvageRecords(v, inner, cAnnotation)
			}
		})
	}
}

// salvageDict adds to a dict the pairs that were read. The last value may be a
// container that was still being filled, with what stands behind it.
func (b *builder) salvageDict(dict pickle.Value, rest []pickle.Value, inside func(uint64, pickle.Value, []pickle.Value)) {
	if len(rest) > 0 && rest[0].Kind == pickle.Mark {
		rest = rest[1:]
	}
	var pairs []pickle.Value
	for len(rest) >= 2 && rest[0].Kind == pickle.String {
		key, v := rest[0], rest[1]
		rest = rest[2:]
		pairs = append(pairs, key, v)
		if len(rest) > 0 && rest[0].Kind != pickle.String {
			inside(key.N, v, rest)
			break
		}
	}
	if len(pairs) > 0 {
		b.SetItems(dict.N, pairs)
	}
	b.settled(dict.N)
}

// salvageRecords adds to a list the whole records of one class, and the one
// that was being read.
func (b *builder) salvageRecords(list pickle.Value, rest []pickle.Value, want class) {
	for i, v := range rest {
		if v.Kind == pickle.Mark {
			continue
		}
		if v.Kind != pickle.Dict {
			return
		}
		if b.settled(v.N).class() != want {
			if want == cSegment {
				b.salvageDict(v, rest[i+1:], func(key uint64, v pickle.Value, inner []pickle.Value) {
					if key == kBlocks && v.Kind == pickle.List {
						b.salvageRecords(v, inner, cBlock)
					}
				})
				if b.settled(v.N).class() == want {
					b.Append(list.N, []pickle.Value{v})
				}
			}
			return
		}
		b.Append(list.N, []pickle.Value{v})
	}
}

// salvageTraces adds the traces to the list of traces, and to the last of them
// the events that were read of it.
func (b *builder) salvageTraces(list pickle.Value, rest []pickle.Value) {
	var traces, events []pickle.Value
	for _, v := range rest {
		if v.Kind == pickle.List && len(events) == 0 {
			traces = append(traces, v)
		} else if v.Kind == pickle.Dict && b.settled(v.N).class() == cEvent {
			events = append(events, v)
		} else if v.Kind != pickle.Mark {
			break
		}
	}
	if len(traces) == 0 {
		return
	}
	for _, v := range events {
		b.Append(traces[len(traces)-1].N, []pickle.Value{v})
	}
	b.Append(list.N, traces)
}
