package snapshot

import (
	"fmt"
	"io"
	"math/big"

	"strandline/stack"
	"strandline/torch/pickle"
)

// Write writes the snapshot as PyTorch's _dump_snapshot would: a pickle of
// protocol 4 from which Python loads the same values as from the file that was
// read. What a partial file lost, and what could not be kept ([Unread]), is
// missing. Of a snapshot from [New], records have the keys of PyTorch 2.6, and
// those of later versions for which their columns are there.
func (s *Snapshot) Write(w io.Writer) error {
	out := &writer{
		Encoder: pickle.NewEncoder(w), s: s,
		texts: make([]pickle.Ref, len(s.Strings)), stacks: make([]pickle.Ref, s.Stacks.Len()),
		frames: map[stack.FrameID]pickle.Ref{}, values: map[any]*pickle.Ref{}, long: map[string]pickle.Ref{},
	}
	if s.Format.BareList {
		out.segments(s.Segments)
	} else {
		out.whole()
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// New makes an empty snapshot to be filled: its records are written with all
// keys that PyTorch 2.6 writes.
func New() *Snapshot {
	s := newBuilder().snap
	s.Format = Format{Encoding: "pickle", Protocol: 4}
	s.Traces = []Trace{{}}
	s.Settings = &Settings{MaxSplitSize: -1}
	s.present = presence{
		traces: true, settings: true, annotations: true,
		blockFrames: true, requested: true, time: true, segmentPools: true, expandable: true,
	}
	return s
}

// StringID interns a text.
func (s *Snapshot) StringID(text string) StringID {
	if s.ids == nil {
		s.ids = make(map[string]StringID, len(s.Strings))
		for i := len(s.Strings) - 1; i > 0; i-- {
			s.ids[s.Strings[i]] = StringID(i)
		}
	}
	id, ok := s.ids[text]
	if !ok {
		id = StringID(len(s.Strings))
		s.Strings = append(s.Strings, text)
		s.ids[text] = id
	}
	return id
}

// PoolID interns a pool.
func (s *Snapshot) PoolID(p Pool) PoolID {
	for i, known := range s.Pools[1:] {
		if known == p {
			return PoolID(i + 1)
		}
	}
	s.Pools = append(s.Pools, p)
	return PoolID(len(s.Pools) - 1)
}

var keyIndex = func() map[any]int {
	m := map[any]int{}
	for i, name := range keyNames {
		m[name] = i
	}
	return m
}()

// A writer writes what a snapshot shares once and fetches it from then on:
// keys and texts, frames, lists of frames.
type writer struct {
	*pickle.Encoder
	s      *Snapshot
	texts  []pickle.Ref // by StringID
	stacks []pickle.Ref // by stack.ID
	frames map[stack.FrameID]pickle.Ref
	values map[any]*pickle.Ref // of containers in Extra, by their first element
	long   map[string]pickle.Ref
	pairs  []pair // scratch
}

// whole writes the dict of all.
func (w *writer) whole() {
	s := w.s
	type part struct {
		key     int
		present bool
		write   func()
	}
	skip := keysOf(s.Extra)
	segments, hostSegments := apart(s.Segments, func(g *Segment) int { return g.Device })
	traces, hostTraces := apart(s.Traces, func(t *Trace) int { return t.Device })
	var parts []part
	for _, p := range []part{
		{kSegments, true, func() { w.segments(segments) }},
		{kDeviceTraces, s.present.traces || len(traces) > 0, func() { w.traces(traces) }},
		{kAllocatorSettings, s.Settings != nil, func() { w.value(s.Settings.Fields()) }},
		{kExternalAnnotations, s.present.annotations || len(s.Annotations) > 0, w.annotations},
		{kHostSegments, s.present.host || len(hostSegments) > 0, func() { w.segments(hostSegments) }},
		{kHostTraces, s.present.host2 || len(hostTraces) > 0, func() { w.hostTraces(hostTraces) }},
	} {
		if p.present && !skip.has(p.key) {
			parts = append(parts, p)
		}
	}
	w.Dict(len(parts) + len(s.Extra))
	for _, p := range parts {
		w.key(p.key)
		p.write()
	}
	w.fields(s.Extra)
}

// apart splits a list into what is of devices and what is of pinned host memory.
func apart[T any](list []T, device func(*T) int) (ofDevices, ofHost []T) {
	for i := range list {
		if device(&list[i]) == Host {
			return list[:i], list[i:]
		}
	}
	return list, nil
}

func (w *writer) segments(list []Segment) {
	w.List(len(list))
	for i := range list {
		g := &list[i]
		w.pairs = w.s.segmentPairs(w.pairs[:0], g, g.Extra)
		blocks := 0
		if !g.lacks.has(kBlocks) && !keysOf(g.Extra).has(kBlocks) {
			blocks = 1
		}
		w.Dict(len(w.pairs) + blocks + len(g.Extra))
		w.known()
		w.fields(g.Extra)
		if blocks == 1 {
			w.key(kBlocks)
			w.blocks(g.Blocks)
		}
	}
}

func (w *writer) blocks(list []Block) {
	w.List(len(list))
	for i := range list {
		b := &list[i]
		var d detail
		if b.detail > 0 {
			d = w.s.details[b.detail]
		}
		w.pairs = w.s.blockPairs(w.pairs[:0], b, d.extra)
		history := 0
		if d.history != nil && !keysOf(d.extra).has(kHistory) {
			history = 1
		}
		w.Dict(len(w.pairs) + history + len(d.extra))
		w.known()
		w.fields(d.extra)
		if history == 1 {
			w.key(kHistory)
			w.history(d.history)
		}
	}
}

func (w *writer) history(list []historyEntry) {
	w.List(len(list))
	for i := range list {
		h := &list[i]
		w.pairs = w.s.historyPairs(w.pairs[:0], h)
		w.Dict(len(w.pairs) + len(h.extra))
		w.known()
		w.fields(h.extra)
	}
}

// traces writes the list of traces, which has one for each device up to the
// last.
func (w *writer) traces(list []Trace) {
	byDevice := make([]*Trace, len(list))
	for i := range list {
		t := &list[i]
		for t.Device >= len(byDevice) {
			byDevice = append(byDevice, nil)
		}
		byDevice[t.Device] = t
	}
	w.List(len(byDevice))
	for _, t := range byDevice {
		if t == nil {
			t = &Trace{}
		}
		w.trace(t)
	}
}

// hostTraces writes the events of pinned host memory: one list, but for files that
// have a list of lists.
func (w *writer) hostTraces(list []Trace) {
	t := &Trace{}
	if len(list) > 0 {
		t = &list[0]
	}
	if !w.s.present.hostEvents && w.s.present.host2 {
		w.List(len(list))
		if len(list) == 0 {
			return
		}
	}
	w.trace(t)
}

func (w *writer) trace(t *Trace) {
	w.List(t.Len())
	extra := t.extra
	for k := range t.Action {
		var x eventExtra
		if len(extra) > 0 && extra[0].event == k {
			x, extra = extra[0], extra[1:]
		}
		w.pairs = w.s.eventPairs(w.pairs[:0], &t.Events, k, x)
		w.Dict(len(w.pairs) + len(x.fields))
		w.known()
		w.fields(x.fields)
	}
}

func (w *writer) annotations() {
	w.List(len(w.s.Annotations))
	for i := range w.s.Annotations {
		fields := w.s.Annotations[i].fields()
		w.Dict(len(fields))
		w.fields(fields)
	}
}

// known writes the pairs at hand.
func (w *writer) known() {
	for _, p := range w.pairs {
		w.key(p.key)
		switch p.v.Kind {
		case pickle.Bool:
			w.Bool(p.v.N == 1)
		case pickle.Uint:
			w.Uint64(p.v.N)
		case pickle.String:
			w.text(StringID(p.v.N))
		case pickle.Tuple:
			pool := w.s.Pools[p.v.N]
			if w.s.present.poolLists {
				w.List(2)
			} else {
				w.Tuple(2)
			}
			w.Int64(pool.Graph)
			w.Int64(pool.User)
		case pickle.List:
			w.stack(stack.ID(p.v.N))
		default:
			w.Int64(int64(p.v.N))
		}
	}
}

func (w *writer) key(k int) { w.text(StringID(k)) }

func (w *writer) text(id StringID) {
	if w.texts[id] == 0 {
		w.texts[id] = w.SharedString(w.s.Strings[id])
	} else {
		w.Get(w.texts[id])
	}
}

func (w *writer) stack(id stack.ID) {
	frames := w.s.Stacks.Frames(id)
	switch {
	case len(frames) == 0:
		w.List(0)
	case w.stacks[id] != 0:
		w.Get(w.stacks[id])
	default:
		w.stacks[id] = w.SharedList(len(frames))
		for _, f := range frames {
			w.frame(f)
		}
	}
}

func (w *writer) frame(id stack.FrameID) {
	if r := w.frames[id]; r != 0 {
		w.Get(r)
		return
	}
	fields := w.s.frameFields(id)
	w.frames[id] = w.SharedDict(len(fields))
	w.fields(fields)
}

// fields writes the keys and values of a dict.
func (w *writer) fields(fields []Field) {
	for _, f := range fields {
		w.value(f.Key)
		w.value(f.Value)
	}
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case bool:
		w.Bool(v)
	case int:
		w.Int64(int64(v))
	case int64:
		w.Int64(v)
	case uint64:
		w.Uint64(v)
	case *big.Int:
		w.BigInt(v)
	case float64:
		w.Float(v)
	case string:
		w.string(v)
	case []byte:
		w.Bytes(v)
	case Tuple:
		if len(v) == 0 {
			w.Tuple(0)
		} else if ref, seen := w.seen(&v[0]); !seen {
			w.SharedTuple(len(v), ref)
			w.items(v)
		}
	case []any:
		if len(v) == 0 {
			w.List(0)
		} else if ref, seen := w.seen(&v[0]); !seen {
			*ref = w.SharedList(len(v))
			w.items(v)
		}
	case []Field:
		if len(v) == 0 {
			w.Dict(0)
		} else if ref, seen := w.seen(&v[0]); !seen {
			*ref = w.SharedDict(len(v))
			w.fields(v)
		}
	default:
		w.None()
	}
}

// string writes a text once if it is long: many records may have it.
func (w *writer) string(text string) {
	if len(text) <= maxName {
		w.String(text)
	} else if ref := w.long[text]; ref != 0 {
		w.Get(ref)
	} else {
		w.long[text] = w.SharedString(text)
	}
}

func (w *writer) items(items []any) {
	for _, v := range items {
		w.value(v)
	}
}

// seen fetches a container that was written before, known by the place of its
// first element: values of no column may share others so that they unfold to
// any size.
func (w *writer) seen(first any) (ref *pickle.Ref, seen bool) {
	ref = w.values[first]
	if ref != nil && *ref != 0 {
		w.Get(*ref)
		return ref, true
	}
	ref = new(pickle.Ref)
	w.values[first] = ref
	return ref, false
}
