package engine

import (
	"strandline/torch/snapshot"
	"strandline/torch/tile"
	"strandline/torch/timeline"
)

type hitDoc struct {
	Alloc *int  `json:"alloc"`
	Band  int   `json:"band"`
	Y0    int64 `json:"y0"`
	Bytes int64 `json:"bytes"`
}

func (q *question) hit() (any, error) {
	d, b, k, err := q.groupedAt()
	if err != nil {
		return nil, err
	}
	y, err := q.number("y", missing, 0, 1<<62)
	if err != nil {
		return nil, err
	}
	solo, err := q.keys("solo")
	if err != nil {
		return nil, err
	}
	hit, ok := b.Hit(k, y, solo)
	if !ok {
		return hitDoc{Band: none}, nil
	}
	return hitDoc{&hit.Alloc, hit.Band, hit.Below, d.h.Size(hit.Alloc)}, nil
}

type allocDoc struct {
	Alloc     int               `json:"alloc"`
	Bytes     int64             `json:"bytes"`
	Block     *int64            `json:"block"`
	Address   string            `json:"address"`
	Birth     int               `json:"birth"`
	Freed     *int              `json:"freed"`
	Death     *int              `json:"death"`
	Born      *int64            `json:"born_us"`
	Died      *int64            `json:"died_us"`
	Stream    *uint64           `json:"stream"`
	Pool      *string           `json:"pool"`
	Purpose   string            `json:"purpose"`
	Fate      string            `json:"fate"`
	Keys      map[string]string `json:"keys"`
	Missing   timeline.Missing  `json:"missing,omitempty"`
	Stack     []frameDoc        `json:"stack"`
	FreeStack []frameDoc        `json:"free_stack"`
}

func (q *question) alloc() (any, error) {
	d, b, err := q.grouped()
	if err != nil {
		return nil, err
	}
	i, err := q.whichAlloc(d)
	if err != nil {
		return nil, err
	}
	h := d.h
	doc := allocDoc{
		Alloc: i, Bytes: d.requested.h.Size(i), Address: address(h.Addr(i)), Birth: h.Birth(i), Freed: orNull(h.Freed(i)), Death: orNull(h.Death(i)),
		Purpose: d.purposes()[i].String(), Fate: h.FateOf(i).String(),
		Keys:  map[string]string{string(b.Grouping): b.Groups[b.GroupOf(i)].Key.String()},
		Stack: framesOf(h.Snap.Stacks, h.Stack(i)), Missing: h.Missing(i),
	}
	if pool, stream, ok := h.PlaceOf(i); ok {
		text := pool.String()
		doc.Pool, doc.Stream = &text, &stream
	}
	if r := d.replayed.Load(); r != nil && r.sizes != nil {
		doc.Block = &r.sizes[i]
	}
	if times := h.Trace.Time; times != nil {
		if doc.Birth >= 0 {
			doc.Born = &times[doc.Birth]
		}
		if doc.Death != nil {
			doc.Died = &times[*doc.Death]
		}
	}
	if doc.Freed != nil {
		doc.FreeStack = framesOf(h.Snap.Stacks, h.Trace.Stack[*doc.Freed])
	}
	return doc, nil
}

// whichAlloc is the allocation that is asked for, by its number or by an event.
func (q *question) whichAlloc(d *measured) (int, error) {
	if q.has("k") {
		k, err := q.moment(d, "k")
		if err != nil {
			return 0, err
		}
		i, ok := d.h.Made(k)
		if !ok {
			return 0, absent("event %d neither makes nor frees an allocation", k)
		}
		return i, nil
	}
	i, err := q.number("i", missing, 0, int64(len(d.h.Allocs))-1)
	return int(i), err
}

type eventDoc struct {
	Event     int        `json:"event"`
	Action    *string    `json:"action"`
	Bytes     *int64     `json:"bytes"`
	Address   *string    `json:"address"`
	Time      *int64     `json:"time_us"`
	Place     *int64     `json:"place"`
	Stream    *uint64    `json:"stream"`
	Alloc     *int       `json:"alloc"`
	Live      int64      `json:"live"`
	Requested int64      `json:"requested"`
	Reserved  int64      `json:"reserved"`
	Stack     []frameDoc `json:"stack,omitempty"`
	// Missing is why an allocation has no line of own code.
	Missing timeline.Missing `json:"missing,omitempty"`
}

func (q *question) event() (any, error) {
	d, k, err := q.devAt()
	if err != nil {
		return nil, err
	}
	doc := d.event(k)
	if k >= 0 {
		doc.Stack = framesOf(d.h.Snap.Stacks, d.h.Trace.Stack[k])
		if i, ok := d.h.Made(k); ok && d.h.Trace.Action[k] == snapshot.Alloc {
			doc.Missing = d.h.Missing(i)
		}
	}
	return doc, nil
}

func (d *measured) event(k int) eventDoc {
	h, e := d.h, &d.h.Trace.Events
	doc := eventDoc{Event: k, Live: h.Live(k), Requested: d.requested.h.Live(k), Reserved: h.Reserved(k)}
	if k < 0 {
		return doc
	}
	action, stream := e.Action[k].String(), h.Snap.Stream(e.Stream[k])
	doc.Action, doc.Bytes, doc.Stream = &action, &e.Size[k], &stream
	if e.Action[k] != snapshot.OOM {
		text := address(e.Addr[k])
		doc.Address = &text
	}
	if axis := d.time(); axis != nil {
		place := axis.Place(k)
		doc.Time, doc.Place = &e.Time[k], &place
	}
	if i, ok := h.Made(k); ok {
		doc.Alloc = &i
	}
	return doc
}

// mostEvents is how many events one answer lists.
const mostEvents = 500

func (q *question) events() (any, error) {
	_, d, err := q.dev()
	if err != nil {
		return nil, err
	}
	from, to, err := q.stretch(d)
	if err != nil {
		return nil, err
	}
	out := []eventDoc{}
	for k := max(from, 0); k <= to && len(out) < mostEvents; k++ {
		out = append(out, d.event(k))
	}
	return map[string]any{"events": out}, nil
}

func (q *question) next() (any, error) {
	d, k, err := q.devAt()
	if err != nil {
		return nil, err
	}
	back := q.has("back")
	sorts := map[string]func(a snapshot.Action) bool{
		"oom":  func(a snapshot.Action) bool { return a == snapshot.OOM },
		"mark": func(a snapshot.Action) bool { return a == snapshot.OOM || a == snapshot.SnapshotTaken },
		"segment": func(a snapshot.Action) bool {
			return a == snapshot.SegmentAlloc || a == snapshot.SegmentFree || a == snapshot.SegmentMap || a == snapshot.SegmentUnmap
		},
	}
	to := q.text("to", "")
	if to == "peak" {
		return map[string]any{"event": orNull(d.h.NextPeak(k, back))}, nil
	}
	match, ok := sorts[to]
	if !ok {
		return nil, wrong("to is peak, oom, mark or segment, not %q", to)
	}
	step := 1
	if back {
		step = -1
	}
	for i := k + step; i >= 0 && i < d.h.Events(); i += step {
		if match(d.h.Trace.Action[i]) {
			return map[string]any{"event": i}, nil
		}
	}
	return map[string]any{"event": nil}, nil
}

type stateDoc struct {
	Event      int          `json:"event"`
	Exact      bool         `json:"exact"`
	Notes      []string     `json:"notes"`
	Reserved   int64        `json:"reserved"`
	Allocated  int64        `json:"allocated"`
	Pending    int64        `json:"pending"`
	Slack      int64        `json:"slack"`
	Free       int64        `json:"free"`
	Releasable int64        `json:"releasable"`
	Stranded   int64        `json:"stranded"`
	Segments   []segmentDoc `json:"segments"`
	Blocks     blocksDoc    `json:"blocks"`
	Strands    []strandDoc  `json:"strands"`
	Changed    *changedDoc  `json:"changed"`
}

type segmentDoc struct {
	Address    string     `json:"address"`
	Size       int64      `json:"size"`
	Pool       string     `json:"pool"`
	Private    bool       `json:"private"`
	Stream     uint64     `json:"stream"`
	Type       string     `json:"type"`
	Expandable bool       `json:"expandable"`
	First      int        `json:"first"`
	Blocks     int        `json:"blocks"`
	Releasable int64      `json:"releasable"`
	Ranges     [][2]int64 `json:"ranges"`
	Stranded   int64      `json:"stranded"`
	Stack      []frameDoc `json:"stack"`
}

type blocksDoc struct {
	Offset    []int64 `json:"offset"`
	Size      []int64 `json:"size"`
	Requested []int64 `json:"requested"`
	State     string  `json:"state"`
	Alloc     []int   `json:"alloc"`
	Group     []int   `json:"group"`
}

type strandDoc struct {
	Key   string `json:"key"`
	Group int    `json:"group"`
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
}

type changedDoc struct {
	Address string `json:"address"`
	Size    int64  `json:"size"`
	Action  string `json:"action"`
}

func (q *question) state() (any, error) {
	d, b, k, err := q.groupedAt()
	if err != nil {
		return nil, err
	}
	return d.state(b, k), nil
}

// stater writes the allocator's state after an event.
type stater struct {
	doc    stateDoc
	h      *tile.History
	b      *tile.Bands
	live   map[uint64]int // allocations by address
	states []byte
	strand []strandDoc // by group
}

// state is the allocator's state after event k.
func (d *measured) state(b *tile.Bands, k int) *stateDoc {
	h, sizes := d.h, []int64(nil)
	if r := d.replayed.Load(); r != nil {
		sizes = r.sizes
	}
	segments, notes := h.StateBefore(k+1, sizes)
	w := stater{h: h, b: b, live: map[uint64]int{}, strand: make([]strandDoc, len(b.Groups))}
	h.EachLive(k, func(i int) bool {
		w.live[h.Addr(i)] = i
		return true
	})
	w.doc = stateDoc{Event: k, Exact: sizes != nil || k+1 == h.Events(), Notes: append([]string{}, notes...), Segments: []segmentDoc{}, Strands: []strandDoc{},
		Blocks: blocksDoc{Offset: []int64{}, Size: []int64{}, Requested: []int64{}, Alloc: []int{}, Group: []int{}}}
	for i := range segments {
		w.segment(&segments[i])
	}
	w.doc.Blocks.State = string(w.states)
	for g, s := range w.strand {
		if s.Bytes > 0 {
			s.Group, s.Key = g, b.Groups[g].Key.String()
			w.doc.Strands = append(w.doc.Strands, s)
		}
	}
	sortBy(w.doc.Strands, func(s *strandDoc) int64 { return -s.Bytes })
	if e := &h.Trace.Events; k >= 0 && e.Action[k] < snapshot.OOM {
		w.doc.Changed = &changedDoc{address(e.Addr[k]), e.Size[k], e.Action[k].String()}
	}
	return &w.doc
}

func (w *stater) segment(g *snapshot.Segment) {
	s := w.h.Snap
	pool := s.PoolOf(g.Pool)
	doc := segmentDoc{Address: address(g.Addr), Size: g.TotalSize, Pool: pool.String(), Private: pool.Private(), Stream: s.Stream(g.Stream),
		Type: s.String(g.Type), Expandable: g.Expandable, First: len(w.states), Blocks: len(g.Blocks), Stack: framesOf(s.Stacks, g.Stack)}
	free := g.Free()
	doc.Releasable = timeline.Releasable(s, g)
	doc.Ranges = append([][2]int64{}, timeline.ReleasableRanges(s, g)...)
	doc.Stranded = free - doc.Releasable
	w.doc.Reserved += g.TotalSize
	w.doc.Free += free
	w.doc.Releasable += doc.Releasable
	w.doc.Stranded += doc.Stranded
	shares := timeline.Strand(g, doc.Stranded)
	for i := range g.Blocks {
		w.block(g, &g.Blocks[i], shares[i])
	}
	w.doc.Segments = append(w.doc.Segments, doc)
}

func (w *stater) block(g *snapshot.Segment, b *snapshot.Block, share int64) {
	alloc, group, requested := none, none, int64(0)
	letter := byte('f')
	if b.State.Active() {
		requested, letter = b.Requested, 'a'
		if i, ok := w.live[b.Addr]; ok {
			alloc, group = i, w.b.GroupOf(i)
			w.strand[group].Bytes += share
			w.strand[group].Count++
		}
		if w.doc.Allocated += b.Size; b.State == snapshot.Pending {
			letter = 'p'
			w.doc.Allocated -= b.Size
			w.doc.Pending += b.Size
		}
		w.doc.Slack += b.Size - b.Requested
	}
	w.states = append(w.states, letter)
	x := &w.doc.Blocks
	x.Offset, x.Size = append(x.Offset, int64(b.Addr-g.Addr)), append(x.Size, b.Size)
	x.Requested, x.Alloc, x.Group = append(x.Requested, requested), append(x.Alloc, alloc), append(x.Group, group)
}
