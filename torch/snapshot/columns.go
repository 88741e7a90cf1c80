package snapshot

import (
	"fmt"

	"strandline/stack"
	"strandline/torch/pickle"
)

// records are the records of a file, each kind in the order of the file.
type records struct {
	events      Events
	eventExtra  []pendingExtra
	blocks      []Block
	details     []blockDetail
	segments    []Segment
	segLists    []segmentLists
	annotations []Annotation
	history     []historyEntry
	timeFrom    int // the first event with a time
}

// pendingExtra and the like keep values until the whole file is read: a
// container may be filled later than it is used.
type pendingExtra struct {
	index int
	pairs []pickle.Value
	lacks keySet
}

type blockDetail struct {
	history []historyEntry
	pairs   []pickle.Value
}

type historyEntry struct {
	addr  uint64
	size  int64
	stack stack.ID
	extra []Field
	lacks keySet
}

type segmentLists struct {
	blocks object
	pairs  []pickle.Value
}

// takeExtra is a copy of the pairs without a column.
func (b *builder) takeExtra() []pickle.Value {
	if len(b.extra) == 0 {
		return nil
	}
	b.budget.Spend(extraBytes+valueBytes*len(b.extra), "unknown keys")
	return append([]pickle.Value(nil), b.extra...)
}

// store adds the record in b.rec to its columns.
func (b *builder) store(kind record) (object, error) {
	if kind == rEvent {
		return b.event()
	}
	o, err := b.storeOther(kind)
	if spent := b.budget.Spend(recordBytes[kind], "records"); err == nil {
		err = spent
	}
	return o, err
}

func (b *builder) storeOther(kind record) (object, error) {
	switch kind {
	case rFrame:
		return b.frame()
	case rBlock:
		return b.block()
	case rSegment:
		return b.segment()
	case rHistory:
		h := historyEntry{addr: b.addr(kAddr), size: b.int(kRealSize), stack: b.stack(), lacks: b.lacks}
		h.extra = b.fields(b.extra)
		b.history = append(b.history, h)
		return b.newObject(cHistory, len(b.history)-1)
	default:
		return b.annotation()
	}
}

func (b *builder) frame() (object, error) {
	f := stack.Frame{File: b.text(kFilename), Function: b.text(kName), Line: b.int(kLine)}
	if len(b.extra) == 0 && b.lacks == 0 {
		id := b.snap.Stacks.Frame(f, nil)
		if id >= b.newFrame {
			b.newFrame = id + 1
			b.budget.Spend(2*frameBytes, "frames")
		}
		return b.newObject(cFrame, int(id))
	}
	content := fmt.Append(nil, f, b.lacks, b.extra)
	id, ok := b.fxFrames[string(content)]
	if !ok {
		b.budget.Spend(2*frameBytes+len(content), "frames")
		id = b.snap.Stacks.Frame(f, frameExtra{b.fields(b.extra), b.lacks})
		if b.fxFrames == nil {
			b.fxFrames = map[string]stack.FrameID{}
		}
		b.fxFrames[string(content)] = id
	}
	return b.newObject(cFrame, int(id))
}

func (b *builder) event() (object, error) {
	r, e := &b.rec, &b.events
	k := len(e.Action)
	if k == cap(e.Action) {
		if err := b.growEvents(); err != nil {
			return 0, err
		}
	}
	action := OtherAction
	if v := r[kAction]; v.Kind == pickle.String {
		action = actionOf(StringID(v.N))
	}
	if action == OtherAction {
		b.keep(kAction)
	}
	addr, other := kAddr, kDeviceFree
	if action == OOM {
		addr, other = kDeviceFree, kAddr
	}
	if r[other].Kind != absent {
		b.keep(other)
	}
	b.lacks &^= bit(other)
	a := b.addr(addr)
	if action == OOM && b.lacks.has(kDeviceFree) {
		a, _ = r[kAddr].Uint64()
	}
	e.Action = append(e.Action, action)
	e.Addr = append(e.Addr, a)
	e.Size = append(e.Size, b.int(kSize))
	e.Stream = append(e.Stream, b.streamOf())
	e.Stack = append(e.Stack, b.stack())
	if !b.lacks.has(kTimeUS) || e.Time != nil {
		if e.Time == nil {
			e.Time, b.timeFrom = make([]int64, k, cap(e.Action)), k
		}
		e.Time = append(e.Time, b.int(kTimeUS))
		b.present.time = true
	} else {
		b.lacks &^= bit(kTimeUS) // timeFrom replaces it
	}
	if r[kCompileContext].Kind != absent || e.CompileContext != nil {
		b.present.compile = true
		e.CompileContext = appendString(b, e.CompileContext, k, kCompileContext)
	}
	if r[kUserMetadata].Kind != absent || e.UserMetadata != nil {
		b.present.metadata = true
		e.UserMetadata = appendString(b, e.UserMetadata, k, kUserMetadata)
	}
	if r[kCategory].Kind != absent || e.Category != nil {
		b.present.category = true
		e.Category = appendString(b, e.Category, k, kCategory)
	}
	if r[kPoolID].Kind != absent || e.Pool != nil {
		b.present.poolInEvents = true
		if e.Pool == nil {
			e.Pool = make([]PoolID, k, cap(e.Action))
		}
		e.Pool = append(e.Pool, b.pool(kPoolID))
	}
	if action == Annotate {
		b.present.annotate = true
	}
	// Of these columns each element reports whether it is there.
	b.lacks &^= bit(kFrames, kCompileContext, kUserMetadata, kCategory, kPoolID)
	if len(b.extra) > 0 || b.lacks != 0 {
		b.eventExtra = append(b.eventExtra, pendingExtra{k, b.takeExtra(), b.lacks})
		if err := b.budget.Spend(extraBytes, "events with unknown keys"); err != nil {
			return 0, err
		}
	}
	return b.newObject(cEvent, k)
}

// appendString appends a text to a column that may begin only now.
func appendString(b *builder, column []StringID, event, key int) []StringID {
	if column == nil {
		column = make([]StringID, event, cap(b.events.Action))
	}
	return append(column, b.stringID(key))
}

// growEvents makes room, for as many events as the rest of the file can have at
// the density seen so far, where its size is known.
func (b *builder) growEvents() error {
	e := &b.events
	n := len(e.Action)
	want := max(1024, n+n/2)
	if read := b.read(); b.size > 0 && n > 0 && read > 0 && read < b.size {
		if all := int(float64(n) * float64(b.size) / float64(read) * 1.01); all > n {
			if int64(all-n)*2*eventBytes <= b.budget.Available() {
				want = max(all+64, n+n/8)
			}
		}
	}
	if err := b.budget.Spend(eventBytes*(want-n), "events"); err != nil {
		return err
	}
	e.Action = grown(e.Action, want)
	e.Addr = grown(e.Addr, want)
	e.Size = grown(e.Size, want)
	e.Stream = grown(e.Stream, want)
	e.Stack = grown(e.Stack, want)
	if e.Time != nil {
		e.Time = grown(e.Time, want)
	}
	if e.Pool != nil {
		e.Pool = grown(e.Pool, want)
	}
	for _, c := range []*[]StringID{&e.CompileContext, &e.UserMetadata, &e.Category} {
		if *c != nil {
			*c = grown(*c, want)
		}
	}
	return nil
}

func grown[T any](s []T, capacity int) []T {
	out := make([]T, len(s), capacity)
	copy(out, s)
	return out
}

func (b *builder) block() (object, error) {
	r := &b.rec
	block := Block{
		Addr: b.addr(kAddress), Size: b.int(kSize), Requested: b.int(kRequestedSize), State: UnknownState, Stack: b.stack(),
		form: blockForm{
			noRequested: b.lacks.has(kRequestedSize), noFrames: b.lacks.has(kFrames),
			noAddress: b.lacks.has(kAddress) || r[kAddress].Kind == pickle.None,
		},
	}
	if v := r[kState]; v.Kind == pickle.String {
		block.State = stateOf(StringID(v.N))
		block.form.awaiting = v.N == uint64(numKnown-1)
	}
	if block.State == UnknownState {
		b.odd["state"]++
		b.keep(kState)
	}
	if block.form.noRequested { // it is unknown: at most this
		block.Requested = block.Size
	}
	b.present.requested = b.present.requested || !block.form.noRequested
	b.present.blockFrames = b.present.blockFrames || !block.form.noFrames
	detail := blockDetail{}
	if r[kHistory].Kind != absent {
		b.present.history = true
		detail.history = b.historyOf()
		if len(detail.history) > 0 { // newest first
			if !block.form.noFrames {
				b.keep(kFrames)
			}
			h := detail.history[0]
			block.Stack = h.stack
			if block.form.noRequested {
				block.Requested = h.size
			}
		}
	}
	detail.pairs = b.takeExtra()
	if detail.history != nil || detail.pairs != nil {
		b.details = append(b.details, detail)
		block.detail = uint32(len(b.details) - 1)
	}
	b.blocks = append(b.blocks, block)
	return b.newObject(cBlock, len(b.blocks)-1)
}

func (b *builder) historyOf() []historyEntry {
	out := []historyEntry{}
	v := b.rec[kHistory]
	if v.Kind != pickle.List {
		b.strange(kHistory)
		return out
	}
	list := *b.objs.at(v.N)
	n := b.budget.Afford(b.length(list), historyBytes, "entries of histories")
	if n > 0 {
		out = make([]historyEntry, 0, n)
	}
	b.each(list, n, func(o object) {
		if o.class() == cHistory {
			out = append(out, b.history[o.index()])
		}
	})
	return out
}

func (b *builder) segment() (object, error) {
	r := &b.rec
	s := Segment{
		Device: int(b.int(kDevice)), Addr: b.addr(kAddress), TotalSize: b.int(kTotalSize),
		AllocatedSize: b.int(kAllocatedSize), ActiveSize: b.int(kActiveSize), RequestedSize: b.int(kRequestedSize),
		Stream: b.streamOf(), Type: b.stringID(kSegmentType), Pool: b.pool(kSegmentPoolID), Stack: b.stack(), lacks: b.lacks,
	}
	if v := r[kIsExpandable]; v.Kind == pickle.Bool {
		s.Expandable = v.N == 1
	} else if v.Kind != absent {
		b.strange(kIsExpandable)
	}
	b.present.segmentPools = b.present.segmentPools || !s.lacks.has(kSegmentPoolID)
	b.present.expandable = b.present.expandable || !s.lacks.has(kIsExpandable)
	b.segments = append(b.segments, s)
	lists := segmentLists{blocks: object(cEmptyList) << classShift}
	if v := r[kBlocks]; v.Kind == pickle.List {
		lists.blocks = *b.objs.at(v.N)
	} else if v.Kind != absent {
		b.strange(kBlocks)
	}
	lists.pairs = b.takeExtra()
	b.segLists = append(b.segLists, lists)
	return b.newObject(cSegment, len(b.segments)-1)
}

func (b *builder) annotation() (object, error) {
	a := Annotation{Name: b.text(kName), Device: int(b.int(kDevice)), Time: b.int(kTimeUS), lacks: b.lacks}
	switch stage := b.rec[kStage]; {
	case stage.Kind == pickle.String && b.snap.Strings[stage.N] == "END":
		a.End = true
	case stage.Kind != pickle.String || b.snap.Strings[stage.N] != "START":
		b.keep(kStage)
	}
	a.Extra = b.fields(b.extra)
	b.annotations = append(b.annotations, a)
	return b.newObject(cAnnotation, len(b.annotations)-1)
}
