package engine

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"strandline/face/api/page"
	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/torch/compare"
	"strandline/torch/ranges"
	"strandline/torch/snapshot"
	"strandline/torch/tile"
	"strandline/torch/timeline"
	"strandline/units"
)

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
		return page.Hit{Band: none}, nil
	}
	return page.Hit{Alloc: &hit.Alloc, Band: hit.Band, Y0: hit.Below, Bytes: d.h.Size(hit.Alloc)}, nil
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
	doc := page.Alloc{
		Alloc: i, Bytes: h.Size(i), Address: address(h.Addr(i)), Birth: h.Birth(i), Freed: orNull(h.Freed(i)), Death: orNull(h.Death(i)),
		Fate:  h.FateOf(i).String(),
		Keys:  map[string]string{string(b.Grouping): b.Groups[b.GroupOf(i)].Key.String()},
		Stack: d.frames.of(h.Snap.Stacks, h.Stack(i)), Missing: h.Missing(i),
	}
	if pool, stream, ok := h.PlaceOf(i); ok {
		text := pool.String()
		doc.Pool, doc.Stream = &text, &stream
	}
	if !d.segments {
		doc.Bytes, doc.Purpose = d.requested.h.Size(i), h.Purpose(i, d.purposes()[i])
		if r := d.replayed.Load(); r != nil && r.sizes != nil {
			doc.Block = &r.sizes[i]
		}
	}
	doc.Notes = d.notes(doc.Birth)
	if times := h.Trace.Time; times != nil {
		if doc.Birth >= 0 {
			doc.Born = &times[doc.Birth]
		}
		if doc.Death != nil {
			doc.Died = &times[*doc.Death]
		}
	}
	if doc.Freed != nil {
		doc.FreeStack = d.frames.of(h.Snap.Stacks, h.Trace.Stack[*doc.Freed])
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

func (q *question) event() (any, error) {
	d, k, err := q.devAt()
	if err != nil {
		return nil, err
	}
	doc := d.event(k)
	if k >= 0 {
		doc.Stack, doc.Notes = d.frames.of(d.h.Snap.Stacks, d.h.Trace.Stack[k]), d.notes(k)
		if i, ok := d.requested.h.Made(k); ok && d.h.Trace.Action[k] == snapshot.Alloc {
			doc.Missing = d.requested.h.Missing(i)
		}
	}
	return doc, nil
}

// notes are the texts of event k, none before the first.
func (d *measured) notes(k int) (out page.Notes) {
	s, e := d.h.Snap, &d.h.Trace.Events
	if k >= 0 && e.UserMetadata != nil {
		out.Metadata = s.String(e.UserMetadata[k])
	}
	if k >= 0 && e.CompileContext != nil {
		out.Compile = s.String(e.CompileContext[k])
	}
	return out
}

func (d *measured) event(k int) page.Event {
	h, e := d.h, &d.h.Trace.Events
	doc := page.Event{Event: k, Live: h.Live(k), Requested: d.requested.h.Live(k), Reserved: h.Reserved(k)}
	if k < 0 {
		return doc
	}
	action := e.Action[k].String()
	doc.Action, doc.Bytes = &action, &e.Size[k]
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

// maxEvents is how many events one answer lists.
const maxEvents = 500

func (q *question) events() (any, error) {
	_, d, err := q.dev()
	if err != nil {
		return nil, err
	}
	from, to, err := q.stretch(d)
	if err != nil {
		return nil, err
	}
	if q.has("q") {
		return q.eventsLike(d, from, to)
	}
	doc := page.Events{Events: []page.Event{}}
	for k := max(from, 0); k <= to && len(doc.Events) < maxEvents; k++ {
		doc.Events = append(doc.Events, d.event(k))
	}
	return doc, nil
}

// eventsLike are the events from … to whose action, address, size, or a frame of whose
// stack matches.
func (q *question) eventsLike(d *measured, from, to int) (any, error) {
	re, err := regexp.Compile("(?i)" + q.text("q", ""))
	if err != nil {
		return nil, wrong("%s", err)
	}
	e, table := &d.h.Trace.Events, d.h.Snap.Stacks
	stacks := map[stack.ID]bool{}
	inStack := func(id stack.ID) bool {
		match, known := stacks[id]
		if !known {
			match = slices.ContainsFunc(table.Stack(id), func(f stack.Frame) bool {
				return re.MatchString(fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Function))
			})
			stacks[id] = match
		}
		return match
	}
	doc := page.Events{Events: []page.Event{}}
	for k := max(from, 0); k <= to; k++ {
		switch {
		case !re.MatchString(e.Action[k].String()) && !inStack(e.Stack[k]) && !re.MatchString(address(e.Addr[k])) && !re.MatchString(units.Bytes(e.Size[k])):
		case len(doc.Events) < maxEvents:
			doc.Events = append(doc.Events, d.event(k))
		default:
			doc.More++
		}
	}
	return doc, nil
}

func (q *question) next() (any, error) {
	d, k, err := q.devAt()
	if err != nil {
		return nil, err
	}
	event, err := d.next(k, q.text("to", ""), q.has("back"))
	return page.Next{Event: event}, err
}

// sorts are the events that next goes to, by name, beside peaks.
var destinations = map[string]func(a snapshot.Action) bool{
	"oom":  func(a snapshot.Action) bool { return a == snapshot.OOM },
	"mark": func(a snapshot.Action) bool { return a == snapshot.OOM || a == snapshot.SnapshotTaken },
	"segment": func(a snapshot.Action) bool {
		return a == snapshot.SegmentAlloc || a == snapshot.SegmentFree || a == snapshot.SegmentMap || a == snapshot.SegmentUnmap
	},
}

// next is the first event of a sort after event k, or with back the last before it;
// nil if there is none.
func (d *measured) next(k int, to string, back bool) (*int, error) {
	if to == "peak" {
		return orNull(d.h.NextPeak(k, back)), nil
	}
	match, ok := destinations[to]
	if !ok {
		return nil, wrong("to is peak, oom, mark or segment, not %q", to)
	}
	step := 1
	if back {
		step = -1
	}
	for i := k + step; i >= 0 && i < d.h.Events(); i += step {
		if match(d.h.Trace.Action[i]) {
			return &i, nil
		}
	}
	return nil, nil
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
	doc    page.State
	d      *device
	h      *tile.History
	b      *tile.Bands
	live   map[uint64]int // allocations by address
	taken  ranges.List[int32]
	takers map[compare.Place]*page.Taker
	stacks map[stack.ID]int // in doc.Stacks
	states []byte
	strand []page.Strand // by group
}

// state is the allocator's state after event k.
func (d *measured) state(b *tile.Bands, k int) *page.State {
	h, sizes := d.h, []int64(nil)
	if r := d.replayed.Load(); r != nil {
		sizes = r.sizes
	}
	segments, notes := h.StateBefore(k+1, sizes)
	blocks := 0
	for i := range segments {
		blocks += len(segments[i].Blocks)
	}
	w := stater{d: d.device, h: h, b: b, stacks: map[stack.ID]int{}, live: map[uint64]int{}, taken: h.TakenBy(k), takers: map[compare.Place]*page.Taker{}, strand: make([]page.Strand, len(b.Groups))}
	h.EachLive(k, func(i int) bool {
		w.live[h.Addr(i)] = i
		return true
	})
	w.doc = page.State{Event: k, Exact: sizes != nil || k+1 == h.Events(), Notes: append([]string{}, notes...), Segments: make([]page.Segment, 0, len(segments)), Stacks: [][]page.Frame{}, Strands: []page.Strand{}, Takers: []page.Taker{},
		Blocks: page.Blocks{Offset: make([]int64, 0, blocks), Size: make([]int64, 0, blocks), Requested: make([]int64, 0, blocks), Alloc: make([]int, 0, blocks), Group: make([]int, 0, blocks)}}
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
	sortBy(w.doc.Strands, func(s *page.Strand) int64 { return -s.Bytes })
	for _, x := range w.takers {
		w.doc.Takers = append(w.doc.Takers, *x)
	}
	sorts.By(w.doc.Takers, func(a, b page.Taker) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(nameOf(a.Site), nameOf(b.Site)), cmp.Compare(a.Missing, b.Missing))
	})
	if e := &h.Trace.Events; k >= 0 && e.Action[k] < snapshot.OOM {
		w.doc.Changed = &page.Changed{Address: address(e.Addr[k]), Size: e.Size[k]}
	}
	return &w.doc
}

func nameOf(f *stack.Frame) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// taker counts the memory of a segment for those who took it, and returns the stack of the
// first part of it, and why no line of own code is known of that.
func (w *stater) taker(g *snapshot.Segment) (stack.ID, timeline.Missing) {
	s, end := w.h.Snap, g.Addr+uint64(g.TotalSize)
	own, why := g.Stack, w.h.MissingOf(g.Stack, true)
	count := func(id stack.ID, missing timeline.Missing, bytes int64) {
		site := s.Stacks.Site(id)
		at := compare.Place{Site: site, Missing: missing}
		x := w.takers[at]
		if x == nil {
			x = &page.Taker{Missing: missing}
			if site != (stack.Site{}) {
				x.Site = &stack.Frame{File: site.File, Line: site.Line, Function: site.Function}
			}
			w.takers[at] = x
		}
		x.Bytes += bytes
		x.Count++
	}
	rest := g.TotalSize
	for r := range w.taken.AtLeast(g.Addr, 0) {
		if r.Start >= end {
			break
		}
		id, bytes := w.h.Trace.Stack[r.Value], int64(min(r.End, end)-max(r.Start, g.Addr))
		missing := w.h.MissingOf(id, false)
		if own <= stack.Empty {
			own, why = id, missing
		}
		count(id, missing, bytes)
		rest -= bytes
	}
	if rest > 0 {
		count(g.Stack, w.h.MissingOf(g.Stack, true), rest)
	}
	return own, why
}

// stack is the place of a stack in the list of them, none if it was not recorded.
func (w *stater) stack(id stack.ID) int {
	if id == stack.None {
		return none
	}
	i, ok := w.stacks[id]
	if !ok {
		i = len(w.doc.Stacks)
		w.stacks[id] = i
		w.doc.Stacks = append(w.doc.Stacks, w.d.frames.of(w.h.Snap.Stacks, id))
	}
	return i
}

func (w *stater) segment(g *snapshot.Segment) {
	s := w.h.Snap
	pool := s.PoolOf(g.Pool)
	took, why := w.taker(g)
	doc := page.Segment{Address: address(g.Addr), Size: g.TotalSize, Pool: pool.String(), Private: pool.Private(), Stream: s.Stream(g.Stream),
		Type: s.String(g.Type), Expandable: g.Expandable, First: len(w.states), Blocks: len(g.Blocks), Stack: w.stack(took), Missing: why}
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
