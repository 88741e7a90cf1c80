package snapshot

import (
	"fmt"
	"math/big"
	"sort"

	"strandline/internal/budget"
	"strandline/stack"
	"strandline/torch/pickle"
	"strandline/units"
)

// A builder turns the values of a file into columns as they come. It is a
// [pickle.Handler]; JSON text drives it in the same way.
//
// Records are recognized bottom-up, by their keys: when the items of a dict
// arrive and it is an event, its values go to the columns and the dict is from
// then on the event's number. A dict that is not a known record is kept as it is.
//
// Its parts have a file each: objects.go (the class of each container),
// lists.go, recognize.go (which record a dict is), columns.go (where records
// go), values.go (single values), salvage.go (what a file that ends early still
// can give), plain.go (values without a column) and assemble.go (the snapshot of it
// all).
type builder struct {
	snap *Snapshot
	// size and read are how far the input is, to size the columns; size is 0
	// where it is not known.
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

	records
	fxFrames map[string]stack.FrameID // frames with extra, by content

	recognizer
	settling int // how deep settled is in itself
	late     int // records that grew after they had been read
	deep     int // stacks that were cut
	devices  int // that were left out
	budget   budget.Budget

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

// presence is which keys the file has at all: the version's fingerprint, and
// what the writer writes.
type presence struct {
	history, blockFrames, requested, time, poolInEvents, segmentPools, compile, metadata, annotate bool
	settings, annotations, host, host2, hostEvents                                                 bool
	category, traces, expandable                                                                   bool
	// signed is an address that the C++ writer stored as a negative number.
	signed bool
	// poolLists are pool ids of a pickle that was made from JSON.
	poolLists bool
}

func newBuilder() *builder {
	b := &builder{
		snap:    &Snapshot{Stacks: stack.NewTable(), Streams: nil},
		strings: make(map[string]StringID, 1024),
		streams: map[uint64]StreamID{},
		pools:   map[Pool]PoolID{},
		odd:     map[string]int{},
		plain:   map[pickle.Value]plain{},
	}
	b.details = make([]blockDetail, 1)
	b.unknown = map[string]bool{}
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

func (b *builder) String(text []byte) (uint64, error) {
	if id, ok := b.strings[string(text)]; ok {
		return uint64(id), nil
	}
	if err := b.budget.Spend(textBytes+len(text), "texts"); err != nil {
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
	if err := b.budget.Spend(textBytes+len(text), "bytes"); err != nil {
		return 0, err
	}
	b.texts = append(b.texts, append([]byte(nil), text...))
	return uint64(len(b.texts) - 1), nil
}

func (b *builder) BigInt(le []byte) (uint64, error) {
	if err := b.budget.Spend(textBytes+2*len(le), "large integers"); err != nil {
		return 0, err
	}
	b.bigInts = append(b.bigInts, pickle.BigIntOf(le))
	return uint64(len(b.bigInts) - 1), nil
}

func (b *builder) List() (uint64, error) {
	if b.objs.full() {
		if err := b.budget.Spend(4*objectPage, "lists"); err != nil {
			return 0, err
		}
	}
	return uint64(b.objs.add(0)), nil
}

func (b *builder) Dict() (uint64, error) {
	if b.objs.full() {
		if err := b.budget.Spend(4*objectPage, "dicts"); err != nil {
			return 0, err
		}
	}
	return uint64(b.objs.add(object(cEmptyDict) << classShift)), nil
}

func (b *builder) Tuple(items []pickle.Value) (uint64, error) { return b.addTuple(items) }

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
	if kind := b.recognize(pairs, b.snap.Strings); kind != rGeneric {
		if n, err := b.store(kind); err == nil {
			b.budget.Return(valueBytes * len(pairs))
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
			if kind := b.recognize(pairs, b.snap.Strings); kind != rGeneric {
				n, err := b.store(kind)
				*o = n
				return err
			}
		}
		if err := b.budget.Spend(dictBytes+valueBytes*len(pairs), "dicts"); err != nil {
			return err
		}
		b.dicts = append(b.dicts, append([]pickle.Value(nil), pairs...))
		n, err := b.newObject(cDict, len(b.dicts)-1)
		*o = n
		return err
	case cOther: // it is looked at once more
		if err := b.budget.Spend(valueBytes*len(b.dicts[o.index()]), "dicts that grow"); err != nil {
			return err
		}
		*o = object(cDict)<<classShift | object(o.index())
		fallthrough
	case cDict:
		if err := b.budget.Spend(valueBytes*len(pairs), "dicts"); err != nil {
			return err
		}
		b.dicts[o.index()] = append(b.dicts[o.index()], pairs...)
	default:
		b.late++
	}
	return nil
}

// oddities returns which values were not as the format requires.
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
		out = append(out, fmt.Sprintf("%s of frames longer than %d; the middle is left out", units.Plural(int64(b.deep), "list"), maxFrames))
	}
	if b.devices > 0 {
		out = append(out, fmt.Sprintf("what belongs to devices other than 0 to %d is left out (%s): PyTorch has no others", maxDevices-1, units.Plural(int64(b.devices), "item")))
	}
	if n := len(b.long); n > 0 {
		out = append(out, fmt.Sprintf("%s longer than %d bytes; the rest is shown nowhere", units.Plural(int64(n), "text"), maxName))
	}
	if b.late > 0 {
		out = append(out, fmt.Sprintf("%s written in several parts; the later parts are left out", units.Plural(int64(b.late), "record")))
	}
	return out
}
