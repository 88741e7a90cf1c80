package ledger

import (
	"cmp"
	"slices"
	"strandline/host/event"
	"strandline/host/procfs"
	"strandline/host/symbolize"
	"strandline/judge/trend"
	"time"
)

// A Use is what the calls with one stack hold. Sizes are bytes.
type Use struct {
	symbolize.Stack
	ID       int      // of the stack, 0 if it is unknown
	Op       event.Op // of most of its bytes
	Kind     Kind
	Live     int64 // bytes mapped since the recording began that are mapped still
	Count    int64 // and in how many pieces
	Resident int64 // of Live, in memory; -1 if that cannot be read
	Calls    int64
	Size     int64 // of the largest piece
	Total    int64 // bytes that were made, of which Live are left
	// Inferred are those of Live whose own stack was not copied: it is that of
	// others of the same place and size.
	Inferred   int64
	Population *trend.Population

	causes []CauseID // that are of this use alone
}

// A Piece is memory that a use holds.
type Piece struct {
	Start, End uint64
	Use        int // index into [Sums.Uses]
	Resident   int64
}

// Sums are the figures of a trace.
type Sums struct {
	Uses []Use // most resident bytes first
	// Growth is of the resident memory of the processes that live, by kind.
	Growth, Anon, File, Shared int64
	Locked, Pinned, Threads    int64
	RSS                        int64 // at the end
	Explained                  *float64
	// Checkpoints are the moments at which growth is measured, in ns since the trace began;
	// Grown is how much the processes had grown at them.
	Checkpoints []uint64
	Grown       []int64
	// Older is what became resident, or ceased to be, in memory that was mapped
	// before; Unnamed is resident memory of calls without a stack, Unseen what the
	// kernel's list has and no call that was seen made.
	Older, Unnamed, Unseen int64
	// Pieces are what lives of the uses in the first process, by address.
	Pieces []Piece
	// Files are the stacks of the calls that made files in memory, held or not.
	Files map[procfs.FileID]symbolize.Stack
	// Blind reports whether no calls could be seen.
	Blind bool
	Age   time.Duration // of the first process; 0 if unknown
}

// minGrowth is the least growth, in bytes, of which a share is given.
const minGrowth = 256 << 10

// Sums sums up what is known by now. It changes nothing.
func (t *Trace) Sums() *Sums {
	s := &Sums{Grown: make([]int64, len(t.Ledger.Checkpoints())), Blind: t.blind()}
	s.Age, _ = t.Root.Age()
	for _, at := range t.Ledger.Checkpoints() {
		s.Checkpoints = append(s.Checkpoints, at-min(at, t.began))
	}
	for _, f := range t.Processes {
		if f.Ended {
			continue
		}
		s.RSS += int64(f.Last.RSS)
		s.Growth += int64(f.Last.RSS) - int64(f.First.RSS)
		s.Anon += int64(f.Last.Anon) - int64(f.First.Anon)
		s.File += int64(f.Last.File) - int64(f.First.File)
		s.Shared += int64(f.Last.Shared) - int64(f.First.Shared)
		s.Locked += int64(f.Last.Locked) - int64(f.First.Locked)
		s.Pinned += int64(f.Last.Pinned) - int64(f.First.Pinned)
		s.Threads += int64(f.Last.Threads) - int64(f.First.Threads)
		for i, rss := range f.rss {
			s.Grown[i] += rss - int64(f.First.RSS)
		}
	}
	s.Files = map[procfs.FileID]symbolize.Stack{}
	for id, stack := range t.files.stacks() {
		s.Files[id] = t.Stacks.At(stack)
	}
	kinds, resident, pieces := t.survey()
	s.Uses = t.Ledger.uses(t.Stacks, kinds, resident)
	s.place(pieces)
	var named, all int64
	for i := range s.Uses {
		all += max(s.Uses[i].Resident, 0)
		if len(s.Uses[i].Frames) > 0 {
			named += max(s.Uses[i].Resident, 0)
		}
	}
	s.Unseen = max(resident[Unseen], 0)
	s.Unnamed, s.Older = all-named, s.Growth-all-s.Unseen
	if s.Growth >= minGrowth {
		share := min(float64(named)/float64(s.Growth), 1)
		s.Explained = &share
	}
	return s
}

// place attributes the pieces of causes, of each of which Use is the cause, to the
// uses.
func (s *Sums) place(pieces []Piece) {
	of := map[CauseID]int{}
	for i := range s.Uses {
		for _, c := range s.Uses[i].causes {
			of[c] = i
		}
	}
	for _, p := range pieces {
		if use, ok := of[CauseID(p.Use)]; ok {
			p.Use = use
			s.Pieces = append(s.Pieces, p)
		}
	}
}

// maxPieces bounds how finely the addresses of uses are kept.
const maxPieces = 1 << 16

// survey reads, by cause, of what kind its memory is and how much of it is
// resident; -1 where that cannot be read. The pieces are of the first process,
// and have the cause in the place of the use.
func (t *Trace) survey() (kinds []Kind, resident []int64, pieces []Piece) {
	kinds, resident = make([]Kind, len(t.Ledger.Causes)), make([]int64, len(t.Ledger.Causes))
	for pid, space := range t.Ledger.spaces {
		pages, err := procfs.Process(pid).Pages()
		space.Each(func(iv *Interval) {
			kinds[iv.Cause] = iv.Kind
			switch {
			case iv.Cause == Before || resident[iv.Cause] < 0:
			case err != nil:
				resident[iv.Cause] = -1
			default:
				n, err := pages.Resident(iv.Start, iv.End)
				if err != nil {
					resident[iv.Cause] = -1
					return
				}
				resident[iv.Cause] += int64(n)
				if last := len(pieces) - 1; int(pid) != int(t.Root) || len(pieces) == maxPieces {
					return
				} else if last >= 0 && pieces[last].End == iv.Start && pieces[last].Use == int(iv.Cause) {
					pieces[last].End, pieces[last].Resident = iv.End, pieces[last].Resident+int64(n)
				} else {
					pieces = append(pieces, Piece{iv.Start, iv.End, int(iv.Cause), int64(n)})
				}
			}
		})
		if err == nil {
			pages.Close()
		}
	}
	return kinds, resident, pieces
}

// Uses joins what a ledger has by stack, most bytes first. How much of it is
// resident is not known.
func (l *Ledger) Uses(stacks *Stacks) []Use {
	unread := make([]int64, len(l.Causes))
	for i := range unread {
		unread[i] = -1
	}
	return l.uses(stacks, make([]Kind, len(l.Causes)), unread)
}

// uses joins the causes of a ledger by their stack. What a site made without a
// stack and what is inferred of none counts to the stacks of the site, by what
// these made.
func (l *Ledger) uses(all *Stacks, kinds []Kind, resident []int64) []Use {
	causes, populations := l.Causes, l.Populations()
	bySite := map[Site][]int{} // causes that have a stack
	for i, c := range causes {
		if c.Stack != 0 && !c.Inferred {
			bySite[c.Site] = append(bySite[c.Site], i)
		}
	}
	rows := map[int]*Use{}
	add := func(key int, i int, share float64, inferred bool) {
		c := &causes[i]
		u := rows[key]
		if u == nil {
			u = &Use{Population: trend.NewPopulation(len(l.checkpoints))}
			if key > 0 {
				u.Stack, u.ID = all.At(key), key
			}
			rows[key] = u
		}
		part := func(n int64) int64 { return int64(float64(n)*share + 0.5) }
		if u.Op == 0 || c.Live > u.Live {
			u.Op, u.Kind = c.Op, kinds[i]
		}
		if share == 1 {
			u.causes = append(u.causes, CauseID(i))
		}
		u.Live += part(c.Live)
		u.Count += part(c.Count)
		if u.Resident < 0 || resident[i] < 0 { // of what is partly unknown, the sum is
			u.Resident = -1
		} else {
			u.Resident += part(resident[i])
		}
		u.Calls += part(c.Calls)
		u.Total += part(c.Total)
		u.Size = max(u.Size, c.MaxSize)
		if inferred {
			u.Inferred += part(c.Live)
		}
		u.Population.MergeShare(populations[i], share)
	}
	for i := int(Unseen) + 1; i < len(causes); i++ {
		c := causes[i]
		if c.Calls == 0 && c.Live == 0 {
			continue
		}
		if c.Stack != 0 {
			add(c.Stack, i, 1, c.Inferred)
			continue
		}
		stacks := bySite[c.Site]
		var all float64
		for _, j := range stacks {
			all += float64(weight(&causes[j]))
		}
		for _, j := range stacks {
			add(causes[j].Stack, i, float64(weight(&causes[j]))/all, true)
		}
		if len(stacks) == 0 {
			add(-i, i, 1, false)
		}
	}
	out := make([]Use, 0, len(rows))
	for _, u := range rows {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b Use) int {
		return cmp.Or(cmp.Compare(b.Resident, a.Resident), cmp.Compare(b.Live, a.Live), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Op, b.Op))
	})
	return out
}

// weight is how likely it is that a call of the site had this stack.
func weight(m *Cause) int64 { return max(m.Live, m.Calls, 1) }
