package snapshot

import (
	"slices"
	"sort"

	"strandline/torch/pickle"
)

// assemble makes the snapshot of the value that the file holds.
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
	b.snap.Segments = b.segmentsOf(list, false)
	if len(b.snap.Segments) == 0 && list.class() != cEmptyList {
		return errNotSnapshot
	}
	b.conclude()
	return nil
}

func (b *builder) assembleDict(pairs []pickle.Value) error {
	s := b.snap
	var hostSegments []Segment
	var hostTraces []Trace
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
			s.Segments, found = b.segmentsOf(list, false), true
		case known && key.N == kDeviceTraces:
			s.Traces, found = b.tracesOf(list), true
			b.present.traces = true
		case known && key.N == kHostSegments:
			hostSegments, b.present.host = b.segmentsOf(list, true), true
		case known && key.N == kHostTraces:
			hostTraces, b.present.host2 = b.hostTraces(list), true
		case known && key.N == kExternalAnnotations:
			b.present.annotations = true
			n := b.budget.Afford(b.length(list), 80, "annotations")
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
	s.Segments, s.Traces = append(s.Segments, hostSegments...), append(s.Traces, hostTraces...)
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
func (b *builder) segmentsOf(list object, host bool) (out []Segment) {
	n := b.budget.Afford(b.length(list), segmentBytes, "segments")
	if n > 0 {
		out = make([]Segment, 0, n)
	}
	b.each(list, n, func(o object) {
		if o.class() != cSegment {
			b.odd["segments"]++
			return
		}
		s, lists := b.segments[o.index()], b.segLists[o.index()]
		switch {
		case host:
			s.Device = Host
		case s.Device < 0 || s.Device >= maxDevices:
			b.devices++
			return
		}
		s.Extra = b.fields(lists.pairs)
		s.Blocks = b.blocksOf(lists.blocks)
		addr := s.Addr
		for i := range s.Blocks { // before 2.1 blocks do not record their address
			if s.Blocks[i].form.noAddress {
				s.Blocks[i].Addr = addr
			}
			addr = s.Blocks[i].Addr + uint64(s.Blocks[i].Size)
		}
		out = append(out, s)
	})
	return out
}

// blocksOf returns the blocks of a list: a view of all blocks where they are one
// after another, but a copy for the second segment that has the list.
func (b *builder) blocksOf(list object) []Block {
	if list.class() == cList {
		l := &b.lists[list.index()]
		if l.items == nil && l.of == cBlock && !l.used {
			l.used = true
			return b.blocks[l.first : l.first+l.n : l.first+l.n]
		}
	}
	n := b.budget.Afford(b.length(list), blockBytes, "blocks")
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

// tracesOf returns the traces of a list of lists. A trace whose events are one
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
	items = items[:b.budget.Afford(len(items), traceBytes, "devices")]
	for device, v := range items {
		t := Trace{Device: device}
		if v.Kind != pickle.List {
			b.odd["device_traces"]++
			out = append(out, t)
			continue
		}
		out = append(out, b.traceOf(device, *b.objs.at(v.N)))
	}
	return out
}

// hostTraces are the one trace of pinned host memory, which is a list of events. Of
// files that were put together by hand, with a list for each device, the first is kept.
func (b *builder) hostTraces(list object) []Trace {
	if list.class() == cList && b.isTrace(list) {
		b.present.hostEvents = true
		return []Trace{b.traceOf(Host, list)}
	}
	traces := b.tracesOf(list)
	for i := range traces {
		if traces[i].Len() > 0 {
			if more := len(traces) - i - 1; more > 0 {
				b.odd["host_traces"] += more
			}
			traces[i].Device = Host
			return traces[i : i+1]
		}
	}
	return nil
}

// isTrace reports whether a list is of events, one after another.
func (b *builder) isTrace(o object) bool {
	l := &b.lists[o.index()]
	return l.items == nil && l.of == cEvent
}

func (b *builder) traceOf(device int, o object) Trace {
	t := Trace{Device: device}
	switch {
	case o.class() != cList:
	case b.isTrace(o):
		l := &b.lists[o.index()]
		n := l.n
		if l.used { // the events count once more
			n = b.budget.Afford(n, eventBytes+extraBytes, "events in several traces")
		}
		l.used = true
		t.Events = b.events.slice(l.first, l.first+n)
		t.extra = b.extraOf(l.first, n)
		if l.first+n <= b.timeFrom {
			t.Time = nil
		}
	default:
		t = b.gather(device, o)
	}
	return t
}

// gather copies a trace whose events are not in order, as in files that
// were put together by hand.
func (b *builder) gather(device int, list object) Trace {
	t := Trace{Device: device}
	n := b.budget.Afford(b.length(list), eventBytes+8, "events in several places")
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
	extra = b.budget.Afford(extra, 2*extraBytes, "events with unknown keys")
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

// pending returns what was kept of n events from the first on.
func (b *builder) pending(first, n int) []pendingExtra {
	after := func(event int) int {
		return sort.Search(len(b.eventExtra), func(i int) bool { return b.eventExtra[i].index >= event })
	}
	return b.eventExtra[after(first):after(first+n)]
}

// extraOf returns what the columns do not hold of n events from the first on.
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
	if len(rest) > 0 && b.budget.Spend(extraBytes*len(rest), "events with unknown keys") != nil {
		return out
	}
	out = slices.Grow(out, len(rest))
	for ; len(rest) > 0; rest = rest[1:] {
		out = append(out, eventExtra{rest[0].index - first, b.fields(rest[0].pairs), rest[0].lacks})
	}
	return out
}
