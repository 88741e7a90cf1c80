package ledger

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"strandline/host/bpf"
	"strandline/host/procfs"
	"strandline/host/unwind"
	"strandline/judge/trend"
)

// A Frame is one level of a stack. What is not known is empty.
type Frame = unwind.Frame

// A Stack is the frames of a call, innermost first. Complete says that it goes
// down to where the thread began.
type Stack struct {
	Frames   []Frame
	Complete bool
}

// A Namer makes stacks of samples.
type Namer interface {
	Prepare(pid uint32)
	Mapped(e *bpf.Event)
	Stack(s *bpf.Sample) Stack
	Forget(pid uint32)
}

// A Source tells what happens in the processes that it watches. [bpf.Tracer] is
// one.
type Source interface {
	Watch(pid int) error
	Poll() (*bpf.Batch, error)
	Budget(n int) error
	Pace(e *bpf.Event, every time.Duration) error
}

// The rates at which stacks are copied.
const (
	stacksPerSecond = 400
	paceGrowing     = 5 * time.Millisecond
	paceSteady      = time.Second
	mostStacks      = 1 << 14 // distinct
	mostFrames      = 1 << 20 // in all of them
	mostPaced       = 1 << 13 // sites, as many as the kernel keeps
	mostWaiting     = 4096
	// mostChecked bounds the processes whose memory is looked at in one check; of
	// more than these others are looked at each time.
	mostChecked = 256
)

// A Trace follows a process and its children.
type Trace struct {
	Root      procfs.Process
	Ledger    *Ledger
	Last      bpf.Batch // of which only the totals are kept
	Processes map[uint32]*Followed
	// Stacks are the distinct ones; that of index 0 is unknown.
	Stacks []Stack
	// Driver is what the processes take from a GPU's driver; nil if that is not
	// followed.
	Driver *Driver

	source  Source
	namer   Namer
	known   map[string]int
	frames  int // in Stacks
	waiting []bpf.Sample
	files   *files
	paced   map[Site]int64 // bytes of a site that lived when its pace was set
	polled  uint64
	lost    uint64 // events, when it was last looked for what they told
	// unfollowed are children from before the trace for which there was no room.
	unfollowed uint64
	began      uint64
}

// Followed is a process and its memory when it was first and last seen.
type Followed struct {
	procfs.Process
	First, Last procfs.Status
	Ended       bool
	began       uint64
	rss         []int64 // at the marks
}

// now is how large a process is; [os.ErrProcessDone] if it has ended, is about to,
// or another has its number.
func (f *Followed) now() (procfs.Status, error) {
	began, err := f.Started()
	if err != nil || began != f.began {
		return procfs.Status{}, absent(err)
	}
	st, err := f.Status()
	if err != nil || st.VMSize == 0 {
		return procfs.Status{}, absent(err)
	}
	return st, nil
}

// absent tells an error of a process that is there from that it is not; nil is one
// of the latter, too.
func absent(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// NewTrace begins to follow a process and the children that it has.
func NewTrace(root procfs.Process, source Source, namer Namer) (*Trace, error) {
	t := &Trace{
		Root: root, Ledger: NewLedger(), Processes: map[uint32]*Followed{}, Stacks: make([]Stack, 1),
		source: source, namer: namer, known: map[string]int{}, files: newFiles(), paced: map[Site]int64{}, polled: bpf.Now(),
	}
	t.began = t.polled
	if err := t.follow(root); err != nil {
		return nil, err
	}
	t.followDescendants()
	return t, t.Check()
}

// followDescendants begins to follow those that live. Children that a process has
// from then on follow by themselves; those that it had before are in the list when
// that is read again.
func (t *Trace) followDescendants() {
	seen := map[procfs.Process]bool{}
	for more := true; more; {
		more = false
		for _, p := range t.Root.Descendants() {
			if seen[p] || t.Processes[uint32(p)] != nil {
				continue
			}
			seen[p], more = true, true
			if err := t.follow(p); errors.Is(err, syscall.E2BIG) {
				t.unfollowed++
			}
		}
	}
}

func (t *Trace) follow(p procfs.Process) error {
	began, err := p.Started()
	if err != nil {
		return err
	}
	st, err := p.Status()
	if err != nil {
		return err
	}
	if err := t.source.Watch(int(p)); err != nil {
		return err
	}
	t.Processes[uint32(p)] = &Followed{Process: p, First: st, Last: st, began: began}
	t.Ledger.Space(uint32(p))
	t.namer.Prepare(uint32(p))
	return nil
}

// Step takes in what happened since the last one.
func (t *Trace) Step() error {
	b, err := t.source.Poll()
	if err != nil {
		return err
	}
	for i := range b.Events {
		t.enter(&b.Events[i])
	}
	t.name(b)
	seconds := time.Duration(b.Until - t.polled).Seconds()
	allowed := int(stacksPerSecond*seconds) + 1
	t.polled = b.Until
	b.Events, b.Samples = nil, nil
	t.Last = *b
	if t.Driver != nil {
		if err := t.Driver.step(seconds, b.Until); err != nil {
			return err
		}
	}
	return t.source.Budget(allowed)
}

func (t *Trace) enter(e *bpf.Event) {
	if f := e.Op.Driver(); f != nil {
		t.Driver.enter(e, f)
		return
	}
	t.Ledger.Apply(e)
	if t.Driver != nil {
		t.Driver.noticed(e)
	}
	switch e.Op {
	case bpf.Map:
		t.namer.Mapped(e)
	case bpf.Memfd, bpf.Truncate:
		t.files.enter(e)
	case bpf.Fork:
		if uint32(e.Old) == e.Child() {
			t.follow(procfs.Process(e.Child())) // one that has ended already is none
		}
	case bpf.Exec:
		t.namer.Forget(e.PID)
		t.follow(procfs.Process(e.PID)) // another program, which grows from here on
	case bpf.Exit:
		t.ended(e.Child())
	}
}

// ended forgets a process, of which there can be any number, but for the first.
func (t *Trace) ended(pid uint32) {
	t.namer.Forget(pid)
	if f := t.Processes[pid]; f != nil && f.Process == t.Root {
		f.Ended = true
		return
	}
	delete(t.Processes, pid)
}

// name makes stacks of the samples whose mappings live.
func (t *Trace) name(b *bpf.Batch) {
	t.waiting = append(t.waiting, b.Samples...)
	rest := t.waiting[:0]
	for i := range t.waiting {
		s := &t.waiting[i]
		if s.Time > b.Until {
			rest = append(rest, *s)
			continue
		}
		if f := s.Op.Driver(); f != nil {
			t.nameDriver(s, f)
			continue
		}
		if file := t.files.by[call{s.PID, s.Time}]; file != nil {
			file.stack = t.intern(t.namer.Stack(s))
			continue
		}
		at, size := s.Addr, s.Len
		if s.Op == bpf.Break {
			at, size = s.Addr-1, 1
		}
		if t.Ledger.Stack(s.PID, s.Time, at, size, 0) {
			t.Ledger.Stack(s.PID, s.Time, at, size, t.intern(t.namer.Stack(s)))
		}
	}
	clear(t.waiting[len(rest):])
	t.waiting = rest[max(0, len(rest)-mostWaiting):]
}

// intern is the number of a stack; 0 where there is no room for another.
func (t *Trace) intern(s Stack) int {
	var key []byte
	for _, f := range s.Frames {
		key = append(append(append(append(key, f.Function...), 0), f.File...), 0)
		key = append(append(key, byte(f.Line), byte(f.Line>>8), byte(f.Line>>16), 0), f.Object...)
	}
	if i, ok := t.known[string(key)]; ok {
		return i
	}
	if len(s.Frames) == 0 || len(t.Stacks) == mostStacks || t.frames+len(s.Frames) > mostFrames {
		return 0
	}
	t.frames += len(s.Frames)
	t.known[string(key)] = len(t.Stacks)
	t.Stacks = append(t.Stacks, s)
	return len(t.Stacks) - 1
}

// Check holds the ledger against the kernel's lists, and reads how large the
// processes are.
func (t *Trace) Check() error {
	if t.blind() || t.Last.Lost > t.lost {
		t.lost = t.Last.Lost
		t.sweep()
	}
	lists := map[uint32][]procfs.Mapping{}
	look := func(pid uint32, f *Followed) {
		if f == nil || f.Ended || lists[pid] != nil {
			return
		}
		st, err := f.now()
		switch {
		case errors.Is(err, os.ErrProcessDone):
			t.ended(pid)
			return
		case err == nil:
			f.Last = st
		}
		if maps, err := f.Maps(); err == nil && len(maps) > 0 { // none at the moment at which it becomes another program
			lists[pid] = maps
		}
	}
	look(uint32(t.Root), t.Processes[uint32(t.Root)])
	for pid, f := range t.Processes {
		if len(lists) == mostChecked {
			break
		}
		look(pid, f)
	}
	read := bpf.Now()
	for bpf.Now() < read+uint64(6*time.Millisecond) || t.polled < read {
		time.Sleep(time.Millisecond)
		if err := t.Step(); err != nil {
			return err
		}
	}
	for pid, maps := range lists {
		if s := t.Ledger.spaces[pid]; s != nil {
			t.Ledger.Check(s, maps, read)
		}
	}
	return nil
}

// sweep looks for processes that came or went while nothing told so.
func (t *Trace) sweep() {
	t.followDescendants()
	for pid, s := range t.Ledger.spaces {
		if t.Processes[pid] == nil && t.follow(procfs.Process(pid)) != nil {
			t.Ledger.end(s, t.polled)
		}
	}
}

// Sure makes the ledger agree with the kernel's lists, as far as the processes
// hold still: it is called before the sums are told.
func (t *Trace) Sure() error {
	for range 3 {
		if err := t.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Mark notes a moment at which growth is judged, and has the stacks copied more
// often of what grows.
func (t *Trace) Mark() error {
	before := len(t.Ledger.Marks())
	t.Ledger.Mark(t.polled)
	t.measure(before, len(t.Ledger.Marks()))
	if t.Driver != nil {
		t.Driver.mark(t.polled)
	}
	live := map[Site]int64{}
	for i := Unseen + 1; int(i) < len(t.Ledger.Causes); i++ {
		if m := &t.Ledger.Causes[i]; m.PID != 0 {
			live[m.Site] += m.Live
		}
	}
	paced := t.paced
	t.paced = make(map[Site]int64, len(paced)) // sites of processes that have ended go
	for site, bytes := range live {
		if len(t.paced) == mostPaced {
			break
		}
		was, known := paced[site]
		every := paceSteady
		if bytes > was {
			every = paceGrowing
		}
		if !known && bytes == 0 {
			continue
		}
		t.paced[site] = bytes
		e := &bpf.Event{PID: site.PID, Op: site.Op, Class: site.Class, Place: site.Place}
		if err := t.source.Pace(e, every); err != nil {
			return err
		}
	}
	return nil
}

// Unfollowed is how many children are not followed, as too many live at once.
func (t *Trace) Unfollowed() uint64 { return t.unfollowed + t.Last.Unwatched }

// measure notes how large the processes are at a mark, of which there were some
// before and are more now, or fewer, where every second one went.
func (t *Trace) measure(before, now int) {
	for _, f := range t.Processes {
		if f.Ended {
			continue
		}
		for len(f.rss) < before {
			f.rss = append(f.rss, int64(f.First.RSS))
		}
		if now <= before {
			for i := range now - 1 {
				f.rss[i] = f.rss[2*i+1]
			}
			f.rss = f.rss[:now-1]
		}
		rss := int64(f.Last.RSS)
		if st, err := f.Status(); err == nil && st.RSS > 0 {
			rss = int64(st.RSS)
		}
		f.rss = append(f.rss, rss)
	}
}

// blind tells whether no calls can be seen.
func (t *Trace) blind() bool {
	_, ok := t.source.(Poller)
	return ok
}

// Alive tells whether a process that is followed still runs.
func (t *Trace) Alive() bool {
	for _, f := range t.Processes {
		if !f.Ended {
			return true
		}
	}
	return false
}

// A Use is what the calls with one stack hold.
type Use struct {
	Stack
	ID       int    // of the stack, 0 if it is unknown
	Op       bpf.Op // of most of its bytes
	Kind     Kind
	Live     int64 // bytes mapped since the recording began that are mapped still
	Count    int64 // and in how many pieces
	Resident int64 // of Live, in memory; -1 if that cannot be read
	Calls    int64
	Size     int64 // of the largest piece
	Total    int64 // bytes that were made, of which Live are left
	// Assumed are those of Live whose own stack was not copied: it is that of
	// others of the same place and size.
	Assumed    int64
	Population *trend.Population

	causes []Cause // that are of this use alone
}

// A Piece is memory that a use holds.
type Piece struct {
	Start, End uint64
	Use        int // index into [Sums.Uses]
	Resident   int64
}

// Sums are what a trace tells.
type Sums struct {
	Uses []Use // most resident bytes first
	// Growth is of the resident memory of the processes that live, by kind.
	Growth, Anon, File, Shared int64
	Locked, Pinned, Threads    int64
	RSS                        int64 // at the end
	Explained                  *float64
	// Marks are the moments at which growth is judged, in ns since the trace began;
	// Grown is how much the processes had grown at them.
	Marks []uint64
	Grown []int64
	// Older is what became resident, or ceased to, in memory that was mapped
	// before; Unnamed is resident memory of calls without a stack, Unseen what the
	// kernel's list has and no call that was seen made.
	Older, Unnamed, Unseen int64
	// Pieces are what lives of the uses in the first process, by address.
	Pieces []Piece
	// Files are the stacks of the calls that made files in memory, held or not.
	Files map[procfs.FileID]Stack
	// Blind says that no calls could be seen.
	Blind bool
	Age   time.Duration // of the first process; 0 if unknown
}

// tellable is the least growth of which a share is worth telling.
const tellable = 256 << 10

// Sums reckons up.
func (t *Trace) Sums() *Sums {
	s := &Sums{Grown: make([]int64, len(t.Ledger.Marks())), Blind: t.blind()}
	s.Age, _ = t.Root.Age()
	for _, at := range t.Ledger.Marks() {
		s.Marks = append(s.Marks, at-min(at, t.began))
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
	s.Files = map[procfs.FileID]Stack{}
	for id, stack := range t.files.stacks() {
		s.Files[id] = t.Stacks[stack]
	}
	t.Ledger.assume()
	kinds, resident, pieces := t.survey()
	s.Uses = t.uses(t.Ledger, kinds, resident)
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
	if s.Growth >= tellable {
		share := min(float64(named)/float64(s.Growth), 1)
		s.Explained = &share
	}
	return s
}

// place lays the pieces of causes, of each of which Use is the cause, to the uses.
func (s *Sums) place(pieces []Piece) {
	of := map[Cause]int{}
	for i := range s.Uses {
		for _, c := range s.Uses[i].causes {
			of[c] = i
		}
	}
	for _, p := range pieces {
		if use, ok := of[Cause(p.Use)]; ok {
			p.Use = use
			s.Pieces = append(s.Pieces, p)
		}
	}
}

// mostPieces bounds how finely it is told where the memory of uses lies.
const mostPieces = 1 << 16

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
					return
				}
				resident[iv.Cause] += int64(n)
				if last := len(pieces) - 1; int(pid) != int(t.Root) || len(pieces) == mostPieces {
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

// uses joins the causes of a ledger by their stack. What a site made without a
// stack and what is assumed of none counts to the stacks of the site, by what
// these made.
func (t *Trace) uses(l *Ledger, kinds []Kind, resident []int64) []Use {
	causes, populations := l.Causes, l.Populations()
	bySite := map[Site][]int{} // causes that have a stack
	for i, c := range causes {
		if c.Stack != 0 && !c.Assumed {
			bySite[c.Site] = append(bySite[c.Site], i)
		}
	}
	rows := map[int]*Use{}
	add := func(key int, i int, share float64, assumed bool) {
		c := &causes[i]
		u := rows[key]
		if u == nil {
			u = &Use{Population: trend.NewPopulation(len(l.marks))}
			if key > 0 {
				u.Stack, u.ID = t.Stacks[key], key
			}
			rows[key] = u
		}
		part := func(n int64) int64 { return int64(float64(n)*share + 0.5) }
		if u.Op == 0 || c.Live > u.Live {
			u.Op, u.Kind = c.Op, kinds[i]
		}
		if share == 1 {
			u.causes = append(u.causes, Cause(i))
		}
		u.Live += part(c.Live)
		u.Count += part(c.Count)
		u.Resident += part(resident[i])
		u.Calls += part(c.Calls)
		u.Total += part(c.Total)
		u.Size = max(u.Size, c.MaxSize)
		if assumed {
			u.Assumed += part(c.Live)
		}
		u.Population.MergeShare(populations[i], share)
	}
	for i := int(Unseen) + 1; i < len(causes); i++ {
		c := causes[i]
		if c.Calls == 0 && c.Live == 0 {
			continue
		}
		if c.Stack != 0 {
			add(c.Stack, i, 1, c.Assumed)
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
		for _, d := range []int64{b.Resident - a.Resident, b.Live - a.Live, b.Calls - a.Calls} {
			if d != 0 {
				return int(d>>63 | 1)
			}
		}
		return 0
	})
	return out
}

// weight is how likely it is that a call of the site had this stack.
func weight(m *Made) int64 { return max(m.Live, m.Calls, 1) }
