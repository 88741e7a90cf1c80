package ledger

import (
	"cmp"
	"slices"
	"strandline/host/calls/event"
	"strandline/host/code/symbolize"
	"strandline/host/proc/procfs"
	"strandline/internal/sorts"
	"strandline/trend"
	"time"
)

// A Use is what the calls with one stack hold. Sizes are in bytes.
type Use struct {
	symbolize.Stack
	ID       int      // of the stack, 0 if it is unknown
	Op       event.Op // of the calls that made most of its bytes
	Kind     Kind
	Live     int64 // bytes mapped since the recording began that are still mapped
	Count    int64 // the number of pieces they are in
	Resident int64 // the part of Live that is in memory; -1 if that cannot be read
	// Filled is the part of Live that other processes filled: shared memory that is in
	// memory and in no page table of the process.
	Filled int64
	Calls  int64
	Size   int64 // of the largest piece
	Total  int64 // bytes that were made, of which Live remain
	// Inferred is the part of Live whose own stack was not copied: the stack is that of
	// other calls from the same place and of the same size.
	Inferred   int64
	Population *trend.Population
	Shares     []Share // most bytes first; nothing of processes that have ended is live

	causes []CauseID // those that belong to this use only
}

// A Share is the live part of a use in one process, in bytes and pieces.
type Share struct {
	PID         uint32
	Live, Count int64
}

// A Process is a live process, with its size and growth in bytes.
type Process struct {
	PID           uint32
	Name, Command string
	Role          string // what it does, such as "rank 3"; empty if unknown
	RSS, Growth   int64
	Age           time.Duration // 0 if unknown
}

// A Piece is memory that a use holds in a process.
type Piece struct {
	PID        uint32
	Start, End uint64
	Use        int // index into [Sums.Uses]
	Resident   int64
}

// Sums are the figures of a trace.
type Sums struct {
	Uses []Use // most resident bytes first
	// Processes are the live ones, the first process first, then by growth.
	Processes []Process
	// Growth is the growth of the resident memory of the live processes, by kind.
	Growth, Anon, File, Shared int64
	locked, pinned, Threads    int64
	RSS                        int64 // at the end
	Explained                  *float64
	// Checkpoints are the moments at which growth is measured, in ns since the trace
	// began; Grown is how much the processes had grown by then, and GrownAnon the part of
	// it that is private.
	Checkpoints      []uint64
	Grown, GrownAnon []int64
	// Older is what became resident, or ceased to be, in memory that was mapped before;
	// Unnamed is resident memory from calls without a stack; Unseen is memory that is
	// in the kernel's list and that no call was seen to make.
	Older, Unnamed, Unseen int64
	// Pieces are the live pieces of the uses, by process, and by address within each.
	Pieces []Piece
	// Files are the stacks of the calls that made in-memory files, whether or not they
	// are still held.
	Files map[procfs.FileID]symbolize.Stack
	// Blind reports whether no calls could be seen.
	Blind bool
	Age   time.Duration // of the first process; 0 if unknown
	// Ended reports whether the first process has since ended by itself.
	Ended bool
}

// minGrowth is the least growth, in bytes, for which a share is given.
const minGrowth = 256 << 10

// Sums sums up what is known by now. It changes nothing.
func (t *Trace) Sums() *Sums {
	marks := len(t.Ledger.Checkpoints())
	s := &Sums{Grown: make([]int64, marks), GrownAnon: make([]int64, marks), Blind: t.blind()}
	s.Age, _ = t.Root.Age()
	for _, at := range t.Ledger.Checkpoints() {
		s.Checkpoints = append(s.Checkpoints, at-min(at, t.began))
	}
	for _, f := range t.Processes {
		if f.Ended {
			continue
		}
		s.Processes = append(s.Processes, Process{PID: uint32(f.Process), Name: f.last.Name, RSS: int64(f.last.RSS), Growth: int64(f.last.RSS) - int64(f.First.RSS)})
		s.RSS += int64(f.last.RSS)
		s.Growth += int64(f.last.RSS) - int64(f.First.RSS)
		s.Anon += int64(f.last.Anon) - int64(f.First.Anon)
		s.File += int64(f.last.File) - int64(f.First.File)
		s.Shared += int64(f.last.Shared) - int64(f.First.Shared)
		s.locked += int64(f.last.Locked) - int64(f.First.Locked)
		s.pinned += int64(f.last.Pinned) - int64(f.First.Pinned)
		s.Threads += int64(f.last.Threads) - int64(f.First.Threads)
		for i, size := range f.sizes {
			s.Grown[i] += size.rss - int64(f.First.RSS)
			s.GrownAnon[i] += size.anon - int64(f.First.Anon)
		}
	}
	t.sortProcesses(s.Processes)
	s.Files = map[procfs.FileID]symbolize.Stack{}
	for id, stack := range t.files.stacks() {
		s.Files[id] = t.Stacks.At(stack)
	}
	found := t.survey()
	resident := found.resident
	s.Uses = t.Ledger.uses(t.Stacks, found)
	s.place(found.pieces)
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

// maxCommands bounds the processes whose command line and environment are read.
const maxCommands = 64

// sortProcesses puts the first process first, followed by those that grew most, and
// reads the commands of these.
func (t *Trace) sortProcesses(some []Process) {
	root := uint32(t.Root)
	sorts.By(some, func(a, b Process) int {
		switch {
		case a.PID == root || b.PID == root:
			return cmp.Compare(min(1, a.PID^root), min(1, b.PID^root))
		}
		return cmp.Or(cmp.Compare(b.Growth, a.Growth), cmp.Compare(a.PID, b.PID))
	})
	for i := range some[:min(len(some), maxCommands)] {
		p := procfs.Process(some[i].PID)
		environment, _ := p.Environ() // without permission to read it, the command alone has to do
		some[i].Command = p.Command()
		some[i].Age, _ = p.Age()
		some[i].Role = procfs.Role(some[i].Command, environment)
	}
}

// add adds what is live of a cause in its process.
func (u *Use) add(pid uint32, live, count int64) {
	if live == 0 && count == 0 || pid == 0 {
		return
	}
	i := slices.IndexFunc(u.Shares, func(s Share) bool { return s.PID == pid })
	if i < 0 {
		i = len(u.Shares)
		u.Shares = append(u.Shares, Share{PID: pid})
	}
	u.Shares[i].Live += live
	u.Shares[i].Count += count
}

// place attributes pieces, whose Use fields hold causes, to the uses.
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

// maxPieces bounds how many addresses of uses are kept for the first process, and
// maxChildPieces for every other.
const (
	maxPieces      = 1 << 16
	maxChildPieces = 1 << 11
)

// maxStored bounds the shared mappings for which we read how much of their files is in
// memory.
const maxStored = 1 << 12

// A survey states, by cause, what kind of memory it is, how much of it is resident (-1 if
// that cannot be read), and how much others filled. Its pieces have the cause in place
// of the use.
type survey struct {
	kinds            []Kind
	resident, filled []int64
	pieces           []Piece
	stored           int // mappings for which that was read
}

func newSurvey(causes int) *survey {
	return &survey{kinds: make([]Kind, causes), resident: make([]int64, causes), filled: make([]int64, causes)}
}

func (t *Trace) survey() *survey {
	out := newSurvey(len(t.Ledger.Causes))
	for pid, space := range t.Ledger.spaces {
		pages, err := procfs.Process(pid).Pages()
		most := len(out.pieces) + maxChildPieces
		if pid == uint32(t.Root) {
			most = len(out.pieces) + maxPieces
		}
		first := len(out.pieces)
		space.Each(func(iv *Interval) {
			out.kinds[iv.Cause] = iv.kind
			switch {
			case iv.Cause == Before || out.resident[iv.Cause] < 0:
				return
			case err != nil:
				out.resident[iv.Cause] = -1
				return
			}
			n, err := pages.Resident(iv.Start, iv.End)
			if err != nil {
				out.resident[iv.Cause] = -1
				return
			}
			out.resident[iv.Cause] += int64(n)
			out.fill(procfs.Process(pid), iv, int64(n))
			last := len(out.pieces) - 1
			switch {
			case len(out.pieces) == most:
			case last >= first && out.pieces[last].End == iv.Start && out.pieces[last].Use == int(iv.Cause):
				out.pieces[last].End, out.pieces[last].Resident = iv.End, out.pieces[last].Resident+int64(n)
			default:
				out.pieces = append(out.pieces, Piece{pid, iv.Start, iv.End, int(iv.Cause), int64(n)})
			}
		})
		if err == nil {
			pages.Close()
		}
	}
	return out
}

// fill adds what other processes filled of shared memory of which the process itself
// has touched some bytes.
func (x *survey) fill(p procfs.Process, iv *Interval, touched int64) {
	if iv.kind != Shared || touched >= iv.Size() || x.stored == maxStored {
		return
	}
	x.stored++
	if stored, err := p.Stored(iv.Start, iv.End); err == nil {
		x.filled[iv.Cause] += max(0, min(int64(stored), iv.Size())-touched)
	}
}

// Uses merges what a ledger has by stack, most bytes first. It is not known how much is
// resident.
func (l *Ledger) Uses(stacks *Stacks) []Use {
	none := newSurvey(len(l.Causes))
	for i := range none.resident {
		none.resident[i] = -1
	}
	return l.uses(stacks, none)
}

// uses merges the causes of a ledger by stack. What a site made without a stack, and
// without an inferred one, is divided among the stacks of the site in proportion to
// what these made.
func (l *Ledger) uses(all *Stacks, found *survey) []Use {
	causes, populations := l.Causes, l.populations()
	bySite := map[Site][]int{} // causes that have a stack
	for i, c := range causes {
		if c.stack != 0 && !c.inferred {
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
			u.Op, u.Kind = c.Op, found.kinds[i]
		}
		if share == 1 {
			u.causes = append(u.causes, CauseID(i))
		}
		u.Live += part(c.Live)
		u.Count += part(c.Count)
		u.add(c.pid, part(c.Live), part(c.Count))
		u.Filled += part(found.filled[i])
		if u.Resident < 0 || found.resident[i] < 0 { // the sum of partly unknown sizes is unknown
			u.Resident = -1
		} else {
			u.Resident += part(found.resident[i])
		}
		u.Calls += part(c.calls)
		u.Total += part(c.total)
		u.Size = max(u.Size, c.maxSize)
		if inferred {
			u.Inferred += part(c.Live)
		}
		u.Population.MergeShare(populations[i], share)
	}
	for i := int(Unseen) + 1; i < len(causes); i++ {
		c := causes[i]
		if c.calls == 0 && c.Live == 0 {
			continue
		}
		if c.stack != 0 {
			add(c.stack, i, 1, c.inferred)
			continue
		}
		stacks := bySite[c.Site]
		var all float64
		for _, j := range stacks {
			all += float64(weight(&causes[j]))
		}
		for _, j := range stacks {
			add(causes[j].stack, i, float64(weight(&causes[j]))/all, true)
		}
		if len(stacks) == 0 {
			add(-i, i, 1, false)
		}
	}
	out := make([]Use, 0, len(rows))
	for _, u := range rows {
		sorts.By(u.Shares, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Live, a.Live), cmp.Compare(a.PID, b.PID)) })
		out = append(out, *u)
	}
	sorts.By(out, func(a, b Use) int {
		return cmp.Or(cmp.Compare(b.Resident, a.Resident), cmp.Compare(b.Live, a.Live), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Op, b.Op))
	})
	return out
}

// weight is how likely it is that a call of the site had this stack.
func weight(m *Cause) int64 { return max(m.Live, m.calls, 1) }
