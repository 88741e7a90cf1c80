package snapshot

import (
	"errors"

	"strandline/torch/pickle"
)

// An object identifies what a container is: a class and an index.
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
	cDict  // a dict that is not a known record (yet): index into dicts
	cOther // a dict that was found not to be one: index into dicts
	cFrame // the records: index into their columns
	cEvent
	cBlock
	cSegment
	cHistory
	cAnnotation
)

func (o object) class() class { return class(o >> classShift) }

func (o object) index() int { return int(o & indexMask) }

// listData is a list of records that are one after another in their columns,
// otherwise any items.
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

var errTooMany = errors.New("the file has more objects than can be numbered (2^28)")

func (b *builder) newObject(c class, index int) (object, error) {
	if index > indexMask {
		return 0, errTooMany
	}
	return object(c)<<classShift | object(index), nil
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

// length returns how many items a list has.
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
// is not a dict, for the first n items.
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
