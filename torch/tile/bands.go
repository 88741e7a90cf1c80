package tile

import (
	"cmp"
	"sort"

	"strandline/internal/sorts"
	"strandline/torch/timeline"
)

// A Fate is how an allocation ended.
type Fate uint8

// The fates, from the bottom of a picture to its top.
const (
	Kept    Fate = iota // alive at the snapshot
	Freed               // gone by then
	Pending             // freed by the program, and waiting for another stream
	fates
)

func (f Fate) String() string { return [...]string{"kept", "freed", "pending"}[f] }

// FateOf is the fate of allocation i.
func (h *History) FateOf(i int) Fate {
	switch {
	case h.Death(i) != timeline.Never:
		return Freed
	case h.Freed(i) != timeline.Never:
		return Pending
	}
	return Kept
}

// A Band is the allocations of one group and one fate.
type Band struct {
	Group  int // index into Bands.Groups
	Fate   Fate
	Before bool // all of it is older than the recording
	Peak   int64
	Allocs int
}

// Bands is a history cut into bands.
type Bands struct {
	Grouping Grouping
	Groups   []Group // highest peak first
	Bands    []Band  // bottom to top
	Kept     int     // the number of kept bands, which are the lowest
	Lanes    []Lane  // largest first

	h         *History
	of        []int32 // band of an allocation
	every     int     // events between checkpoints
	keyframes []int64 // bytes of all bands before event 0, every, 2·every, …
}

// NewBands groups the allocations of a history. The order of the bands, from
// below: what is kept, by mean birth; what is freed, the longest-lived first;
// what is pending. The means are weighted by bytes.
func NewBands(h *History, g Grouping) (*Bands, error) {
	groups, err := newGrouper(h, g)
	if err != nil {
		return nil, err
	}
	b := &Bands{Grouping: g, h: h, of: make([]int32, len(h.Allocs))}
	b.sort(groups)
	b.sweep()
	b.sortGroups()
	b.findLanes()
	return b, nil
}

// weighed holds what the order of bands is based on.
type weighed struct {
	band          Band
	bytes         float64
	births, lives float64 // sums weighted by bytes
	key           Key
}

// sort makes the bands and puts them in order.
func (b *Bands) sort(x *grouper) {
	h := b.h
	var found []weighed
	var index []int32 // group and fate → found
	for i := range b.of {
		group, fate := x.of(i), h.FateOf(i)
		id := int(group)*int(fates) + int(fate)
		for len(index) <= id {
			index = append(index, none)
		}
		n := index[id]
		if n == none {
			n = int32(len(found))
			index[id] = n
			found = append(found, weighed{band: Band{Group: int(group), Fate: fate, Before: true}, key: x.groups[group].Key})
		}
		b.of[i] = n
		w, birth, end := &found[n], h.Birth(i), h.Death(i)
		if end == timeline.Never {
			end = h.Events()
		}
		size := float64(max(h.Size(i), 1))
		w.bytes += size
		w.births += size * float64(birth)
		w.lives += size * float64(end-birth)
		w.band.Before = w.band.Before && birth == timeline.Never
		w.band.Allocs++
		x.groups[group].Allocs++
		if fate == Kept {
			x.groups[group].Kept += h.Size(i)
		}
	}
	order := make([]int32, len(found))
	for i := range order {
		order[i] = int32(i)
	}
	sorts.By(order, func(i, j int32) int { return found[i].compare(&found[j]) })
	place := make([]int32, len(found))
	for to, from := range order {
		place[from] = int32(to)
		b.Bands = append(b.Bands, found[from].band)
		if found[from].band.Fate == Kept {
			b.Kept++
		}
	}
	for i := range b.of {
		b.of[i] = place[b.of[i]]
	}
	b.Groups = x.groups
}

func (w *weighed) compare(v *weighed) int {
	if c := cmp.Compare(w.band.Fate, v.band.Fate); c != 0 {
		return c
	}
	if w.band.Before != v.band.Before {
		if w.band.Before {
			return -1
		}
		return 1
	}
	c := cmp.Compare(w.births/w.bytes, v.births/v.bytes)
	if w.band.Fate == Freed {
		c = cmp.Compare(v.lives/v.bytes, w.lives/w.bytes)
	}
	return cmp.Or(c, cmp.Compare(w.key, v.key))
}

// Checkpoints are this many events apart, or twice, four times … as many, so
// that they take no more than so many values.
const (
	shortestEvery = 4096
	maxMarks      = 4 << 20
)

// sweep goes through the events, keeps checkpoints and finds the peaks.
func (b *Bands) sweep() {
	h, n := b.h, len(b.Bands)
	for b.every = shortestEvery; (h.Events()/b.every+1)*n > maxMarks; {
		b.every *= 2
	}
	now := make([]int64, n)
	byGroup := make([]int64, len(b.Groups))
	for i := range h.Allocs {
		if !h.Before(i) {
			break
		}
		now[b.of[i]] += h.Size(i)
	}
	for i, v := range now {
		b.Bands[i].Peak = v
		byGroup[b.Bands[i].Group] += v
	}
	for g, v := range byGroup {
		b.Groups[g].Peak, b.Groups[g].PeakAt = v, timeline.Never
	}
	b.keyframes = append(b.keyframes, now...)
	for from := 0; from < h.Events(); from += b.every {
		if from > 0 {
			b.keyframes = append(b.keyframes, now...)
		}
		h.changes(from, min(from+b.every, h.Events()), func(k int, alloc int32, bytes int64) {
			i := b.of[alloc]
			now[i] += bytes
			band := &b.Bands[i]
			byGroup[band.Group] += bytes
			if bytes > 0 {
				band.Peak = max(band.Peak, now[i])
				if g := &b.Groups[band.Group]; byGroup[band.Group] > g.Peak {
					g.Peak, g.PeakAt = byGroup[band.Group], k
				}
			}
		})
	}
}

// sortGroups puts the group of the highest peak first.
func (b *Bands) sortGroups() {
	order := make([]int, len(b.Groups))
	for i := range order {
		order[i] = i
	}
	sorts.By(order, func(i, j int) int {
		x, y := &b.Groups[i], &b.Groups[j]
		return cmp.Or(cmp.Compare(y.Peak, x.Peak), cmp.Compare(x.Key, y.Key))
	})
	groups, place := make([]Group, len(order)), make([]int, len(order))
	for to, from := range order {
		groups[to], place[from] = b.Groups[from], to
	}
	b.Groups = groups
	for i := range b.Bands {
		b.Bands[i].Group = place[b.Bands[i].Group]
	}
}

// GroupOf is the group of allocation i.
func (b *Bands) GroupOf(i int) int { return b.Bands[b.of[i]].Group }

// A cursor is the bytes of all bands after an event, and moves.
type cursor struct {
	b   *Bands
	now []int64
	k   int // the state is before this event
}

// cursor is at the last checkpoint before the state after event k, and then
// moves there.
func (b *Bands) cursor(k int) *cursor {
	c := &cursor{b: b, now: make([]int64, len(b.Bands))}
	c.jump(k + 1)
	return c
}

func (c *cursor) jump(k int) {
	n := len(c.now)
	keyframe := min(k/c.b.every, max(len(c.b.keyframes)/max(n, 1)-1, 0))
	copy(c.now, c.b.keyframes[keyframe*n:])
	c.k = keyframe * c.b.every
	c.walk(k)
}

// move goes to the state after event k.
func (c *cursor) move(k int) {
	if k+1 < c.k || (k+1)/c.b.every > c.k/c.b.every {
		c.jump(k + 1)
		return
	}
	c.walk(k + 1)
}

func (c *cursor) walk(to int) {
	of, now := c.b.of, c.now
	c.b.h.changes(c.k, to, func(_ int, alloc int32, bytes int64) { now[of[alloc]] += bytes })
	c.k = to
}

// At is the bytes of all bands after event k.
func (b *Bands) at(k int) []int64 { return b.cursor(k).now }

// A Lane is a kept band that grows all the time: a hint for the eye, no verdict.
type Lane struct {
	Band   int
	From   int64   // kept bytes when the history begins
	To     int64   // and at its end
	Points []int64 // kept bytes after evenly spaced events
}

const (
	lanePoints = 512
	laneAllocs = 4    // at least
	laneSpread = 0.25 // of the events, in which the middle half of the bytes is made, at least
)

// findLanes finds the bands that grow in each quarter of the history.
func (b *Bands) findLanes() {
	n := b.h.Events()
	if n < lanePoints {
		return
	}
	points := make([][]int64, b.Kept)
	for i := range b.h.Allocs {
		band := b.of[i]
		if int(band) >= b.Kept || b.Bands[band].Allocs < laneAllocs {
			continue
		}
		if points[band] == nil {
			points[band] = make([]int64, lanePoints+1)
		}
		points[band][place(b.h.Birth(i), n)] += b.h.Size(i)
	}
	for band, p := range points {
		for i := 1; i < len(p); i++ {
			p[i] += p[i-1]
		}
		if grows(p) && b.named(band) {
			b.Lanes = append(b.Lanes, Lane{Band: band, From: p[0], To: p[lanePoints], Points: p[1:]})
		}
	}
	sort.SliceStable(b.Lanes, func(i, j int) bool {
		return b.Lanes[i].To-b.Lanes[i].From > b.Lanes[j].To-b.Lanes[j].From
	})
}

// named reports whether it is known who made a band, or whether it is grouped by
// something else.
func (b *Bands) named(band int) bool {
	switch b.Grouping {
	case ByLine, ByFunction, ByFile, ByStack:
		return b.Groups[b.Bands[band].Group].HasSite
	}
	return true
}

// place is the point that counts what event k makes; 0 is for what is older.
func place(k, events int) int {
	if k < 0 {
		return 0
	}
	return 1 + int(int64(k)*lanePoints/int64(events))
}

// grows reports whether the points are of a sum that rises in each quarter, most of it not at once.
func grows(p []int64) bool {
	if p == nil {
		return false
	}
	const quarter = lanePoints / 4
	if !(p[quarter] < p[2*quarter] && p[2*quarter] < p[3*quarter] && p[3*quarter] < p[lanePoints]) {
		return false
	}
	total := p[lanePoints]
	from := sort.Search(len(p), func(i int) bool { return p[i] >= total/4 })
	to := sort.Search(len(p), func(i int) bool { return p[i] >= total/4*3 })
	return float64(to-from) > laneSpread*lanePoints
}
