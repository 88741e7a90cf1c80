package engine

import (
	"regexp"
	"strings"

	"strandline/stack"
	"strandline/torch/tile"
)

// mostRows is how many rows of a table the page gets unless it asks for more.
const mostRows = 200

type row struct {
	Key     string `json:"key"`
	Group   int    `json:"group"`
	Bytes   int64  `json:"bytes"`
	Count   int    `json:"count"`
	Kept    int64  `json:"kept"`
	Freed   int64  `json:"freed"`
	Pending int64  `json:"pending"`
	Peak    int64  `json:"peak"`
}

type more struct {
	Groups int   `json:"groups"`
	Bytes  int64 `json:"bytes"`
	Count  int   `json:"count"`
}

type atDoc struct {
	Event     int   `json:"event"`
	Live      int64 `json:"live"`
	Requested int64 `json:"requested"`
	Reserved  int64 `json:"reserved"`
	Count     int   `json:"count"`
	table
}

type table struct {
	Rows []row `json:"rows"`
	More more  `json:"more"`
}

func newTable(b *tile.Bands, sums []tile.Sum, limit int) table {
	t := table{Rows: []row{}}
	for i, s := range sums {
		if i >= limit {
			t.More.Groups++
			t.More.Bytes += s.Bytes
			t.More.Count += s.Count
			continue
		}
		g := &b.Groups[s.Group]
		t.Rows = append(t.Rows, row{g.Key.String(), s.Group, s.Bytes, s.Count, s.Kept, s.Bytes - s.Kept - s.Pending, s.Pending, g.Peak})
	}
	return t
}

func (q *question) limit() (int, error) {
	n, err := q.number("limit", mostRows, 0, 1<<31)
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
	doc := atDoc{Event: k, Live: d.h.Live(k), Requested: d.requested.h.Live(k), Reserved: d.h.Reserved(k), table: newTable(b, sums, limit)}
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

type rangeDoc struct {
	From  int   `json:"from"`
	To    int   `json:"to"`
	Bytes int64 `json:"bytes"`
	Count int   `json:"count"`
	table
}

func (q *question) between() (any, error) {
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
	doc := rangeDoc{From: from, To: to, table: newTable(b, sums, limit)}
	for _, s := range sums {
		doc.Bytes += s.Bytes
		doc.Count += s.Count
	}
	return doc, nil
}

type diffRow struct {
	Key   string `json:"key"`
	Group int    `json:"group"`
	A     int64  `json:"a"`
	B     int64  `json:"b"`
	Bytes int64  `json:"bytes"`
	Count int    `json:"count"`
}

type diffDoc struct {
	A    int64     `json:"a"`
	B    int64     `json:"b"`
	Rows []diffRow `json:"rows"`
	More more      `json:"more"`
}

func (q *question) diff() (any, error) {
	d, b, err := q.grouped()
	if err != nil {
		return nil, err
	}
	from, err := q.moment(d, "a")
	if err != nil {
		return nil, err
	}
	to, err := q.moment(d, "b")
	if err != nil {
		return nil, err
	}
	limit, err := q.limit()
	if err != nil {
		return nil, err
	}
	doc := diffDoc{A: d.h.Live(from), B: d.h.Live(to), Rows: []diffRow{}}
	for i, c := range b.Changes(from, to) {
		if i >= limit {
			doc.More.Groups++
			doc.More.Bytes += c.Bytes()
			doc.More.Count += c.Count
			continue
		}
		doc.Rows = append(doc.Rows, diffRow{b.Groups[c.Group].Key.String(), c.Group, c.A, c.B, c.Bytes(), c.Count})
	}
	return doc, nil
}

type keysDoc struct {
	Keys []string `json:"keys"`
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
	doc := keysDoc{Keys: []string{}}
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

type flameDoc struct {
	Bytes   int64      `json:"bytes"`
	Count   int        `json:"count"`
	Frames  []frameDoc `json:"frames"`
	Nodes   nodesDoc   `json:"nodes"`
	LeftOut int        `json:"left_out"`
}

type nodesDoc struct {
	Frame  []int   `json:"frame"`
	Parent []int   `json:"parent"`
	Bytes  []int64 `json:"bytes"`
	Count  []int   `json:"count"`
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
	default:
		from, to, err := q.stretch(d)
		if err != nil {
			return nil, err
		}
		sums = d.h.MadeStacks(from, to)
	}
	return newFlameDoc(d.h.Snap.Stacks, tile.FlameOf(d.h.Snap.Stacks, sums)), nil
}

func newFlameDoc(t *stack.Table, f tile.Flame) flameDoc {
	doc := flameDoc{Bytes: f.Nodes[0].Bytes, Count: f.Nodes[0].Count, Frames: []frameDoc{}, LeftOut: f.LeftOut}
	index := map[int]int{}
	for _, n := range f.Nodes {
		frame := n.Frame
		if frame >= 0 {
			i, ok := index[frame]
			if !ok {
				i = len(doc.Frames)
				index[frame] = i
				doc.Frames = append(doc.Frames, newFrameDoc(t.At(stack.FrameID(frame))))
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

type frameDoc struct {
	stack.Frame
	Origin string `json:"origin"`
}

var origins = map[stack.Origin]string{
	stack.Own: "own", stack.Torch: "torch", stack.Library: "library", stack.Generated: "generated", stack.Native: "native",
}

func newFrameDoc(f stack.Frame) frameDoc { return frameDoc{f, origins[stack.OriginOf(f)]} }

// framesOf is a stack, nil if nobody recorded it.
func framesOf(t *stack.Table, id stack.ID) []frameDoc {
	if id == stack.None {
		return nil
	}
	out := []frameDoc{}
	for _, f := range t.Short(id) {
		out = append(out, newFrameDoc(f))
	}
	return out
}
