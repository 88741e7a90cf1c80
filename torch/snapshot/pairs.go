package snapshot

import (
	"math"

	"strandline/stack"
	"strandline/torch/pickle"
)

// A pair is a key and its value. The N of the value is, in addition to what package
// pickle defines, a StringID, a stack.ID for a List and a PoolID for a Tuple.
type pair struct {
	key int
	v   pickle.Value
}

// A pairList gathers the pairs of a record, all but those of the keys to skip:
// the record lacks them, or its Extra has their values.
type pairList struct {
	pairs []pair
	skip  keySet
}

func (l *pairList) add(key int, kind pickle.Kind, n uint64) {
	if !l.skip.has(key) {
		l.pairs = append(l.pairs, pair{key, pickle.Value{Kind: kind, N: n}})
	}
}

func (l *pairList) int(key int, n int64) { l.add(key, pickle.Int, uint64(n)) }

// addr is an address in the form of the file's writer.
func (s *Snapshot) addr(l *pairList, key int, n uint64) {
	if n <= math.MaxInt64 || s.present.signed {
		l.add(key, pickle.Int, n)
	} else {
		l.add(key, pickle.Uint, n)
	}
}

// text adds a text that is not absent.
func (l *pairList) text(key int, column []StringID, k int) {
	if column != nil && column[k] != kNoKey {
		l.add(key, pickle.String, uint64(column[k]))
	}
}

func (l *pairList) frames(id stack.ID) { l.add(kFrames, pickle.List, uint64(max(id, stack.Empty))) }

// eventPairs are the pairs of event k, appended to dst.
func (s *Snapshot) eventPairs(dst []pair, e *Events, k int, x eventExtra) []pair {
	l := pairList{dst, x.lacks | keysOf(x.fields)}
	if a := e.Action[k]; a != OtherAction {
		l.add(kAction, pickle.String, uint64(firstAction+int(a)))
	}
	if e.Action[k] == OOM {
		l.int(kDeviceFree, e.DeviceFree(k))
	} else {
		s.addr(&l, kAddr, e.Addr[k])
	}
	l.int(kSize, e.Size[k])
	s.addr(&l, kStream, s.Streams[e.Stream[k]])
	if e.Time != nil {
		l.int(kTimeUS, e.Time[k])
	}
	l.text(kCompileContext, e.CompileContext, k)
	l.text(kUserMetadata, e.UserMetadata, k)
	if e.Pool != nil && e.Pool[k] != 0 {
		l.add(kPoolID, pickle.Tuple, uint64(e.Pool[k]))
	}
	l.text(kCategory, e.Category, k)
	if e.Stack[k] != stack.None {
		l.frames(e.Stack[k])
	}
	return l.pairs
}

func (s *Snapshot) blockPairs(dst []pair, b *Block, extra []Field) []pair {
	l := pairList{dst, keysOf(extra)}
	if !b.form.noAddress {
		s.addr(&l, kAddress, b.Addr)
	}
	l.int(kSize, b.Size)
	if !b.form.noRequested {
		l.int(kRequestedSize, b.Requested)
	}
	switch {
	case b.form.awaiting:
		l.add(kState, pickle.String, uint64(numKnown-1))
	case b.State != UnknownState:
		l.add(kState, pickle.String, uint64(firstState)+uint64(b.State))
	}
	if !b.form.noFrames {
		l.frames(b.Stack)
	}
	return l.pairs
}

// segmentPairs are the pairs of a segment but the blocks.
func (s *Snapshot) segmentPairs(dst []pair, g *Segment, extra []Field) []pair {
	l := pairList{dst, g.lacks | keysOf(extra)}
	l.int(kDevice, int64(g.Device))
	s.addr(&l, kAddress, g.Addr)
	l.int(kTotalSize, g.TotalSize)
	l.int(kAllocatedSize, g.AllocatedSize)
	l.int(kActiveSize, g.ActiveSize)
	l.int(kRequestedSize, g.RequestedSize)
	s.addr(&l, kStream, s.Streams[g.Stream])
	l.add(kSegmentType, pickle.String, uint64(max(g.Type, kEmpty)))
	l.add(kSegmentPoolID, pickle.Tuple, uint64(g.Pool))
	expandable := pickle.BoolValue(g.Expandable)
	l.add(kIsExpandable, expandable.Kind, expandable.N)
	l.frames(g.Stack)
	return l.pairs
}

func (s *Snapshot) historyPairs(dst []pair, h *historyEntry) []pair {
	l := pairList{dst, h.lacks | keysOf(h.extra)}
	s.addr(&l, kAddr, h.addr)
	l.int(kRealSize, h.size)
	l.frames(h.stack)
	return l.pairs
}

// keysOf are the known keys among fields. Keys that are not texts may be of a
// type that cannot be looked up.
func keysOf(fields []Field) (m keySet) {
	for _, f := range fields {
		if key, ok := f.Key.(string); ok && key != "" {
			m |= 1 << keyIndex[key]
		}
	}
	return m
}

// fields is an annotation as PyTorch writes it.
func (a *Annotation) fields() []Field {
	stage := "START"
	if a.End {
		stage = "END"
	}
	return withExtra([]Field{
		{"device", int64(a.Device)}, {"time_us", a.Time}, {"stage", stage}, {"name", a.Name},
	}, a.Extra, a.lacks)
}

// frameFields is a frame as PyTorch writes it.
func (s *Snapshot) frameFields(id stack.FrameID) []Field {
	f := s.Stacks.Recorded(id)
	x, _ := s.Stacks.Extra(id).(frameExtra)
	return withExtra([]Field{{"name", f.Function}, {"filename", f.File}, {"line", f.Line}}, x.fields, x.lacks)
}

// withExtra adds the extra fields, and removes what they replace or the
// record lacks.
func withExtra(fields, extra []Field, lacks keySet) []Field {
	skip := lacks | keysOf(extra)
	out := fields[:0]
	for _, f := range fields {
		if !skip.has(keyIndex[f.Key]) {
			out = append(out, f)
		}
	}
	return append(out, extra...)
}

// pairFields returns pairs as fields, with the extra fields.
func (s *Snapshot) pairFields(pairs []pair, extra []Field) []Field {
	out := make([]Field, 0, len(pairs)+len(extra))
	for _, p := range pairs {
		out = append(out, Field{keyNames[p.key], s.pairValue(p.v)})
	}
	return append(out, extra...)
}

func (s *Snapshot) pairValue(v pickle.Value) any {
	switch v.Kind {
	case pickle.Bool:
		return v.N == 1
	case pickle.Uint:
		return v.N
	case pickle.String:
		return s.Strings[v.N]
	case pickle.Tuple:
		p := s.Pools[v.N]
		return Tuple{p.Graph, p.User}
	case pickle.List:
		return s.stackValue(stack.ID(v.N))
	}
	return int64(v.N)
}

func (s *Snapshot) stackValue(id stack.ID) []any {
	out := []any{}
	for _, f := range s.Stacks.Frames(id) {
		out = append(out, s.frameFields(f))
	}
	return out
}

// historyField is the history of a block of 1.13 or 2.0, spelled out, unless
// there is none or extra has it.
func (s *Snapshot) historyField(history []historyEntry, extra []Field) []Field {
	if history == nil || keysOf(extra).has(kHistory) {
		return nil
	}
	out := []any{}
	for i := range history {
		out = append(out, s.pairFields(s.historyPairs(nil, &history[i]), history[i].extra))
	}
	return []Field{{"history", out}}
}
