package sampler

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"strandline/host/gpu/cudaalloc"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/pausable/state"
	"strandline/record"
)

// A gauge reads the counters of PyTorch's allocator in a process, from outside.
type gauge interface {
	Read() ([]cudaalloc.Level, error)
	Close()
}

// openGauge opens the gauge of a process of this machine.
func openGauge(pid int) (gauge, error) {
	g, err := cudaalloc.OpenGauge(procfs.Process(pid))
	if err != nil {
		return nil, err
	}
	return g, nil
}

// torches are connections to the recorders of PyTorch processes, and gauges of those
// that have none.
type torches struct {
	dial    func(ctx context.Context, pid int) (*record.Control, error)
	open    func(pid int) (gauge, error)
	opening sync.Mutex // one gauge at a time
	every   time.Duration
	followers[torch]
}

// torch is one process, which need not have a recorder.
type torch struct {
	holds bool          // memory of a device
	files int64         // bytes of files that it had in memory when it was last sampled
	stats *record.Stats // the last ones; nil if there are none
	note  string        // why there are none
	// outside is true if the last ones were read from outside.
	outside bool

	gauge gauge // used by one goroutine, as what follows
	again time.Time
	pause time.Duration
	// without is what files were when the process had no PyTorch; nil if it was not looked
	// into, or it had one.
	without *int64
}

func newTorches(dial func(ctx context.Context, pid int) (*record.Control, error), open func(pid int) (gauge, error), every time.Duration) *torches {
	return &torches{dial: dial, open: open, every: max(every, 10*time.Millisecond), followers: newFollowers[torch]()}
}

// of returns the figures of a process, nil as long as there are none, whether they were
// read from outside, and maybe why there are none. The
// first call begins to ask for them. Only a process that holds memory of a device is
// looked into from outside, and again only when it has other bytes of files in memory:
// PyTorch's libraries are hundreds of MiB.
func (t *torches) of(pid int, holds bool, files int64) (stats *record.Stats, outside bool, note string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.followers.of(pid, t.follow)
	own.holds, own.files = own.holds || holds, files
	return own.stats, own.outside && own.stats != nil, own.note
}

// follow reads the figures of a process as long as it is watched. A recorder can begin
// later than the process, so that it is looked for again, less and less often.
func (t *torches) follow(ctx context.Context, pid int, own *torch) {
	const first = time.Second
	defer t.unlook(own, "")
	for pause := first; ctx.Err() == nil; pause = min(2*pause, rarest) {
		if t.stream(ctx, pid, own) || t.look(ctx, pid, own) {
			pause = first
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// rarest is how long a recorder that began later than its process is overlooked at most.
const rarest = 30 * time.Second

// look reads the figures of a process without a recorder from outside, until it is time
// to look for one again. It reports whether there were any.
func (t *torches) look(ctx context.Context, pid int, own *torch) (came bool) {
	if t.open == nil || own.gauge == nil && !t.opened(pid, own) {
		return false
	}
	next := time.NewTicker(t.every)
	defer next.Stop()
	for end := time.Now().Add(rarest); time.Now().Before(end); {
		levels, err := own.gauge.Read()
		if err != nil {
			t.unlook(own, "")
			return came
		}
		came = came || len(levels) > 0
		t.found(own, levels)
		select {
		case <-next.C:
		case <-ctx.Done():
			return came
		}
	}
	return came
}

// opened looks for the allocator of a process, less and less often. It may take some
// milliseconds, so that one process is looked into at a time.
func (t *torches) opened(pid int, own *torch) bool {
	const first, rarest, library = 2 * time.Second, 5 * time.Minute, 1 << 20
	t.mu.Lock()
	holds, files := own.holds, own.files
	t.mu.Unlock()
	if own.without != nil && max(files-*own.without, *own.without-files) < library || !holds || time.Now().Before(own.again) {
		return false
	}
	t.opening.Lock()
	defer t.opening.Unlock()
	gauge, err := t.open(pid)
	if err == nil {
		own.gauge, own.pause = gauge, 0
		return true
	}
	if own.without = nil; errors.Is(err, cudaalloc.ErrNotMapped) {
		own.without = &files
	}
	own.pause = min(max(2*own.pause, first), rarest)
	own.again = time.Now().Add(own.pause)
	if errors.Is(err, fs.ErrPermission) {
		t.unlook(own, "what PyTorch has of its device memory may not be read; run strandline as root")
	}
	return false
}

// found takes figures that were read from outside.
func (t *torches) found(own *torch, levels []cudaalloc.Level) {
	stats := &record.Stats{}
	for _, l := range levels {
		stats.Devices = append(stats.Devices, record.DeviceStats{Device: l.Device, Allocated: l.Allocated, Reserved: l.Reserved})
	}
	if stats.Check() != nil {
		stats = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	own.stats, own.note, own.outside = stats, "", true
}

// unlook forgets what was read from outside.
func (t *torches) unlook(own *torch, note string) {
	if own.gauge != nil {
		own.gauge.Close()
		own.gauge = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	own.stats, own.note = nil, note
}

// stream reads figures until the connection ends. It reports whether any came.
func (t *torches) stream(ctx context.Context, pid int, own *torch) (came bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, err := t.dial(ctx, pid)
	if err != nil {
		return false
	}
	defer c.Close()
	for s, err := c.Stats(t.every); err == nil; s, err = c.Next(t.every) {
		came = true
		t.mu.Lock()
		own.stats, own.outside = &s, false
		t.mu.Unlock()
		select {
		case <-time.After(t.every / 2): // one that sends more often waits
		case <-ctx.Done():
		}
	}
	t.mu.Lock()
	own.stats = nil
	t.mu.Unlock()
	return came
}

// share divides the devices' memory among the processes: the driver's count of each,
// and of it what PyTorch states.
func (s *Sampler) share(out *sample.Sample) {
	at := map[int]*sample.Process{}
	for i := range out.Processes {
		at[out.Processes[i].PID] = &out.Processes[i]
	}
	for i := range out.Devices {
		d := &out.Devices[i]
		for k := range d.Processes {
			s.own(out, at, d, &d.Processes[k])
		}
		d.Account()
	}
	for i := range out.Processes {
		p := &out.Processes[i]
		if own := s.watched[p.PID]; own != nil && p.State != sample.Zombie {
			var files int64
			if p.Host != nil {
				files = p.Host.File
			}
			stats, fromOutside, note := s.torch.of(p.PID, len(p.Devices) > 0, files)
			var paused map[int]int64
			var outside map[int]*state.Outside
			var stale bool
			p.Pausable = nil
			if s.o.root == procRoot {
				p.Pausable, paused, outside, stale = s.pausing.of(p.PID)
			}
			if p.Pausable == nil {
				p.Launch = "" // nobody asks
			}
			if stats != nil {
				split(p, own.visible, stats.Devices, paused, outside, stale, out.Devices)
			}
			p.Outside, p.Note = fromOutside, cmp.Or(p.Note, note)
		}
	}
}

// own finds the process of a holding, and gives it its share.
func (s *Sampler) own(out *sample.Sample, at map[int]*sample.Process, d *sample.Device, h *sample.Holding) {
	_, lives := s.known[h.PID]
	switch {
	case lives:
		h.Owner = sample.Live
	case s.inside || h.PID == 0:
		h.Owner = sample.NotVisible
	default:
		h.Owner = sample.Gone
	}
	p := at[h.PID]
	if p == nil && h.Owner == sample.NotVisible && h.PID != 0 && s.o.PID == 0 {
		out.Processes = append(out.Processes, sample.Process{PID: h.PID, State: sample.NotVisible, Devices: []sample.DeviceShare{}, Note: "it is in another pid namespace, whose processes cannot be seen from here"})
		clear(at) // the processes moved
		for i := range out.Processes {
			at[out.Processes[i].PID] = &out.Processes[i]
		}
		p = at[h.PID]
	}
	if p != nil {
		p.Devices = append(p.Devices, sample.DeviceShare{Device: d.Index, UUID: d.UUID, Used: h.Used})
	}
}

// split enters what PyTorch states into the shares of a process. It counts what is paused
// as allocated or cached, though the device does not hold it.
func split(p *sample.Process, visible []string, stats []record.DeviceStats, paused map[int]int64, outside map[int]*state.Outside, stale bool, devices []sample.Device) {
	held := slices.Clone(p.Devices)
	indices := map[int]int{} // by CUDA's ordinal
	for _, d := range stats {
		indices[d.Device] = deviceOf(d.Device, visible, devices)
	}
	if !plausible(indices, held) && len(held) == len(indices) {
		// The order is another one; the k-th of PyTorch is the k-th of the driver.
		for k, ordinal := range slices.Sorted(maps.Keys(indices)) {
			indices[ordinal] = held[k].Device
		}
	}
	for _, d := range stats {
		index := indices[d.Device]
		i := slices.IndexFunc(p.Devices, func(s sample.DeviceShare) bool { return s.Device == index })
		if i < 0 && len(devices) > 0 && !slices.ContainsFunc(devices, func(d sample.Device) bool { return d.Index == index }) {
			continue // the machine has no such device
		}
		if i < 0 {
			p.Devices = append(p.Devices, sample.DeviceShare{Device: index})
			i = len(p.Devices) - 1
		}
		share := &p.Devices[i]
		allocated, cached := d.Allocated, max(d.Reserved-d.Allocated, 0)
		share.Allocated, share.Cached = &allocated, &cached
		if o := outside[d.Device]; o != nil {
			share.Pools = &sample.Pools{All: o.Pools, Tensors: o.PoolTensors, Split: o.Split, Stale: stale}
		}
		if share.Used != nil {
			other := max(*share.Used-max(d.Reserved-paused[d.Device], 0), 0)
			share.Other = &other
		}
	}
}

// plausible reports whether the driver counts the process on every device that its
// PyTorch is taken to use.
func plausible(indices map[int]int, held []sample.DeviceShare) bool {
	for _, index := range indices {
		if !slices.ContainsFunc(held, func(s sample.DeviceShare) bool { return s.Device == index }) {
			return false
		}
	}
	return true
}

// deviceOf is the index of CUDA's n-th device for a process that sees those of a list:
// of indices, or of the beginnings of UUIDs.
func deviceOf(n int, visible []string, devices []sample.Device) int {
	if n < 0 || n >= len(visible) {
		return n
	}
	name := strings.TrimSpace(visible[n])
	if index, err := strconv.Atoi(name); err == nil && index >= 0 {
		return index
	}
	for i := range devices {
		if name != "" && strings.HasPrefix(devices[i].UUID, name) {
			return devices[i].Index
		}
	}
	return n
}
