//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"strandline/host/calls/event"
)

// ofRequests is the prefix of the names of the programs and maps for requests.
const ofRequests = "strand_request_"

// tracepoints lists the programs and what they are attached to.
var tracepoints = []struct{ program, group, name string }{
	{"strand_mmap", "syscalls", "sys_exit_mmap"},
	{"strand_munmap", "syscalls", "sys_enter_munmap"},
	{"strand_mremap_enter", "syscalls", "sys_enter_mremap"},
	{"strand_mremap", "syscalls", "sys_exit_mremap"},
	{"strand_brk", "syscalls", "sys_exit_brk"},
	{"strand_mprotect", "syscalls", "sys_exit_mprotect"},
	{"strand_mprotect", "syscalls", "sys_exit_pkey_mprotect"},
	{"strand_madvise", "syscalls", "sys_exit_madvise"},
	{"strand_shmat", "syscalls", "sys_exit_shmat"},
	{"strand_shmdt", "syscalls", "sys_enter_shmdt"},
	{"strand_memfd", "syscalls", "sys_exit_memfd_create"},
	{"strand_ftruncate", "syscalls", "sys_exit_ftruncate"},
	{"strand_signal", "signal", "signal_deliver"},
	{"strand_exec", "sched", "sched_process_exec"},
	{"strand_exit", "sched", "sched_process_exit"},
}

// margin bounds the time between reading the clock for an event and the moment at which
// the event can be read.
const margin = uint64(5 * time.Millisecond)

// A Tracer is the set of attached programs. The kernel removes them all when the
// process that loaded them ends, however it ends.
type Tracer struct {
	collection      *ebpf.Collection
	links           []link.Link
	events, samples *ringbuf.Reader
	record          ringbuf.Record
	pending         []byte        // shared with the kernel: a pendingMap for each place
	held            []event.Event // of times that may not be complete yet
	driverSpec      *ebpf.CollectionSpec
	driver          *ebpf.Collection    // nil until requested
	probes          map[int][]link.Link // for the driver, by process
	together        bool                // one link can watch many functions
	detaching       sync.WaitGroup
}

// Start loads and attaches the programs. Nothing is watched yet. The error is an
// [errors.ErrUnsupported] if the machine does not support BPF or the user may not use
// it.
func Start() (*Tracer, error) {
	allowLocked()
	spec, err := load(object)
	if err != nil {
		return nil, err
	}
	if err := rewriteNamespace(spec, split(spec, ofSelf)); err != nil {
		return nil, err
	}
	split(spec, ofRequests)
	if page := spec.Variables["strand_page"]; page != nil { // where kernels differ in their page size
		if err := page.Set(uint64(os.Getpagesize())); err != nil {
			return nil, err
		}
	}
	spec.Variables = nil // otherwise the loader maps them into memory, where they outlive Close
	t := &Tracer{driverSpec: split(spec, ofDriver), probes: map[int][]link.Link{}}
	if t.collection, err = ebpf.NewCollection(spec); err != nil {
		return nil, fmt.Errorf("the kernel refuses the BPF programs: %w", plain(err))
	}
	if err := t.open(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// allowLocked lifts the limit on locked memory where maps count toward it: in kernels
// before 5.11. If that is refused, loading fails. (ebpf/rlimit creates a map to find out
// whether they do, whenever a program starts that contains it.)
func allowLocked() {
	if v, err := features.LinuxVersionCode(); err != nil || v < 5<<16|11<<8 {
		_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	}
}

// split removes the programs and maps whose names have the prefix from a specification,
// and returns a specification of these and of the maps that they share with the rest.
func split(all *ebpf.CollectionSpec, prefix string) (some *ebpf.CollectionSpec) {
	some = all.Copy()
	for name := range some.Programs {
		if strings.HasPrefix(name, prefix) {
			delete(all.Programs, name)
		} else {
			delete(some.Programs, name)
		}
	}
	for name := range some.Maps {
		if strings.HasPrefix(name, prefix) {
			delete(all.Maps, name)
		}
	}
	return some
}

// An unsupported error says why this machine or user cannot use BPF. Any other error is
// a bug in the programs.
type unsupported struct{ error }

func (e unsupported) Unwrap() error { return e.error }

// Is reports that it is [errors.ErrUnsupported].
func (unsupported) Is(target error) bool { return target == errors.ErrUnsupported }

// plain strips a refusal of what does not help a reader: the verifier's log, and
// guesses at the cause.
func plain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return unsupported{unix.EPERM}
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.ENOSYS):
		return unsupported{err}
	}
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		return refused.Cause
	}
	return err
}

func (t *Tracer) open() (err error) {
	maps := t.collection.Maps
	if t.events, err = ringbuf.NewReader(maps["strand_events"]); err != nil {
		return err
	}
	if t.samples, err = ringbuf.NewReader(maps["strand_samples"]); err != nil {
		return err
	}
	if err := maps["strand_tail"].Update(uint32(0), t.collection.Programs["strand_sample"], ebpf.UpdateAny); err != nil {
		return err
	}
	pending := maps["strand_pending"]
	if t.pending, err = unix.Mmap(pending.FD(), 0, int(pending.MaxEntries()*pendingSize), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map waiting mappings: %w", err)
	}
	return withTracefs(t.attach)
}

func (t *Tracer) attach() error {
	for _, p := range tracepoints {
		l, err := link.Tracepoint(p.group, p.name, t.collection.Programs[p.program], nil)
		if errors.Is(err, os.ErrNotExist) && p.name == "sys_exit_pkey_mprotect" {
			continue // kernels without protection keys have none
		}
		if err != nil {
			return fmt.Errorf("tracepoint %s/%s: %w", p.group, p.name, err)
		}
		t.links = append(t.links, l)
	}
	// A plain tracepoint gives only the kernel's own number of the new process.
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "task_newtask", Program: t.collection.Programs["strand_fork"]})
	if err != nil {
		return fmt.Errorf("tracepoint task_newtask: %w", err)
	}
	t.links = append(t.links, l)
	return nil
}

// Close detaches the programs and frees what they used.
func (t *Tracer) Close() {
	t.closeDriver()
	// The kernel waits for each of them until all processors have left the program; it
	// can wait for all of them at once.
	var closing sync.WaitGroup
	for _, l := range t.links {
		closing.Go(func() { l.Close() })
	}
	closing.Wait()
	t.links = nil
	for _, r := range []*ringbuf.Reader{t.events, t.samples} {
		if r != nil {
			r.Close()
		}
	}
	if t.pending != nil {
		unix.Munmap(t.pending)
		t.pending = nil
	}
	t.collection.Close()
}

type watchedProcess struct{ Owner, Epoch, LargeStacks, _ uint32 }

// Watch starts watching a process. Its children follow automatically.
func (t *Tracer) Watch(pid int) error {
	err := t.collection.Maps["strand_watched"].Update(uint32(pid), watchedProcess{Owner: uint32(pid)}, ebpf.UpdateNoExist)
	if errors.Is(err, ebpf.ErrKeyExist) {
		return nil
	}
	return err
}

// LargeStacks makes the copies of a process's stacks 64 KiB instead of 16 KiB.
func (t *Tracer) LargeStacks(pid int) error {
	watched := t.collection.Maps["strand_watched"]
	var w watchedProcess
	if err := watched.Lookup(uint32(pid), &w); err != nil {
		return err
	}
	w.LargeStacks = 1
	return watched.Update(uint32(pid), w, ebpf.UpdateExist)
}

// Python makes the samples of a process carry its interpreter's frames.
func (t *Tracer) Python(pid int, p event.PythonLayout) error {
	return t.collection.Maps["strand_python"].Update(uint32(pid), p, ebpf.UpdateAny)
}

// Budget allows n stacks to be copied until the next call.
func (t *Tracer) Budget(n int) error {
	return t.collection.Maps["strand_budget"].Update(uint32(0), int64(n), ebpf.UpdateAny)
}

type siteKey struct {
	Place event.Place
	PID   uint32
	Op    uint16
	Class uint16
}

type siteState struct{ Next, Interval uint64 }

// Pace sets how often the stack of calls like e is copied.
func (t *Tracer) Pace(e *event.Event, every time.Duration) error {
	sites := t.collection.Maps["strand_sites"]
	key := siteKey{e.Place, e.PID, uint16(e.Op), uint16(e.Class)}
	var s siteState
	if err := sites.Lookup(key, &s); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	if s.Interval == uint64(every) {
		return nil
	}
	s.Next = min(s.Next, event.Now()+uint64(every))
	s.Interval = uint64(every)
	return sites.Update(key, s, ebpf.UpdateAny)
}

// Poll returns what has happened since the last call. There is room for up to 90,000
// events and 600 stacks between calls.
func (t *Tracer) Poll() (*event.Batch, error) {
	now := event.Now()
	b := &event.Batch{Until: now - margin}
	events := t.drain(t.held)
	err := readRing(t.events, &t.record, func(raw []byte) {
		if len(raw) >= eventSize {
			events = append(events, decodeEvent(raw))
		}
	})
	if err != nil {
		return nil, err
	}
	err = readRing(t.samples, &t.record, func(raw []byte) {
		if len(raw) > sampleStack {
			b.Samples = append(b.Samples, decodeSample(raw))
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(events, func(x, y event.Event) int {
		switch {
		case x.Time < y.Time:
			return -1
		case x.Time > y.Time:
			return 1
		}
		return 0
	})
	n, _ := slices.BinarySearchFunc(events, b.Until+1, func(e event.Event, at uint64) int {
		if e.Time < at {
			return -1
		}
		return 1
	})
	b.Events, t.held = events[:n], slices.Clone(events[n:])
	return b, t.totals(b)
}

// A pendingMap is a mapping that waits to be unmapped.
type pendingMap struct {
	Key         uint64
	Time, Len   uint64
	Place       event.Place
	TID, _      uint32
	Prot, Flags uint32
	FD          int32
	Class       uint16
	Sampled     uint16
}

// The states of a place that are not a mapping's key.
const (
	pendingFree  = 0
	pendingTaken = 1
)

const pendingSize = uint32(unsafe.Sizeof(pendingMap{}))

// event returns the event of a mapping whose key was key.
func (m *pendingMap) event(key uint64) event.Event {
	const pidBits = 22
	return event.Event{
		Op: event.Map, Time: m.Time, PID: uint32(key & (1<<pidBits - 1)), TID: m.TID, Sampled: m.Sampled != 0,
		Addr: key >> pidBits * pageSize, Len: m.Len, Prot: m.Prot, Flags: m.Flags, FD: m.FD, Class: uint32(m.Class), Place: m.Place,
	}
}

// drain takes the mappings that wait to be unmapped.
func (t *Tracer) drain(events []event.Event) []event.Event {
	places := unsafe.Slice((*pendingMap)(unsafe.Pointer(&t.pending[0])), len(t.pending)/int(pendingSize))
	for i := range places {
		p := &places[i]
		key := atomic.LoadUint64(&p.Key)
		if key == pendingFree || key == pendingTaken || !atomic.CompareAndSwapUint64(&p.Key, key, pendingTaken) {
			continue
		}
		events = append(events, p.event(key))
		atomic.StoreUint64(&p.Key, pendingFree)
	}
	return events
}

func (t *Tracer) totals(b *event.Batch) error {
	for i, to := range []*uint64{&b.Lost, &b.LostSamples, &b.Paired, &b.PairedBytes, &b.Unwatched} {
		if err := t.collection.Maps["strand_counts"].Lookup(uint32(i), to); err != nil {
			return err
		}
	}
	return nil
}

// SeesCalls reports true.
func (*Tracer) SeesCalls() bool { return true }

// readRing hands over what is in a ring now.
func readRing(from *ringbuf.Reader, record *ringbuf.Record, f func([]byte)) error {
	from.SetDeadline(time.Unix(1, 0))
	for {
		err := from.ReadInto(record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		f(record.RawSample)
	}
}
