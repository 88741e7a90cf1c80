package ledger

import (
	"errors"
	"os"
	"syscall"
	"time"

	"strandline/host/calls/event"
	"strandline/host/code/symbolize"
	"strandline/host/proc/procfs"
)

// A Symbolizer makes stacks of samples.
type Symbolizer interface {
	Prepare(pid uint32)
	Mapped(e *event.Event)
	Stack(s *event.Sample) symbolize.Stack
	Forget(pid uint32)
}

// A Follower takes part in a trace alongside the ledger of mappings, as the one of a
// GPU driver's memory does.
type Follower interface {
	// Event is called for every event, in the order of their time.
	Event(e *event.Event)
	// Sample is called for the samples of driver calls.
	Sample(s *event.Sample)
	// Step is called after the events up to a time, with the time that has passed since
	// the last call.
	Step(passed time.Duration, until uint64) error
	// Checkpoint is called at each moment at which growth is measured.
	Checkpoint(at uint64)
}

// The rates at which stacks are copied.
const (
	stacksPerSecond = 400
	paceGrowing     = 5 * time.Millisecond
	paceSteady      = time.Second
	maxPaced        = 1 << 13 // sites, as many as the kernel keeps
	maxWaiting      = 4096
	// maxChecked bounds the processes whose memory is examined in one check; if there
	// are more, different ones are examined each time.
	maxChecked = 256
)

// A Trace follows a process and its children.
type Trace struct {
	Root       procfs.Process
	Ledger     *Ledger
	Last       event.Batch // only the totals are kept
	Processes  map[uint32]*Followed
	Stacks     *Stacks
	Symbolizer Symbolizer

	source   event.Source
	clock    event.Clock
	follower Follower // nil if there is none
	waiting  []event.Sample
	files    *files
	paced    map[Site]int64 // live bytes of a site when its pace was set
	polled   uint64
	lost     uint64 // events, when we last looked for what they would have reported
	// unfollowed are children from before the trace for which there was no room.
	unfollowed uint64
	began      uint64
}

// A Followed is a process and its memory when it was first and last seen.
type Followed struct {
	procfs.Process
	First, last procfs.Status
	Ended       bool
	began       uint64
	sizes       []size // at the checkpoints
}

// A size is how large a process is, in bytes: resident memory, and the part of it that is
// private.
type size struct{ rss, anon int64 }

func sizeOf(st *procfs.Status) size { return size{int64(st.RSS), int64(st.Anon)} }

// now returns how large a process is; the error is [os.ErrProcessDone] if it has ended,
// is about to end, or its number now belongs to another process.
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

// absent turns an error that means that a process is gone into [os.ErrProcessDone]; so
// does a nil error, as its number then belongs to another process.
func absent(err error) error {
	if err == nil || procfs.HasExited(err) {
		return os.ErrProcessDone
	}
	return err
}

// NewTrace begins to follow a process and its existing children. The clock is that of
// the source, usually [event.System].
func NewTrace(root procfs.Process, source event.Source, symbolizer Symbolizer, clock event.Clock) (*Trace, error) {
	t := &Trace{
		Root: root, Ledger: New(), Processes: map[uint32]*Followed{}, Stacks: NewStacks(), Symbolizer: symbolizer,
		source: source, clock: clock, files: newFiles(), paced: map[Site]int64{}, polled: clock.Now(),
	}
	t.began = t.polled
	if err := t.follow(root); err != nil {
		return nil, err
	}
	t.followDescendants()
	return t, t.Check()
}

// Attach makes a follower take part from now on.
func (t *Trace) Attach(f Follower) { t.follower = f }

// followDescendants begins to follow the live descendants. Children that a process
// creates from then on are followed automatically; those that it created before are in
// the list when it is read again.
func (t *Trace) followDescendants() {
	seen := map[procfs.Process]bool{}
	for more := true; more; {
		more = false
		children, _ := t.Root.Descendants() // read again at the next check
		for _, p := range children {
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
	t.Processes[uint32(p)] = &Followed{Process: p, First: st, last: st, began: began}
	t.Ledger.Space(uint32(p))
	t.Symbolizer.Prepare(uint32(p))
	return nil
}

// Step takes in what has happened since the last one.
func (t *Trace) Step() error {
	b, err := t.source.Poll()
	if err != nil {
		return err
	}
	for i := range b.Events {
		t.enter(&b.Events[i])
	}
	t.name(b)
	passed := time.Duration(b.Until - t.polled)
	allowed := int(stacksPerSecond*passed.Seconds()) + 1
	t.polled = b.Until
	b.Events, b.Samples = nil, nil
	t.Last = *b
	if t.follower != nil {
		if err := t.follower.Step(passed, b.Until); err != nil {
			return err
		}
	}
	return t.source.Budget(allowed)
}

func (t *Trace) enter(e *event.Event) {
	if t.follower != nil {
		t.follower.Event(e)
	}
	if e.Op.Driver() != nil {
		return
	}
	t.Ledger.apply(e)
	switch e.Op {
	case event.Map:
		t.Symbolizer.Mapped(e)
	case event.Memfd, event.Truncate:
		t.files.enter(e)
	case event.Fork:
		if uint32(e.Old) == e.Child() {
			t.follow(procfs.Process(e.Child())) // this fails if it has already ended
		}
	case event.Exec:
		t.Symbolizer.Forget(e.PID)
		t.follow(procfs.Process(e.PID)) // another program, which grows from here on
	case event.Exit:
		t.ended(e.Child())
	}
}

// ended forgets a process, of which there can be any number, unless it is the first.
func (t *Trace) ended(pid uint32) {
	t.Symbolizer.Forget(pid)
	if f := t.Processes[pid]; f != nil && f.Process == t.Root {
		f.Ended = true
		return
	}
	delete(t.Processes, pid)
}

// name makes stacks of the samples whose mappings are live.
func (t *Trace) name(b *event.Batch) {
	t.waiting = append(t.waiting, b.Samples...)
	rest := t.waiting[:0]
	for i := range t.waiting {
		s := &t.waiting[i]
		if s.Time > b.Until {
			rest = append(rest, *s)
			continue
		}
		if s.Op.Driver() != nil {
			t.follower.Sample(s)
			continue
		}
		if file := t.files.by[call{s.PID, s.Time}]; file != nil {
			file.stack = t.Stacks.Intern(t.Symbolizer.Stack(s))
			continue
		}
		at, size := s.Addr, s.Len
		if s.Op == event.Break {
			at, size = s.Addr-1, 1
		}
		if t.Ledger.Lives(s.PID, s.Time, at, size) {
			t.Ledger.SetStack(s.PID, s.Time, at, size, t.Stacks.Intern(t.Symbolizer.Stack(s)))
		}
	}
	clear(t.waiting[len(rest):])
	t.waiting = rest[max(0, len(rest)-maxWaiting):]
}

// settling is how long Check waits for events that happened before it read the kernel's
// lists.
const settling = 6 * time.Millisecond

// Check compares the ledger with the kernel's lists, infers stacks, and reads how large the
// processes are. In between it waits until the events up to then have been delivered.
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
			f.last = st
		}
		if maps, err := f.Maps(); err == nil && len(maps) > 0 { // there are none at the moment at which it becomes another program
			lists[pid] = maps
		}
	}
	look(uint32(t.Root), t.Processes[uint32(t.Root)])
	for pid, f := range t.Processes {
		if len(lists) == maxChecked {
			break
		}
		look(pid, f)
	}
	read := t.clock.Now()
	for t.clock.Now() < read+uint64(settling) || t.polled < read {
		t.clock.Sleep(time.Millisecond)
		if err := t.Step(); err != nil {
			return err
		}
	}
	for pid, maps := range lists {
		if s := t.Ledger.spaces[pid]; s != nil {
			t.Ledger.check(s, maps, read)
		}
	}
	t.Ledger.inferStacks()
	return nil
}

// sweep looks for processes that came or went without an event.
func (t *Trace) sweep() {
	t.followDescendants()
	for pid, s := range t.Ledger.spaces {
		if t.Processes[pid] == nil && t.follow(procfs.Process(pid)) != nil {
			t.Ledger.end(s, t.polled)
		}
	}
}

// Settle makes the ledger agree with the kernel's lists, as far as the processes are
// quiet. It is called before the last sums.
func (t *Trace) Settle() error {
	for range 3 {
		if err := t.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Checkpoint records a moment at which growth is measured, and has stacks copied more
// often for what grows.
func (t *Trace) Checkpoint() error {
	before := len(t.Ledger.Checkpoints())
	t.Ledger.Checkpoint(t.polled)
	t.measure(before, len(t.Ledger.Checkpoints()))
	if t.follower != nil {
		t.follower.Checkpoint(t.polled)
	}
	live := map[Site]int64{}
	for i := Unseen + 1; int(i) < len(t.Ledger.Causes); i++ {
		if m := &t.Ledger.Causes[i]; m.pid != 0 {
			live[m.Site] += m.Live
		}
	}
	paced := t.paced
	t.paced = make(map[Site]int64, len(paced)) // sites of processes that have ended are dropped
	for site, bytes := range live {
		if len(t.paced) == maxPaced {
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
		e := &event.Event{PID: site.pid, Op: site.Op, Class: site.class, Place: site.place}
		if err := t.source.Pace(e, every); err != nil {
			return err
		}
	}
	return nil
}

// Unfollowed returns how many children are not followed because too many are alive at
// once.
func (t *Trace) Unfollowed() uint64 { return t.unfollowed + t.Last.Unwatched }

// measure records how large the processes are at a checkpoint. before and now are
// numbers of checkpoints; now is not the larger one if every second was dropped.
func (t *Trace) measure(before, now int) {
	for _, f := range t.Processes {
		if f.Ended {
			continue
		}
		for len(f.sizes) < before {
			f.sizes = append(f.sizes, sizeOf(&f.First))
		}
		if now <= before {
			for i := range now - 1 {
				f.sizes[i] = f.sizes[2*i+1]
			}
			f.sizes = f.sizes[:now-1]
		}
		last := sizeOf(&f.last)
		if st, err := f.Status(); err == nil && st.RSS > 0 {
			last = sizeOf(&st)
		}
		f.sizes = append(f.sizes, last)
	}
}

// blind reports whether no calls can be seen.
func (t *Trace) blind() bool {
	return !t.source.SeesCalls()
}

// Alive reports whether any followed process is still running.
func (t *Trace) Alive() bool {
	for _, f := range t.Processes {
		if !f.Ended {
			return true
		}
	}
	return false
}
