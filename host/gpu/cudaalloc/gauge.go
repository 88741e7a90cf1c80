package cudaalloc

import (
	"cmp"
	"fmt"

	"strandline/host/code/image"
	"strandline/host/proc/procfs"
)

// A Level is what the allocator has of one device, bytes.
type Level struct {
	Device    int   // by CUDA's ordinal
	Allocated int64 // given to the program, as torch.cuda.memory_allocated counts
	Reserved  int64 // taken from the driver, as torch.cuda.memory_reserved counts
}

// A Gauge reads the allocator's own counters in a process again and again. This takes
// microseconds: its blocks are not read.
type Gauge struct {
	memory *procfs.Memory
	vector uint64 // the address of the vector of per-device state
	stats  int    // where the counters are in the state of a device; -1 as long as that is not known
	used   [maxDevices]bool
}

// ErrNotMapped states that a process does not map the library that has the allocator.
var ErrNotMapped = fmt.Errorf("%w: no %s*.so is mapped", errNoTorch, usual)

// OpenGauge finds the allocator of a process, which takes some milliseconds, or the time
// to read its maps where the usual library is not among them: [ErrNotMapped]. Other
// errors are those of [Find].
func OpenGauge(p procfs.Process) (g *Gauge, err error) {
	if maps, err := p.MapsNaming(usual); err != nil || !maps {
		return nil, cmp.Or(err, ErrNotMapped)
	}
	err = within(p, func(a *Allocator) error {
		if a.devices == 0 {
			return errState
		}
		memory, err := p.Memory()
		if err == nil {
			g = &Gauge{memory: memory, vector: a.address + a.devices, stats: -1}
		}
		return err
	})
	return g, err
}

// within finds the allocator of a process, and closes what it was found by after do.
func within(p procfs.Process, do func(*Allocator) error) error {
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(p, files)
	if err != nil {
		return err
	}
	defer im.Close()
	a, err := Find(im)
	if err != nil {
		return err
	}
	return do(a)
}

// Close closes the memory of the process.
func (g *Gauge) Close() { g.memory.Close() }

// Segments reads what the allocator of a process holds now, which takes some milliseconds, and more
// where it holds many blocks.
func Segments(p procfs.Process) (segments []Segment, err error) {
	err = within(p, func(a *Allocator) (err error) {
		const tries = 20 // it runs meanwhile, and what is read can contradict itself
		for range tries {
			if segments, err = a.State(); err == nil {
				break
			}
		}
		return err
	})
	return segments, err
}

// Read returns the levels of the devices of which anything is reserved, or was since the
// first Read. An error is
// that the process has ended or runs another program, or that its counters are not of a
// known form.
func (g *Gauge) Read() ([]Level, error) {
	var ends [16]byte
	if err := g.take(ends[:], g.vector); err != nil {
		return nil, err
	}
	from, to := order.Uint64(ends[:]), order.Uint64(ends[8:])
	if to < from || (to-from)%8 != 0 || to-from > 8*maxDevices {
		return nil, errState
	}
	list := make([]byte, to-from)
	if err := g.take(list, from); err != nil {
		return nil, err
	}
	devices := make([]uint64, len(list)/8)
	for i := range devices {
		devices[i] = order.Uint64(list[8*i:])
	}
	var out []Level
	for i, device := range devices {
		if device == 0 {
			continue
		}
		if g.stats < 0 && !g.find(device, room(devices, device)) {
			continue
		}
		l, err := g.level(device)
		if err != nil {
			return nil, err
		}
		g.used[i] = g.used[i] || l.Reserved > 0
		if l.Device = i; g.used[i] {
			out = append(out, l)
		}
	}
	return out, nil
}

func (g *Gauge) take(b []byte, addr uint64) error {
	if n, err := g.memory.ReadAt(b, int64(addr)); n < len(b) {
		return fmt.Errorf("read PyTorch's CUDA allocator: %w", err)
	}
	return nil
}

// room is how many bytes the state of a device can have: that of another one may begin
// behind it, and its counters would be taken for those of the first.
func room(devices []uint64, device uint64) int {
	n := uint64(deviceObject)
	for _, other := range devices {
		if other > device {
			n = min(n, other-device)
		}
	}
	return int(n)
}

// find looks for the counters in the state of a device, which has so many bytes. It fails
// as long as none is above 0, and may fail at a moment at which they change.
func (g *Gauge) find(device uint64, size int) bool {
	b := make([]byte, size)
	for len(b) >= statsSize && g.take(b, device) != nil {
		b = b[:len(b)/2] // the object can be at the end of what is mapped
	}
	g.stats = findStats(b)
	return g.stats >= 0
}

func (g *Gauge) level(device uint64) (l Level, err error) {
	var b [arraySize + 8]byte
	if err := g.take(b[:], device+uint64(g.stats)+allocatedBytes*arraySize); err != nil {
		return l, err
	}
	l.Allocated, l.Reserved = int64(order.Uint64(b[:])), int64(order.Uint64(b[arraySize:]))
	if l.Allocated < 0 || l.Reserved < 0 || l.Reserved > maxReserved || l.Allocated > l.Reserved+slack {
		return l, errState
	}
	return l, nil
}

// The counters of a device (c10's DeviceStats) begin, since PyTorch 2.0, with these
// arrays, each of which has the counter of all, of the small and of the large pool. A
// counter is what there is now, the most there was, and the sums of what came and went.
// Since PyTorch 2.13, a table of private pools is behind reservedBytes.
const (
	allocation     = 0 // how many
	segment        = 1
	active         = 2
	allocatedBytes = 4 // how large, bytes
	reservedBytes  = 5
	activeBytes    = 6
	requestedBytes = 8
	arrays         = 9

	counterSize = 32
	arraySize   = 3 * counterSize
	statsSize   = arrays * arraySize
	maxPools    = 64 // bytes of that table

	maxReserved = 1 << 46
	slack       = 1 << 30 // what can be requested between two counts, bytes
	minBlock    = 512     // bytes
)

// findStats returns where the counters are in the state of a device, -1 if nowhere.
func findStats(state []byte) int {
	for at := 0; at+statsSize <= len(state); at += 8 {
		for table := 0; table <= maxPools && at+statsSize+table <= len(state); table += 8 {
			if isStats(state[at:], table) {
				return at
			}
		}
	}
	return -1
}

// isStats reports whether memory begins with the form of the counters, of which some are
// above 0, and which have a table of so many bytes between them.
func isStats(b []byte, table int) bool {
	var now [arrays]int64
	for i := range arrays {
		if i == reservedBytes+1 {
			b = b[table:]
		}
		var n [3][4]int64
		for k := range n {
			for f := range n[k] {
				n[k][f] = int64(order.Uint64(b[i*arraySize+k*counterSize+8*f:]))
				if n[k][f] < 0 {
					return false
				}
			}
			if n[k][0] > n[k][1] {
				return false
			}
		}
		for _, f := range []int{0, 2, 3} {
			if n[0][f] != n[1][f]+n[2][f] {
				return false
			}
		}
		now[i] = n[0][0]
	}
	return now[segment] > 0 && now[reservedBytes] > 0 && now[reservedBytes] < maxReserved && now[reservedBytes]%(1<<20) == 0 &&
		now[reservedBytes] >= now[activeBytes] && now[activeBytes] >= now[allocatedBytes] && now[allocatedBytes] >= now[requestedBytes] &&
		now[active] >= now[allocation] && now[allocatedBytes]/minBlock >= now[allocation]
}
