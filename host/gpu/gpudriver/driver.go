package gpudriver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/proc/procfs"
	"strandline/host/store/recording"
	"strandline/internal/lazyregexp"
)

// A Source sees what programs request from a GPU's driver. [bpf.Tracer] is one.
type Source interface {
	AttachDriver(pid int, library *os.File) (functions int, err error)
	DetachDriver(pid int)
	DriverBudget(n int) error
}

// How many stacks are copied for driver calls, which are slow anyway.
const (
	stacksPerSecond = 2000
	maxStacksAtOnce = 300
)

// A Driver follows what processes take from the driver of a GPU. For each kind of
// memory it keeps a ledger of the addresses that the driver gives out. Memory that has
// a handle and no address of its own is entered under an address that no process has.
type Driver struct {
	// libraries are the files of the driver that were found.
	libraries []string
	// Began is when the trace began, on the events' clock.
	Began uint64

	source     Source
	symbolizer ledger.Symbolizer
	stacks     *ledger.Stacks
	ledgers    [event.DriverMemories]*ledger.Ledger
	library    map[uint32]string // the driver's library in each process that has it loaded
	look       map[uint32]uint64 // when to check whether a process has
	handles    map[handleKey]reuse
	made       map[handleKey]*handle     // by the time at which they were made, for their stacks
	sites      map[handleKey]ledger.Site // of calls whose stacks are still to come, by their time
	bound      map[uint32][]binding
	next       uint64
	courses    map[peakKey]*course
	changed    bool // something was taken or given back since the last step
	places     map[uint32]map[uint64]*place
	moving     map[uint32]*moves // hand-overs that have not ended
	handOvers  []*moves
}

type handleKey struct {
	pid uint32
	id  uint64
}

// A handle is memory that lives as long as the handle or one of its bindings.
type handle struct {
	addr, len, since uint64
	memory           event.DriverMemory
	refs             int
	owner            string // whose code made it; "" if that is not known
}

// reuse is how often the driver gave out a number for a handle.
type reuse struct {
	*handle
	times int
}

type binding struct {
	addr, len uint64
	to        *handle
}

// ofHandles is where the addresses of memory without one begin.
const ofHandles = 1 << 62

func newDriver(source Source, stacks *ledger.Stacks, symbolizer ledger.Symbolizer) *Driver {
	d := &Driver{
		source: source, stacks: stacks, symbolizer: symbolizer, library: map[uint32]string{}, look: map[uint32]uint64{}, handles: map[handleKey]reuse{},
		made: map[handleKey]*handle{}, bound: map[uint32][]binding{}, next: ofHandles,
		sites: map[handleKey]ledger.Site{}, courses: map[peakKey]*course{}, Began: event.Now(),
		places: map[uint32]map[uint64]*place{}, moving: map[uint32]*moves{},
	}
	for i := range d.ledgers {
		d.ledgers[i] = ledger.New()
	}
	return d
}

// Watch begins to follow what the processes of a trace take from a GPU's driver, and
// what processes that load its library later take.
func Watch(t *ledger.Trace, source Source) (*Driver, error) {
	d := newDriver(source, t.Stacks, t.Symbolizer)
	t.Attach(d)
	for pid := range t.Processes {
		if err := d.find(procfs.Process(pid)); err != nil {
			return nil, err
		}
	}
	return d, source.DriverBudget(maxStacksAtOnce)
}

var libcuda = lazyregexp.New(`^libcuda\.so(\.[0-9.]+)?$`)

// find looks for the driver's library in a process, and watches it.
func (d *Driver) find(p procfs.Process) error {
	delete(d.look, uint32(p))
	if d.library[uint32(p)] != "" {
		return nil
	}
	maps, _ := p.Maps() // none if it has ended
	for _, m := range maps {
		if !m.Exec || !libcuda.MatchString(filepath.Base(m.Path)) {
			continue
		}
		n, err := d.attach(p, m)
		if _, gone := p.Status(); err != nil && gone != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch %s of process %d: %w", m.Path, p, err)
		}
		if n > 0 {
			d.library[uint32(p)] = m.Path
			if !slices.Contains(d.libraries, m.Path) {
				d.libraries = append(d.libraries, m.Path)
			}
			return nil
		}
	}
	return nil
}

func (d *Driver) attach(p procfs.Process, m procfs.Mapping) (functions int, err error) {
	f, err := p.OpenMapped(m)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return d.source.AttachDriver(int(p), f)
}

// Step looks at the processes that may have loaded the driver by now, and allows
// stacks.
func (d *Driver) Step(passed time.Duration, now uint64) error {
	for pid, at := range d.look {
		if at > now {
			continue
		}
		if err := d.find(procfs.Process(pid)); err != nil {
			return err
		}
	}
	d.settle(now)
	clear(d.made)
	clear(d.sites)
	if d.changed {
		d.peak(now)
		d.changed = false
	}
	return d.source.DriverBudget(min(int(stacksPerSecond*passed.Seconds())+1, maxStacksAtOnce))
}

// settled is how long a child that begins with its parent's libraries must live: most
// run another program at once.
const settled = 500 * time.Millisecond

// Event takes in an event of the trace.
func (d *Driver) Event(e *event.Event) {
	if f := e.Op.Driver(); f != nil {
		d.enter(e, f)
	} else {
		d.noticed(e)
	}
}

// noticed takes in what else processes do: they map code, which can be the driver's,
// and end.
func (d *Driver) noticed(e *event.Event) {
	switch {
	case e.Op == event.Map && e.Prot&event.ProtExec != 0 && e.FD >= 0 && d.library[e.PID] == "":
		d.look[e.PID] = e.Time
	case e.Op == event.Fork && uint32(e.Old) == e.Child():
		d.look[e.Child()] = e.Time + uint64(settled)
	case e.Op == event.Exec, e.Op == event.Exit && e.Child() == e.PID:
		d.end(e.PID, e.Time)
	}
}

// Checkpoint takes in a moment at which growth is measured.
func (d *Driver) Checkpoint(at uint64) {
	for _, l := range d.ledgers {
		l.Checkpoint(at)
	}
}

// enter takes in a call of a driver function.
func (d *Driver) enter(e *event.Event, f *event.DriverFunction) {
	d.changed = true
	if e.Sampled {
		d.sites[handleKey{e.PID, e.Time}] = ledger.SiteOf(e)
	}
	switch f.Does {
	case event.DriverAllocates:
		d.ledgers[f.Memory].Add(e, e.Addr, max(e.Len, 1))
	case event.DriverFrees:
		for _, m := range []event.DriverMemory{f.Memory, event.Managed} {
			d.ledgers[m].FreeAt(e.PID, e.Addr, e.Time)
		}
	case event.DriverCreates:
		memory := f.Memory
		if e.Prot != onDevice {
			memory = event.Pinned
		}
		d.create(e, memory, e.Len)
	case event.DriverImports:
		d.create(e, f.Memory, 1)
	case event.DriverReleases:
		d.releaseNumber(e)
	case event.DriverBinds:
		if g, known := d.handles[handleKey{e.PID, e.Old}]; known {
			g.refs++
			d.bound[e.PID] = append(d.bound[e.PID], binding{e.Addr, e.Len, g.handle})
			d.bind(e, g.handle)
		}
	case event.DriverUnbinds:
		d.bound[e.PID] = slices.DeleteFunc(d.bound[e.PID], func(b binding) bool {
			within := b.addr >= e.Addr && b.addr < e.Addr+e.Len
			if within {
				d.release(b.to, e)
				d.unbind(e, b.addr)
			}
			return within
		})
	case event.DriverUnreserves:
		d.unreserve(e)
	case event.DriverRetains:
		for _, b := range d.bound[e.PID] {
			if e.Old >= b.addr && e.Old-b.addr < b.len {
				d.retain(handleKey{e.PID, e.Addr}, b.to)
				break
			}
		}
	}
}

// create enters memory that has a handle and no address of its own.
func (d *Driver) create(e *event.Event, memory event.DriverMemory, size uint64) {
	h := &handle{addr: d.next, len: size, since: e.Time, memory: memory, refs: 1}
	d.next += size
	d.handles[handleKey{e.PID, e.Addr}] = reuse{h, 1}
	d.made[handleKey{e.PID, e.Time}] = h
	d.ledgers[memory].Add(e, h.addr, h.len)
}

// releaseNumber releases a handle by the number that the driver gave out for it.
func (d *Driver) releaseNumber(e *event.Event) {
	key := handleKey{e.PID, e.Addr}
	g, known := d.handles[key]
	if !known {
		return
	}
	if g.times--; g.times == 0 {
		delete(d.handles, key)
	} else {
		d.handles[key] = g
	}
	d.release(g.handle, e)
}

// onDevice is the location of memory on a device (CU_MEM_LOCATION_TYPE_DEVICE).
const onDevice = 1

// retain counts a handle once more. If the driver gives out a number that the handle
// already has, that number must be released as often as it was given out.
func (d *Driver) retain(key handleKey, h *handle) {
	h.refs++
	g := d.handles[key]
	if g.handle != h {
		g = reuse{handle: h}
	}
	g.times++
	d.handles[key] = g
}

func (d *Driver) release(h *handle, e *event.Event) {
	h.refs--
	if h.refs == 0 {
		d.ledgers[h.memory].Remove(e.PID, h.addr, h.addr+h.len, e.Time)
		if m := d.moving[e.PID]; m != nil && m.do == recording.Pause {
			m.last(d, e.Time)
		}
	}
}

// end forgets what a process had when it ended or ran another program.
func (d *Driver) end(pid uint32, at uint64) {
	for _, l := range d.ledgers {
		l.End(pid, at)
	}
	for key := range d.handles {
		if key.pid == pid {
			delete(d.handles, key)
		}
	}
	if m := d.moving[pid]; m != nil {
		d.moved(m)
	}
	delete(d.places, pid)
	delete(d.bound, pid)
	delete(d.look, pid)
	d.source.DetachDriver(int(pid))
	delete(d.library, pid)
}

// Sample gives a sample its stack. If what the call made is already gone, the call's
// place has a stack from then on, if it had none.
func (d *Driver) Sample(s *event.Sample) {
	f := s.Op.Driver()
	l, at := d.ledgers[f.Memory], s.Addr
	h := d.made[handleKey{s.PID, s.Time}]
	if h != nil {
		l, at = d.ledgers[h.memory], h.addr
	}
	site, known := d.sites[handleKey{s.PID, s.Time}]
	lives := l.Lives(s.PID, s.Time, at, 1)
	if !lives && (!known || l.HasStack(site)) {
		return
	}
	frames := d.symbolizer.Stack(s)
	if h != nil {
		h.owner = ownerOf(frames.Frames)
	}
	frames.Frames = slices.Insert(frames.Frames, 0, symbolize.Frame{Object: d.library[s.PID]})
	frames.Frames[0].Function = f.Name
	stack := d.stacks.Intern(frames)
	if lives {
		l.SetStack(s.PID, s.Time, at, 1, stack)
	} else {
		l.AddStack(site, stack)
	}
}
