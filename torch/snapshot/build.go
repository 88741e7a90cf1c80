package snapshot

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strings"

	"strandline/stack"
	"strandline/torch/pickle"
)

// A builder turns the values of a file into columns as they come. It is a
// [pickle.Handler]; JSON text drives it in the same way.
//
// Records are told bottom-up, by their keys: when the items of a dict arrive
// and it is an event, its values go to the columns and the dict is from then
// on the event's number. What is no known record is kept as it is.
type builder struct {
	snap *Snapshot
	// size and read tell how far the input is, to size the columns; size is 0
	// where nobody knows.
	size int64
	read func() int64

	objs    paged // what each container is: an object
	strings map[string]StringID
	long    map[StringID]string // those that are cut in snap.Strings
	streams map[uint64]StreamID
	pools   map[Pool]PoolID

	lists   []listData // of objects that are lists but no stacks
	dicts   [][]pickle.Value
	tuples  tupleStore
	bigInts []*big.Int
	texts   [][]byte
	frames  []stack.FrameID // scratch

	events      Events
	eventExtra  []pendingExtra
	blocks      []Block
	details     []blockDetail
	segments    []Segment
	segLists    []segmentLists
	annotations []Annotation
	history     []historyEntry
	fxFrames    map[string]stack.FrameID // frames with extra, by content
	timeFrom    int                      // the first event with a time

	rec      [numKeys]pickle.Value
	settling int      // how deep settled is in itself
	shape    struct { // of the record in rec, if all its keys have columns
		kind record
		keys []uint64
	}
	extra   []pickle.Value // keys and values without a column, of the record at hand
	lacks   keySet         // the columns without a key, likewise
	unknown map[string]bool
	late    int // records that grew after they had been read
	deep    int // stacks that were cut
	devices int // that were left out
	budget  budget

	newFrame stack.FrameID // the first one not charged for
	odd      map[string]int
	last     struct { // the previous event's stream, as most are the same
		stream   uint64
		streamID StreamID
	}
	present presence
	plain   map[pickle.Value]plain

	salvaged pickle.Value // the outermost container of a file that ended early
}

// presence says which keys the file has at all: the version's fingerprint, and
// what the writer writes.
type presence struct {
	history, blockFrames, requested, time, poolInEvents, segmentPools, compile, metadata, annotate bool
	settings, annotations, host, host2                                                             bool
	category, traces, expandable                                                                   bool
	// signed is an address that the C++ writer stored as a negative number.
	signed bool
	// poolLists are pool ids of a pickle that was made from JSON.
	poolLists bool
}

// pendingExtra and its kin keep values until the whole file is read: a
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
	Addr  uint64
	Size  int64
	Stack stack.ID
	extra []Field
	lacks keySet
}

type segmentLists struct {
	blocks object
	pairs  []pickle.Value
}

// An object is what a container turned out to be: a class and an index.
type object uint32

const (
	classShift = 28
	indexMask  = 1<<classShift - 1
)

type class uint32

const (
	cEmptyList class = iota
	cEmptyDict
	cStack // a list of frames: the stack's id
	cList  // any other list: index into lists
	cDict  // a dict that is no known record (yet): index into dicts
	cOther // a dict that was found to be none, likewise
	cFrame // the records: index into their columns
	cEvent
	cBlock
	cSegment
	cHistory
	cAnnotation
)

func (o object) class() class { return class(o >> classShift) }
func (o object) index() int   { return int(o & indexMask) }

// listData is a list of records that stand one after another in their columns,
// or else any items.
type listData struct {
	of       class // of the records, 0 for any items
	used     bool  // by a segment or a trace
	first, n int
	items    []pickle.Value
}

// paged is a growing array that is never copied.
type paged struct {
	pages [][]object
	n     int
}

const objectPage = 1 << 14

func (p *paged) add(o object) int {
	if p.n == len(p.pages)*objectPage {
		p.pages = append(p.pages, make([]object, objectPage))
	}
	p.pages[p.n/objectPage][p.n%objectPage] = o
	p.n++
	return p.n - 1
}

func (p *paged) full() bool { return p.n == len(p.pages)*objectPage }

func (p *paged) at(i uint64) *object { return &p.pages[i/objectPage][i%objectPage] }

func newBuilder() *builder {
	b := &builder{
		snap:    &Snapshot{Stacks: stack.NewTable(), Streams: nil},
		strings: make(map[string]StringID, 1024),
		streams: map[uint64]StreamID{},
		pools:   map[Pool]PoolID{},
		unknown: map[string]bool{},
		odd:     map[string]int{},
		plain:   map[pickle.Value]plain{},
		details: make([]blockDetail, 1),
		budget:  budget{limit: leastBytes},
	}
	for i, k := range knownStrings() {
		b.snap.Strings = append(b.snap.Strings, k)
		if i > 0 {
			b.strings[k] = StringID(i)
		}
	}
	b.snap.Pools = []Pool{{}}
	b.stream(0)
	return b
}

var errTooMany = errors.New("the file has more objects than can be numbered (2^28)")

func (b *builder) newObject(c class, index int) (object, error) {
	if index > indexMask {
		return 0, errTooMany
	}
	return object(c)<<classShift | object(index), nil
}

func (b *builder) String(text []byte) (uint64, error) {
	if id, ok := b.strings[string(text)]; ok {
		return uint64(id), nil
	}
	if err := b.spend(textBytes+len(text), "texts"); err != nil {
		return 0, err
	}
	s := string(text)
	id := StringID(len(b.snap.Strings))
	b.strings[s] = id
	if len(s) > maxName {
		if b.long == nil {
			b.long = map[StringID]string{}
		}
		b.long[id] = s
		s = clipName(s)
	}
	b.snap.Strings = append(b.snap.Strings, s)
	return uint64(id), nil
}

func (b *builder) Bytes(text []byte) (uint64, error) {
	if err := b.spend(textBytes+len(text), "bytes"); err != nil {
		return 0, err
	}
	b.texts = append(b.texts, append([]byte(nil), text...))
	return uint64(len(b.texts) - 1), nil
}

func (b *builder) BigInt(le []byte) (uint64, error) {
	if err := b.spend(textBytes+2*len(le), "large integers"); err != nil {
		return 0, err
	}
	b.bigInts = append(b.bigInts, pickle.BigIntOf(le))
	return uint64(len(b.bigInts) - 1), nil
}

func (b *builder) List() (uint64, error) {
	if b.objs.full() {
		if err := b.spend(4*objectPage, "lists"); err != nil {
			return 0, err
		}
	}
	return uint64(b.objs.add(0)), nil
}

func (b *builder) Dict() (uint64, error) {
	if b.objs.full() {
		if err := b.spend(4*objectPage, "dicts"); err != nil {
			return 0, err
		}
	}
	return uint64(b.objs.add(object(cEmptyDict) << classShift)), nil
}

func (b *builder) Tuple(items []pickle.Value) (uint64, error) { return b.addTuple(items) }

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
		if err := b.spend(listBytes, "lists"); err != nil {
			return err
		}
		if o.class() == cStack { // frames that came in several batches
			data = listData{of: cFrame, n: -1}
			if err := b.spend(2*valueBytes*len(b.snap.Stacks.Frames(stack.ID(o.index()))), "frames of stacks"); err != nil {
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
			if len(l.items) > maxListed { // one more, to tell
				break
			}
			l.items = append(l.items, pickle.Value{Kind: pickle.Dict, N: uint64(b.objs.at(v.N).index())})
		}
		return b.spend(valueBytes*len(items), "frames of stacks")
	}
	before := len(l.items)
	if before > 0 && cap(l.items)-before < len(items) {
		l.items = slices.Grow(l.items, len(items))
	}
	for i, v := range items {
		b.appendItem(l, v, len(items)-i)
	}
	if made := len(l.items) - before; made > 0 {
		return b.spend(valueBytes*made, "items of lists")
	}
	return b.budget.err
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
		err = b.budget.err
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

// rangeItem marks an item of listData.items that is an object itself.
const rangeItem = pickle.Mark

// objectOf is the object of an item of a list, and whether it is a record.
func (b *builder) objectOf(v pickle.Value) (object, bool) {
	switch v.Kind {
	case rangeItem:
		return object(v.N), true
	case pickle.Dict:
		return b.settled(v.N), true
	}
	return 0, false
}

// settled is the object of a dict; one that was filled key by key becomes the
// record that it is. Records hold records, such as a block its frames, but only
// a made-up file nests them deeply, or in themselves.
func (b *builder) settled(dict uint64) object {
	const deepest = 8
	o := b.objs.at(dict)
	if o.class() != cDict || b.settling == deepest {
		return *o
	}
	b.settling++
	rec, extra, lacks := b.rec, b.extra, b.lacks // of the record that asks
	b.extra, b.shape.keys = nil, nil
	defer func() {
		b.settling--
		b.rec, b.extra, b.lacks, b.shape.keys = rec, extra, lacks, nil
	}()
	was := *o
	pairs := b.dicts[was.index()]
	*o = object(cEmptyDict) << classShift // as long as it is looked at
	if kind := b.sort(pairs); kind != rGeneric {
		if n, err := b.finish(kind); err == nil {
			b.budget.spent -= int64(valueBytes * len(pairs))
			b.dicts[was.index()] = nil
			*o = n
			return n
		}
	}
	was = object(cOther)<<classShift | object(was.index())
	*o = was
	return was
}

// SetItems fills a dict. A record whose keys come at once, as all writers but
// those of protocol 0 put them, goes to its columns right away.
func (b *builder) SetItems(dict uint64, pairs []pickle.Value) error {
	o := b.objs.at(dict)
	switch o.class() {
	case cEmptyDict:
		if len(pairs) > 2 {
			if kind := b.sort(pairs); kind != rGeneric {
				n, err := b.finish(kind)
				*o = n
				return err
			}
		}
		if err := b.spend(dictBytes+valueBytes*len(pairs), "dicts"); err != nil {
			return err
		}
		b.dicts = append(b.dicts, append([]pickle.Value(nil), pairs...))
		n, err := b.newObject(cDict, len(b.dicts)-1)
		*o = n
		return err
	case cOther: // it is looked at once more
		if err := b.spend(valueBytes*len(b.dicts[o.index()]), "dicts that grow"); err != nil {
			return err
		}
		*o = object(cDict)<<classShift | object(o.index())
		fallthrough
	case cDict:
		if err := b.spend(valueBytes*len(pairs), "dicts"); err != nil {
			return err
		}
		b.dicts[o.index()] = append(b.dicts[o.index()], pairs...)
	default:
		b.late++
	}
	return nil
}

// sort puts the values of a dict into b.rec by key, the rest into b.extra, and
// tells the record.
func (b *builder) sort(pairs []pickle.Value) record {
	b.extra = b.extra[:0]
	if b.again(pairs) {
		return b.shape.kind
	}
	b.shape.keys = b.shape.keys[:0]
	kind := b.sortAny(pairs)
	if kind != rGeneric && len(b.extra) == 0 {
		b.shape.kind = kind
		for i := 0; i < len(pairs); i += 2 {
			b.shape.keys = append(b.shape.keys, pairs[i].N)
		}
	}
	return kind
}

// again sorts a record that has the keys of the one before, as most have: what
// was absent there is absent here.
func (b *builder) again(pairs []pickle.Value) bool {
	keys := b.shape.keys
	if len(pairs) != 2*len(keys) || len(keys) == 0 {
		return false
	}
	for i, k := range keys {
		if key := pairs[2*i]; key.Kind != pickle.String || key.N != k {
			return false
		}
		b.rec[k] = pairs[2*i+1]
	}
	return true
}

func (b *builder) sortAny(pairs []pickle.Value) record {
	var mask keySet
	for i := 0; i < len(pairs); i += 2 {
		if k := pairs[i]; k.Kind == pickle.String && k.N < numKeys {
			b.rec[k.N] = pairs[i+1]
			mask |= 1 << k.N
		} else {
			b.extra = append(b.extra, k, pairs[i+1])
		}
	}
	kind := recordOf(mask)
	if kind == rGeneric {
		return kind
	}
	b.lacks = columns[kind] &^ mask
	for missing := b.lacks; missing != 0; missing &= missing - 1 {
		b.rec[missing.first()] = pickle.Value{Kind: absent}
	}
	if rest := mask &^ columns[kind]; rest != 0 {
		for ; rest != 0; rest &= rest - 1 {
			b.keep(rest.first())
		}
	}
	if len(b.extra) > 0 {
		for i := 0; i < len(b.extra); i += 2 {
			if k := b.extra[i]; k.Kind == pickle.String {
				b.know(kind, b.snap.Strings[k.N])
			}
		}
	}
	return kind
}

// absent is the kind of a key that the record does not have.
const absent = pickle.Mark

// knownExtras are keys of PyTorch's that are kept but need no column.
var knownExtras = map[string]bool{
	"forward_frames": true, "internal_metadata": true,
	"fx_node_op": true, "fx_node_name": true, "fx_node_target": true, "fx_node_info": true, "fx_original_trace": true,
}

func (b *builder) know(kind record, key string) {
	const most = 64
	if name := recordNames[kind] + "." + key; !knownExtras[key] && len(b.unknown) < most {
		b.unknown[name] = true
	}
}

// keep puts the value of a key among those without a column.
func (b *builder) keep(k int) {
	b.extra = append(b.extra, pickle.Value{Kind: pickle.String, N: uint64(k)}, b.rec[k])
}

// takeExtra is a copy of the pairs without a column.
func (b *builder) takeExtra() []pickle.Value {
	if len(b.extra) == 0 {
		return nil
	}
	b.spend(extraBytes+valueBytes*len(b.extra), "unknown keys")
	return append([]pickle.Value(nil), b.extra...)
}

// finish stores the record in b.rec.
func (b *builder) finish(kind record) (object, error) {
	if kind == rEvent {
		return b.event()
	}
	o, err := b.finishOther(kind)
	if spent := b.spend(recordBytes[kind], "records"); err == nil {
		err = spent
	}
	return o, err
}

func (b *builder) finishOther(kind record) (object, error) {
	switch kind {
	case rFrame:
		return b.frame()
	case rBlock:
		return b.block()
	case rSegment:
		return b.segment()
	case rHistory:
		h := historyEntry{Addr: b.addr(kAddr), Size: b.int(kRealSize), Stack: b.stack(), lacks: b.lacks}
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
			b.spend(2*frameBytes, "frames")
		}
		return b.newObject(cFrame, int(id))
	}
	content := fmt.Append(nil, f, b.lacks, b.extra)
	id, ok := b.fxFrames[string(content)]
	if !ok {
		b.spend(2*frameBytes+len(content), "frames")
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
		b.lacks &^= bit(kTimeUS) // told by timeFrom
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
	// Of these columns each element tells whether it is there.
	b.lacks &^= bit(kFrames, kCompileContext, kUserMetadata, kCategory, kPoolID)
	if len(b.extra) > 0 || b.lacks != 0 {
		b.eventExtra = append(b.eventExtra, pendingExtra{k, b.takeExtra(), b.lacks})
		if err := b.spend(extraBytes, "events with unknown keys"); err != nil {
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
	if read := b.read(); b.size > 0 && n >= 16<<10 && read > 0 && read < b.size {
		if all := int(float64(n) * float64(b.size) / float64(read) * 1.01); all > n {
			b.raise()
			if left := b.budget.limit - b.budget.spent; int64(all-n)*2*eventBytes <= left {
				want = all + 64
			}
		}
	}
	if err := b.spend(eventBytes*(want-n), "events"); err != nil {
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
	if block.form.noRequested { // it is no less than nothing: at most this
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
			block.Stack = h.Stack
			if block.form.noRequested {
				block.Requested = h.Size
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
	n := b.afford(b.length(list), historyBytes, "entries of histories")
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

// length is how many items a list has.
func (b *builder) length(list object) int {
	if list.class() != cList {
		return 0
	}
	l := &b.lists[list.index()]
	if l.items == nil {
		return max(0, l.n)
	}
	return len(l.items)
}

// each calls f with the records of a list, in order, and with 0 for an item that
// is no dict, for the first n items.
func (b *builder) each(list object, n int, f func(object)) {
	if list.class() != cList {
		return
	}
	l := b.lists[list.index()]
	if l.items == nil {
		for i := range min(n, l.n) {
			f(object(l.of)<<classShift | object(l.first+i))
		}
		return
	}
	for _, v := range l.items[:min(n, len(l.items))] {
		o, _ := b.objectOf(v)
		f(o)
	}
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

// clipName is the beginning of a name that is longer than any that a person reads.
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

// oddities says which values were not what the format says.
func (b *builder) oddities() (out []string) {
	for what, n := range b.odd {
		values := "values"
		if n == 1 {
			values = "value"
		}
		out = append(out, fmt.Sprintf("%d %s of %q of an unexpected type", n, values, what))
	}
	sort.Strings(out)
	if b.deep > 0 {
		out = append(out, fmt.Sprintf("%d lists of frames are longer than %d; the middle of each is left out", b.deep, maxFrames))
	}
	if b.devices > 0 {
		out = append(out, fmt.Sprintf("what belongs to devices other than 0 to %d is left out (%d items): PyTorch has no others", maxDevices-1, b.devices))
	}
	if n := len(b.long); n > 0 {
		out = append(out, fmt.Sprintf("%d texts are longer than %d bytes; the rest of each is shown nowhere", n, maxName))
	}
	if b.late > 0 {
		out = append(out, fmt.Sprintf("%d records are written in several parts; the later parts are left out", b.late))
	}
	return out
}
