// Package outside records the memory history of a PyTorch process that is already running,
// in which nothing was prepared: the requests to its caching allocator are watched by
// probes of the kernel, and what the allocator holds is read from its memory. What
// comes out is a snapshot as PyTorch writes it.
//
// Nothing runs in the process, and no function of it is replaced. From outside a
// release is complete when it is requested: that a block waits for another stream is
// seen at the end alone, in what the allocator holds then.
package outside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"strandline/host/calls/bpf"
	"strandline/host/calls/event"
	"strandline/host/code/cpython"
	"strandline/host/code/image"
	"strandline/host/gpu/cudaalloc"
	"strandline/host/proc/autograd"
	"strandline/host/proc/procfs"
	"strandline/internal/lazyregexp"
	"strandline/judge/processes"
	"strandline/torch/snapshot"
)

// Options are what is recorded.
type Options struct {
	PID      int
	Duration time.Duration
	// MaxEvents bounds the events that are kept, of which the oldest are left out; 0 is 5
	// million.
	MaxEvents int
	// Began is called once, when events are watched; Progress about once a second.
	Began    func()
	Progress func(Result)
}

// defaultEvents are the events that are kept unless the options state another number. They take
// about 50 bytes each.
const defaultEvents = 5_000_000

// A Result is what a recording has, and what it lacks.
type Result struct {
	Library    string // of the allocator
	Version    string // of PyTorch; empty if not known
	Python     string // the version of the interpreter; empty without stacks of it
	Since      time.Time
	Took       time.Duration
	Requests   int // blocks that were given
	Frees      int // and returned
	Segments   int // calls of the driver for memory
	Failed     int // requests that did not return: out of memory, for one
	Lost       int // events that did not fit
	LostStacks int // stacks that did not fit: their events have none
	Dropped    int // the oldest events, beyond MaxEvents
	Unknown    int // releases of memory that was not known
	Ended      bool
	Gaps       []Gap // in which events were lost, in order
	// Start and End state why what the allocator held then could not be read; they are
	// nil where it was.
	Start, End error
	// Containers are those of the program that grew from look to look.
	Containers []processes.Container
	Notes      []string // what else could not be recorded, a sentence each
}

// Complete reports whether every event of the time is there, and so what was held
// at its beginning.
func (r *Result) Complete() bool {
	return r.Lost == 0 && r.Dropped == 0 && r.Start == nil && r.End == nil && r.Unknown == 0
}

var (
	errBusy  = errors.New("the process requested memory all the time, so the contents of its allocator are unknown")
	errEnded = errors.New("the process ended before its allocator was read")
)

// Record records a process until the time is over, the context is done, or the
// process ends. The error is why it cannot be recorded; one that is an
// [errors.ErrUnsupported] is a limit of this machine or user.
func Record(ctx context.Context, o Options) (*snapshot.Snapshot, *Result, error) {
	if o.MaxEvents == 0 {
		o.MaxEvents = defaultEvents
	}
	s, err := open(o)
	if err != nil {
		if _, gone := procfs.Process(o.PID).Started(); procfs.HasExited(gone) {
			err = fmt.Errorf("there is no process %d", o.PID)
		}
		return nil, nil, err
	}
	defer s.close()
	if err := s.run(ctx); err != nil {
		return nil, nil, err
	}
	s.write()
	return s.snapshot, &s.result, nil
}

// A session is one recording.
type session struct {
	options   Options
	process   procfs.Process
	started   uint64 // which of the processes of that number
	files     *image.Files
	image     *image.Image
	allocator *cudaalloc.Allocator
	requests  *bpf.Requests
	names     *names
	snapshot  *snapshot.Snapshot
	history   *history
	waiting   []event.Request // delivered, and not yet in the history
	taken     int             // events that are in the history
	polled    time.Time       // when events were last read
	quiet     uint64          // events there had been at the last attempt to read the state
	final     []cudaalloc.Segment
	// containers are counted as long as events are watched.
	containers cpython.History
	graphs     *autograd.Graphs
	result     Result
}

func open(o Options) (_ *session, err error) {
	s := &session{options: o, process: procfs.Process(o.PID), files: image.NewFiles()}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.started, err = s.process.Started(); err != nil {
		return nil, readError(o.PID, err)
	}
	if s.image, err = image.Open(s.process, s.files); err != nil {
		return nil, readError(o.PID, err)
	}
	if s.allocator, err = cudaalloc.Find(s.image); err != nil {
		return nil, fmt.Errorf("process %d: %w. `strandline trace --pid %d` follows its main memory", o.PID, err, o.PID)
	}
	s.result.Library, s.result.Version = s.allocator.Library, s.allocator.Version
	if why := cudaalloc.Untried(s.result.Version); why != "" {
		s.note("%s", why)
	}
	if s.requests, err = bpf.StartRequests(); err != nil {
		return nil, err
	}
	s.snapshot = snapshot.New()
	s.history = newHistory(o.MaxEvents)
	s.graphs = autograd.GraphsOf(s.image)
	s.names = &names{image: s.image, stacks: s.snapshot.Stacks}
	if err := s.python(); err != nil {
		return nil, err
	}
	return s, s.watch()
}

// readError returns why the memory of a process cannot be read.
func readError(pid int, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("process %d belongs to another user: recording it needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE", pid)
	}
	return fmt.Errorf("process %d: %w", pid, err)
}

// python makes requests carry the frames of the interpreter.
func (s *session) python() error {
	r, err := cpython.Find(s.image)
	switch {
	case errors.Is(err, cpython.ErrNone):
		s.note("no Python runs in the process: the events have no stacks")
		return nil
	case err != nil:
		s.note("the stacks of Python cannot be read (%v): the events have none", err)
		return nil
	}
	s.result.Python = fmt.Sprintf("3.%d", r.Minor)
	s.names.runtime, s.names.codes = r, r.Codes()
	return s.requests.Python(r.Layout())
}

func (s *session) note(format string, args ...any) {
	s.result.Notes = append(s.result.Notes, fmt.Sprintf(format, args...))
}

// watch attaches the probes.
func (s *session) watch() error {
	library, err := s.process.OpenMapped(s.allocator.Mapping)
	if err != nil {
		return fmt.Errorf("open %s of process %d: %w", s.allocator.Library, s.options.PID, err)
	}
	defer library.Close()
	if len(s.allocator.Slow) > 0 {
		s.note("%d of %d probes are at instructions that the kernel must single-step: each call takes some 10 µs longer", len(s.allocator.Slow), len(s.allocator.Places))
	}
	if err := s.watchDriver(); err != nil {
		return err
	}
	if err := s.requests.Watch(s.options.PID, library, s.allocator.Places); err != nil {
		return fmt.Errorf("watch %s of process %d: %w", s.allocator.Library, s.options.PID, err)
	}
	return nil
}

var driver = lazyregexp.New(`^libcuda\.so(\.[0-9.]+)?$`)

// watchDriver watches what the driver gives. Without it segments are known by what
// the allocator holds alone.
func (s *session) watchDriver() error {
	i := slices.IndexFunc(s.image.Map.Mappings, func(m procfs.Mapping) bool { return m.Exec && driver.MatchString(path.Base(m.Path)) })
	if i < 0 {
		s.note("the driver's library (libcuda.so) is not loaded: when segments came is inferred")
		return nil
	}
	m := s.image.Map.Mappings[i]
	library, err := s.process.OpenMapped(m)
	if err != nil {
		return err
	}
	defer library.Close()
	n, err := s.requests.WatchDriver(s.options.PID, library)
	if err == nil && n == 0 {
		s.note("%s does not export the driver's functions: when segments came is inferred", m.Path)
	}
	return err
}

func (s *session) close() {
	if s.requests != nil {
		s.requests.Close()
	}
	if s.image != nil {
		s.image.Close()
	}
	s.files.Close()
}

const (
	pollEvery     = 10 * time.Millisecond
	progressEvery = time.Second
	// patience is how long a moment is waited for at which nothing is requested.
	patience = 2 * time.Second
)

func (s *session) run(ctx context.Context) error {
	s.result.Since = time.Now()
	s.polled = s.result.Since
	if s.options.Began != nil {
		s.options.Began()
	}
	if err := s.begin(); err != nil {
		return err
	}
	end, progress := s.result.Since.Add(s.options.Duration), time.Now().Add(progressEvery)
	for now := time.Now(); now.Before(end) && ctx.Err() == nil && s.alive(); now = time.Now() {
		if err := s.poll(); err != nil {
			return err
		}
		s.take(len(s.waiting))
		if err := s.closeGap(); err != nil {
			return err
		}
		if s.options.Progress != nil && now.After(progress) {
			progress = now.Add(progressEvery)
			s.sum()
			s.options.Progress(s.result)
		}
		if s.names.runtime != nil {
			s.containers.WhenDue(func() { s.containers.Count(s.names.runtime, s.image, s.graphs.Keeps) })
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(pollEvery, time.Until(end))):
		}
	}
	err := s.end()
	s.sum()
	s.result.Containers = processes.Growing(&s.containers)
	return err
}

// sum brings the figures up to date.
func (s *session) sum() {
	r, h := &s.result, s.history
	r.Took = time.Since(r.Since)
	r.Requests, r.Frees, r.Segments, r.Failed, r.Dropped, r.Unknown = h.requests, h.frees, h.driver, h.failed, h.dropped, h.unknown
}

// alive reports whether the process still runs.
func (s *session) alive() bool {
	if s.process.Ended(s.started) {
		return false
	}
	st, err := s.process.Status()
	return !procfs.HasExited(err) && !strings.HasPrefix(st.State, "Z") && !strings.HasPrefix(st.State, "X")
}

// poll takes what was delivered, and names its stacks while they are there.
func (s *session) poll() error {
	b, err := s.requests.Poll()
	if err != nil {
		return err
	}
	for i := range b.Stacks {
		s.names.add(&b.Stacks[i])
	}
	s.waiting = append(s.waiting, b.Events...)
	s.lose(int(b.Lost), s.polled)
	s.result.LostStacks, s.polled = int(b.LostStacks), time.Now()
	return nil
}

// take takes events into the history.
func (s *session) take(n int) {
	for i := range s.waiting[:n] {
		e := &s.waiting[i]
		s.history.add(e, s.names.of(e.Stack))
	}
	s.taken += n
	s.waiting = append(s.waiting[:0], s.waiting[n:]...)
}

// reach takes the first n events into the history, of which some may be lost.
func (s *session) reach(n uint64) error {
	if err := s.poll(); err != nil {
		return err
	}
	s.take(max(min(int(n)-s.result.Lost-s.taken, len(s.waiting)), 0))
	return nil
}

// begin reads what the allocator holds, from where on the history is complete.
func (s *session) begin() error {
	state, err := s.readQuiet(func(state []cudaalloc.Segment) bool { return s.history.agrees(state, false) })
	if err != nil || state == nil {
		s.result.Start = s.reason()
		s.history.begin(nil, event.Now())
		return err
	}
	s.history.begin(*state, event.Now())
	return nil
}

// end reads what the allocator holds, where the history ends.
func (s *session) end() error {
	state, err := s.readQuiet(func(state []cudaalloc.Segment) bool {
		return s.result.Lost > 0 || s.history.agrees(state, s.result.Start == nil)
	})
	s.requests.Stop()
	if err != nil {
		return err
	}
	if state != nil {
		s.final = *state
		if _, open, err := s.requests.Activity(); err == nil {
			s.history.failed += int(open)
		}
		if g := s.open(); s.result.Lost > 0 && s.result.Start == nil {
			s.history.correct(s.final, event.Now())
			if g != nil {
				g.Closed = true
			}
		}
		s.history.pend(s.final)
		return nil
	}
	s.result.End, s.result.Ended = s.reason(), !s.alive()
	if err := s.poll(); err != nil {
		return err
	}
	s.take(len(s.waiting))
	return nil
}

func (s *session) reason() error {
	if !s.alive() {
		return errEnded
	}
	return errBusy
}

// readQuiet reads what the allocator holds at a moment at which nothing is requested,
// and takes all events until then into the history, with which it has to agree. It
// returns nil if there is no such moment.
func (s *session) readQuiet(agrees func([]cudaalloc.Segment) bool) (*[]cudaalloc.Segment, error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && s.alive(); {
		state, events, err := s.attempt()
		if err != nil {
			return nil, err
		}
		if state != nil {
			if err := s.reach(events); err != nil {
				return nil, err
			}
			if agrees(*state) {
				return state, nil
			}
		}
		if err := s.poll(); err != nil {
			return nil, err
		}
		time.Sleep(300 * time.Microsecond)
	}
	return nil, nil
}

// attempt reads what the allocator holds, and after how many events; nil if something
// was requested meanwhile.
func (s *session) attempt() (state *[]cudaalloc.Segment, events uint64, err error) {
	events, open, err := s.requests.Activity()
	if err != nil {
		return nil, 0, err
	}
	last := s.quiet
	s.quiet = events
	if open > 0 && (events != last || !s.allReturned(open)) {
		return nil, 0, nil
	}
	time.Sleep(20 * time.Microsecond) // what began before is over
	read, unread := s.allocator.State()
	after, still, err := s.requests.Activity()
	if err != nil || unread != nil || still != open || after != events {
		return nil, 0, err
	}
	return &read, events, nil
}

// allReturned reports whether all requests that have not returned have failed. An exception
// passes no place that is watched: that a call is over is seen by the next one of its
// thread, or here by a thread that waits with less on its stack than the call had.
func (s *session) allReturned(open uint64) bool {
	threads, err := s.requests.Open()
	if err != nil || uint64(len(threads)) != open {
		return false
	}
	for tid, returns := range threads {
		sp, err := s.process.StackPointer(tid)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && sp <= returns {
			return false
		}
	}
	return true
}
