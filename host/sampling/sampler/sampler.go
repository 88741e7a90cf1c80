package sampler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/internal/sorts"
	"strandline/record"
)

// Options say what is watched.
type Options struct {
	// root is where processes are shown, "/proc" if it is empty.
	root string
	// PID is the process that is watched with its children; 0 for all that hold memory
	// of a device or are recorded, or where none does the largest of the host.
	PID int
	// Interval is the time between samples, for what is read beside them.
	Interval time.Duration
	// Devices reads the memory of devices; nil if nothing does. The sampler closes it.
	Devices sample.DeviceSource
	// Short is called with the reason when samples begin not to show all that there is;
	// nil for nothing. See [Sampler.Short].
	Short func(why error)
	// dialTorch connects to the recorder of a process; [record.Dial] if it is nil.
	dialTorch func(ctx context.Context, pid int) (*record.Control, error)
	// openGauge looks into a process without a recorder that holds memory of a device.
	// If it is nil, that is done for the processes of this machine.
	openGauge func(pid int) (gauge, error)
}

// procRoot is where Linux shows the processes of this machine.
const procRoot = "/proc"

// maxLargest is how many processes are watched where none holds memory of a device.
const maxLargest = 20

// A Sampler takes samples of one machine. Its methods may not be called concurrently.
type Sampler struct {
	o       Options
	began   time.Time
	root    *os.File
	devices *poller
	torch   *torches
	pausing *pausables
	looks   *observations
	inside  bool // a pid namespace, in which not all processes are visible
	// outermost is whether the control groups are seen from the root of all.
	outermost bool

	known   map[int]origin // every process that there is
	watched map[int]*process
	groups  map[string]*group
	largest []int // watched as long as no device was seen
	gpus    bool  // a device was seen
	looked  int   // samples taken
	short   error // see [Sampler.Short]
	buffer  []byte
}

// origin is what is known of a process that need not be watched.
type origin struct {
	started uint64
	parent  int
}

// New begins to watch. The error states that there is no /proc.
func New(o Options) (*Sampler, error) {
	if o.root == "" {
		o.root = procRoot
	}
	if o.dialTorch == nil {
		o.dialTorch = record.Dial
	}
	if o.openGauge == nil && o.root == procRoot {
		o.openGauge = openGauge
	}
	root, err := os.Open(o.root)
	if err != nil {
		return nil, err
	}
	s := &Sampler{
		o: o, began: time.Now(), root: root, torch: newTorches(o.dialTorch, o.openGauge, o.Interval), looks: newLooks(), pausing: newPausables(o.Interval),
		known: map[int]origin{}, watched: map[int]*process{}, groups: map[string]*group{}, buffer: make([]byte, 8<<10),
	}
	const ( // PROC_PID_INIT_INO and PROC_CGROUP_INIT_INO of linux/proc_ns.h
		initial       = "pid:[4026531836]"
		initialGroups = "cgroup:[4026531835]"
	)
	if ns, err := os.Readlink(filepath.Join(o.root, "self/ns/pid")); err == nil {
		s.inside = ns != initial
	}
	if ns, err := os.Readlink(filepath.Join(o.root, "self/ns/cgroup")); err == nil {
		s.outermost = ns == initialGroups
	}
	if o.Devices != nil {
		s.devices = poll(o.Devices, o.Interval)
	}
	return s, nil
}

// Close ends the watch.
func (s *Sampler) Close() error {
	for _, p := range s.watched {
		p.close()
	}
	s.torch.close()
	s.pausing.close()
	s.looks.close()
	err := s.root.Close()
	if s.devices != nil {
		err = cmp.Or(s.devices.close(), err)
	}
	return err
}

// Sample takes a sample. The first one waits for the devices until the context ends.
func (s *Sampler) Sample(ctx context.Context) (*sample.Sample, error) {
	out := &sample.Sample{Schema: sample.Schema, Processes: []sample.Process{}, Devices: []sample.Device{}, Groups: []sample.Group{}}
	if s.devices != nil {
		if s.looked == 0 {
			s.devices.first(ctx)
		}
		devices, note := s.devices.now(max(3*s.o.Interval, 3*time.Second))
		out.Devices, out.DevicesNote = append(out.Devices, devices...), note
	}
	before := s.short
	s.short = nil
	if err := s.list(); err != nil && !s.lacks(err) {
		return nil, err
	}
	out.Time = time.Now()
	out.Seconds = out.Time.Sub(s.began).Seconds()
	for _, pid := range s.choose(out.Devices) {
		s.watch(pid)
	}
	for _, pid := range slices.Sorted(maps.Keys(s.watched)) {
		p := s.watched[pid]
		if !p.look(s) {
			s.end(p)
			delete(s.known, pid) // looked at again if it has been given to another one
			continue
		}
		if h := p.now.Host; h != nil && s.o.root == procRoot {
			p.now.Grown = s.looks.of(p.now.ID(), h, p.minHeld(h))
		}
		out.Processes = append(out.Processes, s.watched[pid].now)
	}
	s.share(out)
	s.limits(out)
	s.looked++
	if s.short != nil && before == nil && s.o.Short != nil {
		s.o.Short(s.short)
	}
	return out, nil
}

// rareInterval is after how many samples what rarely changes is looked at once more.
const rareInterval = 30

// list brings the list of all processes up to date. Where those are watched that hold
// memory of a device, which the driver names, it is rarely needed.
func (s *Sampler) list() error {
	if s.o.PID == 0 && s.gpus && s.looked%rareInterval != 0 {
		return nil
	}
	if _, err := s.root.Seek(0, 0); err != nil {
		return err
	}
	names, err := s.root.Readdirnames(-1)
	if err != nil {
		return err
	}
	old := s.known
	s.known = make(map[int]origin, len(old))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid <= 0 {
			continue
		}
		o, ok := old[pid]
		if !ok || s.looked%rareInterval == 0 {
			was := o
			if o, err = s.origin(pid); s.lacks(err) && ok {
				o = was
			} else if err != nil {
				continue // has ended by now, or is looked at in the next sample
			}
		}
		s.known[pid] = o
	}
	return nil
}

// path is that of a file about a process.
func (s *Sampler) path(pid int, name string) string {
	return filepath.Join(s.o.root, strconv.Itoa(pid), name)
}

func (s *Sampler) origin(pid int) (o origin, err error) {
	text, err := os.ReadFile(s.path(pid, "stat"))
	if err != nil {
		return o, err
	}
	o.parent, o.started, err = procfs.ParseOrigin(string(text))
	return o, err
}

// choose are the processes to watch that are there.
func (s *Sampler) choose(devices []sample.Device) (out []int) {
	want := map[int]bool{}
	if s.o.PID > 0 {
		want[s.o.PID] = true
		for pid := range s.known {
			self := os.Getpid() // this watch, started by what it watches, and what it runs itself
			own := s.o.root == procRoot && (pid == self || s.known[pid].parent == self)
			if !own && s.descends(pid) {
				want[pid] = true
			}
		}
	} else {
		for _, d := range devices {
			for _, h := range d.Processes {
				want[h.PID] = true
				s.meet(h.PID)
			}
		}
		if s.looked%rareInterval == 0 && s.o.root == procRoot {
			for _, pid := range record.Running() {
				want[pid] = true
			}
		}
		if len(devices) > 0 && !s.gpus {
			s.gpus = true
			s.forgetLargest(want)
		}
		if !s.gpus {
			if s.looked%rareInterval == 0 {
				s.largest = s.findLargest()
			}
			for _, pid := range s.largest {
				want[pid] = true
			}
		}
	}
	for pid := range want {
		if _, ok := s.known[pid]; ok {
			out = append(out, pid)
		}
	}
	return out
}

// meet takes note of a process that came after the list was made, if it is there.
func (s *Sampler) meet(pid int) {
	if _, ok := s.known[pid]; ok || pid <= 0 {
		return
	}
	o, err := s.origin(pid)
	if err == nil {
		s.known[pid] = o
	}
	s.lacks(err)
}

// lacks reports whether an error is that this program or the machine has nothing left to
// read with, which tells nothing of a process, and takes note of that.
func (s *Sampler) lacks(err error) bool {
	if !procfs.Lacks(err) {
		return false
	}
	s.short = err
	return true
}

// Short is why the last sample does not show all that there is: this program may open no
// more files, or there is no memory. It is nil if the sample is whole.
func (s *Sampler) Short() error { return s.short }

// exited reports whether the process that was asked for has ended. Looking for its folder
// takes no descriptor.
func (s *Sampler) exited() bool {
	_, err := os.Lstat(s.path(s.o.PID, ""))
	return procfs.HasExited(err)
}

// descends reports whether a process is a child of the one that is asked for, or of a
// child of it, or of one that is watched already.
func (s *Sampler) descends(pid int) bool {
	const deepest = 1000 // a parent can be a process that came later
	for range deepest {
		o, ok := s.known[pid]
		if !ok || o.parent == 0 {
			return false
		}
		if pid = o.parent; pid == s.o.PID || s.watched[pid] != nil {
			return true
		}
	}
	return false
}

// forgetLargest ends the watch of the largest processes but for some.
func (s *Sampler) forgetLargest(want map[int]bool) {
	for _, pid := range s.largest {
		if p := s.watched[pid]; p != nil && !want[pid] {
			s.end(p)
		}
	}
	s.largest = nil
}

// end ends the watch of a process.
func (s *Sampler) end(p *process) {
	p.close()
	s.torch.drop(p.now.PID)
	s.pausing.drop(p.now.PID)
	s.looks.forget(p.now.ID())
	delete(s.watched, p.now.PID)
}

// findLargest are the processes with most resident memory but this one.
func (s *Sampler) findLargest() (out []int) {
	resident := map[int]int64{}
	for pid := range s.known {
		text, err := os.ReadFile(s.path(pid, "statm"))
		if err != nil || pid == os.Getpid() {
			continue
		}
		var size, pages int64
		if n, _ := fmt.Sscan(string(text), &size, &pages); n == 2 && pages > 0 {
			resident[pid] = pages
			out = append(out, pid)
		}
	}
	sorts.By(out, func(a, b int) int { return cmp.Or(cmp.Compare(resident[b], resident[a]), cmp.Compare(a, b)) })
	return out[:min(len(out), maxLargest)]
}

// watch begins to watch a process, if it is not.
func (s *Sampler) watch(pid int) {
	o := s.known[pid]
	if p := s.watched[pid]; p != nil {
		if p.now.Started == o.started {
			return
		}
		s.end(p) // the number was given to another one
	}
	s.watched[pid] = s.open(pid, o)
}

// Ended states that the process that was asked for and its children have ended. Groups
// are their control groups, as they are after that.
type Ended struct{ Groups []sample.Group }

func (*Ended) Error() string { return "the process has ended" }

// Run takes a sample at each interval and gives it to take, until the context ends, or
// some time is over (0 is never), or take fails, or with [Ended]. A sample that is
// late is not made up for.
func (s *Sampler) Run(ctx context.Context, duration time.Duration, take func(*sample.Sample) error) error {
	if duration > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, duration)
		defer stop()
	}
	tick := time.NewTicker(s.o.Interval)
	defer tick.Stop()
	for {
		now, err := s.Sample(ctx)
		if err != nil {
			return err
		}
		if s.o.PID > 0 && len(now.Processes) == 0 && (s.short == nil || s.exited()) {
			return &Ended{now.Groups}
		}
		if err := take(now); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
