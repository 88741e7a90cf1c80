package engine

import (
	"regexp"
	"strings"
	"sync"

	"strandline/face/api/page"
	"strandline/stack"
	"strandline/torch/tile"
)

// maxRows is how many rows of a table the page gets unless it asks for more.
const maxRows = 200

// newTable lists the first rows, and sums up the others.
func newTable[T any](b *tile.Bands, list []T, limit int, row func(*T) page.Row) page.Table {
	t := page.Table{Rows: []page.Row{}}
	for i := range list {
		r := row(&list[i])
		if i >= limit {
			t.More.Groups++
			t.More.Bytes += r.Bytes
			t.More.Count += r.Count
			continue
		}
		r.Key = b.Groups[r.Group].Key.String()
		t.Rows = append(t.Rows, r)
	}
	return t
}

func sumRow(s *tile.Sum) page.Row {
	return page.Row{Group: s.Group, Bytes: s.Bytes, Count: s.Count, Kept: s.Kept, Freed: s.Bytes - s.Kept - s.Pending, Pending: s.Pending}
}

func changeRow(c *tile.Change) page.Row {
	return page.Row{Group: c.Group, A: c.A, B: c.B, Bytes: c.Bytes(), Count: c.Count}
}

func (q *question) limit() (int, error) {
	n, err := q.number("limit", maxRows, 0, 1<<31)
	return int(n), err
}

func (q *question) at() (any, error) {
	d, b, k, err := q.groupedAt()
	if err != nil {
		return nil, err
	}
	limit, err := q.limit()
	if err != nil {
		return nil, err
	}
	sums := b.Live(k)
	doc := page.At{Event: k, Live: d.h.Live(k), Requested: d.requested.h.Live(k), Reserved: d.h.Reserved(k), Table: newTable(b, sums, limit, sumRow)}
	for _, s := range sums {
		doc.Count += s.Count
	}
	return doc, nil
}

// stretch is a range of events.
func (q *question) stretch(d *measured) (from, to int, err error) {
	if from, err = q.moment(d, "from"); err != nil {
		return
	}
	if to, err = q.moment(d, "to"); err == nil && to < from {
		err = wrong("the range ends before it begins")
	}
	return
}

func (q *question) compareEvents() (any, error) {
	d, b, err := q.grouped()
	if err != nil {
		return nil, err
	}
	from, to, err := q.stretch(d)
	if err != nil {
		return nil, err
	}
	limit, err := q.limit()
	if err != nil {
		return nil, err
	}
	sums := b.Made(from, to)
	doc := page.Range{Table: newTable(b, sums, limit, sumRow)}
	for _, s := range sums {
		doc.Bytes += s.Bytes
	}
	return doc, nil
}

func (q *question) diff() (any, error) {
	d, b, from, to, err := q.twoMoments()
	if err != nil {
		return nil, err
	}
	limit, err := q.limit()
	if err != nil {
		return nil, err
	}
	return page.Diff{A: d.h.Live(from), B: d.h.Live(to), Table: newTable(b, b.Changes(from, to), limit, changeRow)}, nil
}

func (q *question) find() (any, error) {
	d, b, err := q.grouped()
	if err != nil {
		return nil, err
	}
	text := q.text("q", "")
	re, err := regexp.Compile("(?i)" + text)
	if err != nil {
		return nil, wrong("%s", err)
	}
	allocs := allocsLike(d.h, b, re, strings.HasPrefix(strings.ToLower(text), "0x"))
	doc := page.Keys{Keys: []string{}}
	for i := range b.Groups {
		g := &b.Groups[i]
		if allocs[i] || re.MatchString(g.Label) || g.HasSite && (re.MatchString(g.Site.File) || re.MatchString(g.Site.Function)) {
			doc.Keys = append(doc.Keys, g.Key.String())
		}
	}
	return doc, nil
}

// allocsLike are the groups of allocations of which a frame or the address
// matches, if addresses are asked for.
func allocsLike(h *tile.History, b *tile.Bands, re *regexp.Regexp, addresses bool) map[int]bool {
	groups := map[int]bool{}
	matches := map[stack.ID]bool{}
	for i := range h.Allocs {
		id := h.Stack(i)
		match, known := matches[id]
		if !known {
			for _, f := range h.Snap.Stacks.Stack(id) {
				match = match || re.MatchString(f.File) || re.MatchString(f.Function)
			}
			matches[id] = match
		}
		if g := b.GroupOf(i); !groups[g] && (match || addresses && re.MatchString(address(h.Addr(i)))) {
			groups[g] = true
		}
	}
	return groups
}

func (q *question) flame() (any, error) {
	_, d, err := q.dev()
	if err != nil {
		return nil, err
	}
	var sums []tile.StackSum
	switch {
	case q.has("kept"):
		sums = d.h.KeptStacks()
	case q.has("k"):
		k, err := q.moment(d, "k")
		if err != nil {
			return nil, err
		}
		sums = d.h.LiveStacks(k)
	case q.has("a"):
		a, err := q.moment(d, "a")
		if err != nil {
			return nil, err
		}
		b, err := q.moment(d, "b")
		if err != nil {
			return nil, err
		}
		sums = d.h.StacksBetween(a, b)
	default:
		from, to, err := q.stretch(d)
		if err != nil {
			return nil, err
		}
		sums = d.h.MadeStacks(from, to)
	}
	f := tile.FlameOf(d.h.Snap.Stacks, sums)
	doc := d.frames.flame(d.h.Snap.Stacks, f)
	if q.has("a") {
		for _, n := range f.Nodes {
			doc.Nodes.Net = append(doc.Nodes.Net, n.Net)
		}
	}
	return doc, nil
}

func (d *frameDocs) flame(t *stack.Table, f tile.Flame) page.Flame {
	doc := page.Flame{Bytes: f.Nodes[0].Bytes, Count: f.Nodes[0].Count, Frames: []page.Frame{}, LeftOut: f.LeftOut}
	index := map[int]int{}
	for _, n := range f.Nodes {
		frame := n.Frame
		if frame >= 0 {
			i, ok := index[frame]
			if !ok {
				i = len(doc.Frames)
				index[frame] = i
				doc.Frames = append(doc.Frames, d.doc(t.At(stack.FrameID(frame))))
			}
			frame = i
		}
		doc.Nodes.Frame = append(doc.Nodes.Frame, frame)
		doc.Nodes.Parent = append(doc.Nodes.Parent, n.Parent)
		doc.Nodes.Bytes = append(doc.Nodes.Bytes, n.Bytes)
		doc.Nodes.Count = append(doc.Nodes.Count, n.Count)
	}
	return doc
}

var origins = map[stack.Origin]string{
	stack.Own: "own", stack.Torch: "torch", stack.Library: "library", stack.Generated: "generated", stack.Native: "native",
}

// frameDocs are the frames of a snapshot as the page has them. To find out whose code one is
// takes some microseconds, so each is looked at once.
type frameDocs struct {
	mu   sync.Mutex
	docs map[stack.Frame]page.Frame
}

func newFrameDoc(f stack.Frame) page.Frame {
	return page.Frame{Frame: f, Origin: origins[stack.OriginOf(f)]}
}

func (d *frameDocs) doc(f stack.Frame) page.Frame {
	d.mu.Lock()
	defer d.mu.Unlock()
	out, ok := d.docs[f]
	if !ok {
		out = newFrameDoc(f)
		if d.docs == nil {
			d.docs = map[stack.Frame]page.Frame{}
		}
		d.docs[f] = out
	}
	return out
}

// of returns the frames of a stack, nil if it was not recorded.
func (d *frameDocs) of(t *stack.Table, id stack.ID) []page.Frame {
	if id == stack.None {
		return nil
	}
	out := []page.Frame{}
	for _, f := range t.Short(id) {
		out = append(out, d.doc(f))
	}
	return out
}
