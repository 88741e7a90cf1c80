package ledger

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"strandline/host/bpf"
	"strandline/host/procfs"
)

// A DriverSource tells what programs ask of a GPU's driver. [bpf.Tracer] is one.
type DriverSource interface {
	AttachDriver(pid int, library *os.File) (functions int, err error)
	DetachDriver(pid int)
	DriverBudget(n int) error
}

// driverStacksPerSecond is how many stacks are copied of calls of the driver,
// which are dear themselves.
const (
	driverStacksPerSecond = 2000
	driverStacksAtOnce    = 300
)

// A Driver follows what processes take from the driver of a GPU. For each kind
// of memory it keeps a ledger, of the addresses that the driver gives. Memory
// that has a handle and no address of its own is entered under an address that
// no process has.
type Driver struct {
	// Libraries are the files of the driver that were found.
	Libraries []string
	// Began is when the trace did, of the events' clock.
	Began uint64

	source  DriverSource
	ledgers [bpf.DriverMemories]*Ledger
	library map[uint32]string // the driver's of each process that has it loaded
	look    map[uint32]uint64 // when to look whether a process has
	handles map[handleKey]given
	made    map[handleKey]*handle // by the time at which they were, for their stacks
	sites   map[handleKey]Site    // of calls whose stacks come, by their time
	bound   map[uint32][]binding
	next    uint64
	courses map[peakKey]*course
	moved   bool // something was taken or given back since the last step
}

type handleKey struct {
	pid uint32
	id  uint64
}

// A handle is memory that lives as long as a handle or a binding of it does.
type handle struct {
	addr, len, since uint64
	memory           bpf.DriverMemory
	refs             int
}

// given is how often the driver gave a number for a handle.
type given struct {
	*handle
	times int
}

type binding struct {
	addr, len uint64
	to        *handle
}

// ofHandles is where the addresses of what has none begin.
const ofHandles = 1 << 62

func newDriver(source DriverSource) *Driver {
	d := &Driver{
		source: source, library: map[uint32]string{}, look: map[uint32]uint64{}, handles: map[handleKey]given{},
		made: map[handleKey]*handle{}, bound: map[uint32][]binding{}, next: ofHandles,
		sites: map[handleKey]Site{}, courses: map[peakKey]*course{}, Began: bpf.Now(),
	}
	for i := range d.ledgers {
		d.ledgers[i] = NewLedger()
	}
	return d
}

// WatchDriver begins to follow what the processes take from a GPU's driver, and
// those that load its library later.
func (t *Trace) WatchDriver(source DriverSource) error {
	t.Driver = newDriver(source)
	for pid := range t.Processes {
		if err := t.Driver.find(procfs.Process(pid)); err != nil {
			return err
		}
	}
	return source.DriverBudget(driverStacksAtOnce)
}

var libcuda = regexp.MustCompile(`^libcuda\.so(\.[0-9.]+)?$`)

// find looks for the driver's library in a process, and watches it.
func (d *Driver) find(p procfs.Process) error {
	delete(d.look, uint32(p))
	if d.library[uint32(p)] != "" {
		return nil
	}
	maps, _ := p.Maps() // none of one that has ended
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
			if !slices.Contains(d.Libraries, m.Path) {
				d.Libraries = append(d.Libraries, m.Path)
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

// step looks at the processes in which the driver may be now, and allows stacks.
func (d *Driver) step(seconds float64, now uint64) error {
	for pid, at := range d.look {
		if at > now {
			continue
		}
		if err := d.find(procfs.Process(pid)); err != nil {
			return err
		}
	}
	clear(d.made)
	clear(d.sites)
	if d.moved {
		d.peak(now)
		d.moved = false
	}
	return d.source.DriverBudget(min(int(driverStacksPerSecond*seconds)+1, driverStacksAtOnce))
}

const protExec = 4

// settled is how long a child must live that begins with its parent's libraries:
// most run another program at once.
const settled = 500 * time.Millisecond

// noticed takes in what else processes do: they map code, in which the driver
// can be, and end.
func (d *Driver) noticed(e *bpf.Event) {
	switch {
	case e.Op == bpf.Map && e.Prot&protExec != 0 && e.FD >= 0 && d.library[e.PID] == "":
		d.look[e.PID] = e.Time
	case e.Op == bpf.Fork && uint32(e.Old) == e.Child():
		d.look[e.Child()] = e.Time + uint64(settled)
	case e.Op == bpf.Exec, e.Op == bpf.Exit && e.Child() == e.PID:
		d.end(e.PID, e.Time)
	}
}

func (d *Driver) mark(at uint64) {
	for _, l := range d.ledgers {
		l.Mark(at)
	}
}

// enter takes in an event of a function of the driver.
func (d *Driver) enter(e *bpf.Event, f *bpf.DriverFunction) {
	d.moved = true
	if e.Sampled {
		d.sites[handleKey{e.PID, e.Time}] = siteOf(e)
	}
	l := d.ledgers[f.Memory]
	switch f.Does {
	case bpf.DriverAllocates:
		l.drive(e, e.Addr, max(e.Len, 1))
	case bpf.DriverFrees:
		for _, m := range []bpf.DriverMemory{f.Memory, bpf.Managed} {
			d.ledgers[m].freeAt(e.PID, e.Addr, e.Time)
		}
	case bpf.DriverCreates:
		memory := f.Memory
		if e.Prot != onDevice {
			memory = bpf.Pinned
		}
		h := &handle{addr: d.next, len: e.Len, since: e.Time, memory: memory, refs: 1}
		d.next += e.Len
		d.handles[handleKey{e.PID, e.Addr}] = given{h, 1}
		d.made[handleKey{e.PID, e.Time}] = h
		d.ledgers[memory].drive(e, h.addr, h.len)
	case bpf.DriverImports:
		h := &handle{addr: d.next, len: 1, since: e.Time, memory: f.Memory, refs: 1}
		d.next += h.len
		d.handles[handleKey{e.PID, e.Addr}] = given{h, 1}
		d.made[handleKey{e.PID, e.Time}] = h
		l.drive(e, h.addr, h.len)
	case bpf.DriverReleases:
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
	case bpf.DriverBinds:
		if g, known := d.handles[handleKey{e.PID, e.Old}]; known {
			g.refs++
			d.bound[e.PID] = append(d.bound[e.PID], binding{e.Addr, e.Len, g.handle})
		}
	case bpf.DriverUnbinds:
		d.bound[e.PID] = slices.DeleteFunc(d.bound[e.PID], func(b binding) bool {
			within := b.addr >= e.Addr && b.addr < e.Addr+e.Len
			if within {
				d.release(b.to, e)
			}
			return within
		})
	case bpf.DriverRetains:
		for _, b := range d.bound[e.PID] {
			if e.Old >= b.addr && e.Old-b.addr < b.len {
				d.retain(handleKey{e.PID, e.Addr}, b.to)
				break
			}
		}
	}
}

// onDevice is where memory of a device is created (CU_MEM_LOCATION_TYPE_DEVICE).
const onDevice = 1

// retain counts a handle once more. Where the driver gives the number that it has
// already, that is to be released as often as it was given.
func (d *Driver) retain(key handleKey, h *handle) {
	h.refs++
	g := d.handles[key]
	if g.handle != h {
		g = given{handle: h}
	}
	g.times++
	d.handles[key] = g
}

func (d *Driver) release(h *handle, e *bpf.Event) {
	h.refs--
	if h.refs == 0 {
		l := d.ledgers[h.memory]
		l.remove(l.Space(e.PID), h.addr, h.addr+h.len, e.Time)
	}
}

// drive enters an allocation.
func (l *Ledger) drive(e *bpf.Event, addr, size uint64) {
	at := *e
	at.Addr, at.Len = addr, size
	l.place(l.Space(e.PID), &at, Interval{})
}

// freeAt ends the allocation that begins at an address, unless it is younger.
func (l *Ledger) freeAt(pid uint32, addr, at uint64) {
	s := l.Space(pid)
	s.within(addr, addr+1, func(iv *Interval) bool {
		if iv.Start == addr && iv.Since < at {
			l.remove(s, iv.Start, iv.End, at)
		}
		return false
	})
}

// end forgets what a process had: it ended, or runs another program.
func (d *Driver) end(pid uint32, at uint64) {
	for _, l := range d.ledgers {
		if s := l.spaces[pid]; s != nil {
			l.end(s, at)
		}
	}
	for key := range d.handles {
		if key.pid == pid {
			delete(d.handles, key)
		}
	}
	delete(d.bound, pid)
	delete(d.look, pid)
	d.source.DetachDriver(int(pid))
	delete(d.library, pid)
}

// nameDriver gives a sample its stack. If what the call made is gone already, its
// place has a stack from then on, if it had none.
func (t *Trace) nameDriver(s *bpf.Sample, f *bpf.DriverFunction) {
	l, at := t.Driver.ledgers[f.Memory], s.Addr
	if h := t.Driver.made[handleKey{s.PID, s.Time}]; h != nil {
		l, at = t.Driver.ledgers[h.memory], h.addr
	}
	site, known := t.Driver.sites[handleKey{s.PID, s.Time}]
	lives := l.Stack(s.PID, s.Time, at, 1, 0)
	if !lives && (!known || l.named(site)) {
		return
	}
	called := t.namer.Stack(s)
	called.Frames = slices.Insert(called.Frames, 0, Frame{Object: t.Driver.library[s.PID]})
	called.Frames[0].Function = f.Name
	stack := t.intern(called)
	if lives {
		l.Stack(s.PID, s.Time, at, 1, stack)
	} else {
		l.cause(site, stack, false)
	}
}

// named tells whether calls of a site have a stack.
func (l *Ledger) named(site Site) bool {
	return slices.ContainsFunc(l.Causes, func(c Made) bool { return c.Stack != 0 && c.Site == site })
}

// A DriverUse is what the calls of a function of the driver with one stack hold.
type DriverUse struct {
	Use
	Memory bpf.DriverMemory
	Owner  string // whose code calls
	Peak   Peak
}

// DriverSums are what was taken from the driver since and is not given back. Of
// foreign memory the size is not known, and its bytes are 0.
type DriverSums struct {
	Libraries    []string // the files of the driver
	Bytes, Count [bpf.DriverMemories]int64
	Uses         []DriverUse // most bytes first
	Owners       []DriverOwner
	Marks        int
	Began        uint64 // the trace, of the events' clock
}

// A DriverOwner is what one library's calls hold of one kind of memory.
type DriverOwner struct {
	Name         string
	Memory       bpf.DriverMemory
	Bytes, Count int64
}

// DriverSums reckons up what was taken from the driver.
func (t *Trace) DriverSums() *DriverSums {
	s := &DriverSums{Libraries: t.Driver.Libraries, Began: t.Driver.Began}
	owners := map[DriverOwner]*DriverOwner{}
	told := map[peakKey]bool{}
	for m, l := range t.Driver.ledgers {
		memory := bpf.DriverMemory(m)
		s.Marks = len(l.marks)
		unread := make([]int64, len(l.Causes))
		for i := range unread {
			unread[i] = -1
		}
		for _, u := range t.uses(l, make([]Kind, len(l.Causes)), unread) {
			if memory == bpf.Foreign {
				u.Live, u.Total, u.Size = 0, 0, 0
			}
			use := DriverUse{Use: u, Memory: memory, Owner: ownerOf(u.Frames)}
			of := peakKey{memory, u.ID}
			if u.ID == 0 {
				of.stack = -int(u.Op)
			}
			if !told[of] {
				told[of], use.Peak = true, t.Driver.courses[of].most()
			}
			s.Uses = append(s.Uses, use)
			s.Bytes[m] += u.Live
			s.Count[m] += u.Count
			if u.Count == 0 {
				continue
			}
			key := DriverOwner{Name: use.Owner, Memory: memory}
			if owners[key] == nil {
				owners[key] = &DriverOwner{Name: use.Owner, Memory: memory}
			}
			owners[key].Bytes += u.Live
			owners[key].Count += u.Count
		}
	}
	slices.SortStableFunc(s.Uses, func(a, b DriverUse) int { return cmp.Compare(b.Live, a.Live) })
	for _, o := range owners {
		s.Owners = append(s.Owners, *o)
	}
	slices.SortFunc(s.Owners, func(a, b DriverOwner) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Memory, b.Memory))
	})
	return s
}
