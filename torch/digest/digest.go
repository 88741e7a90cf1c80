// Package digest reduces a snapshot file to what is known of it: what its history
// shows, what lives at its end, what the memory was for, what the allocator's free
// memory cost, and why the last request failed.
//
// A digest is much smaller than its file, so that many files can be kept and compared.
// Files are read one after another by one [Book], which numbers equal stacks of
// different files equally. Digests of several files are related to each other by
// package compare, and judged by package judge/snapshots.
package digest

import (
	"math/bits"

	"strandline/stack"
	"strandline/torch/purpose"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/trend"
)

// A Book interns the stacks of all files of a session, so that a stack has the same
// ID in the digests of different files. Not safe for concurrent use.
type Book struct {
	Stacks *stack.Table
}

// NewBook makes an empty book.
func NewBook() *Book { return &Book{stack.NewTable()} }

// A File is what is kept of one file.
type File struct {
	Name    string
	Partial *snapshot.Partial // nil if the file was read to its end
	Version string            // of PyTorch, "" if unknown
	Unknown []string          // names of what is not known, as [snapshot.Snapshot.Unknown]
	Devices []Device          // and pinned host memory, as [snapshot.Host]
}

// Device is a device's part of the file, empty if it has none.
func (f *File) Device(index int) *Device {
	for i := range f.Devices {
		if f.Devices[i].Index == index {
			return &f.Devices[i]
		}
	}
	return &Device{Index: index}
}

// End is the time of the last event on any device, in µs; 0 if unknown.
func (f *File) End() (t int64) {
	for i := range f.Devices {
		t = max(t, f.Devices[i].End)
	}
	return t
}

// Events is the number of events on all devices.
func (f *File) Events() (n int) {
	for i := range f.Devices {
		n += f.Devices[i].Events
	}
	return n
}

// Empty reports whether no device holds memory or has a history.
func (f *File) Empty() bool {
	for i := range f.Devices {
		if d := &f.Devices[i]; len(d.Live) > 0 || d.Events > 0 {
			return false
		}
	}
	return true
}

// A Device is one device's part of a digest.
type Device struct {
	Index int
	History
	Consistency
	Totals
	Settings
	Usage
	Allocations
	Growth

	Regrown []timeline.Regrown // tensors that are reallocated, larger each time
}

// History is what the events of a device cover.
type History struct {
	Events     int
	Marks      int   // events that only mark a snapshot
	Start, End int64 // µs, of the first and the last event; 0 if unknown
	HasTime    bool
	HasHistory bool
	Complete   bool // the history covers the device's whole life
	RingFull   bool // the ring of events seems to have overflowed
	// First identifies the first event: files of one history that grows have it in
	// common. It is 0 without events.
	First   uint64
	Steps   timeline.Steps // of the program, inside the history
	OOMs    int            // requests that failed
	LastOOM *OOM           // nil if memory never ran out inside the history
}

// Consistency is where the file contradicts itself.
type Consistency struct {
	Faults  []string // a sentence each; figures may be wrong
	Unsound bool     // the segments do not show what was reserved and free
	Doubt   string   // by how much heights may be wrong in a file that was read in part, "" in others
}

// Totals are sums in bytes, at the file's end unless they are peaks.
type Totals struct {
	Requested, Reserved, PeakRequested, PeakReserved int64
	UnknownBytes, UnknownCount                       int64 // live allocations without a stack
}

// Settings are those of the allocator.
type Settings struct {
	Expandable bool   // segments are expandable
	Conf       string // PYTORCH_CUDA_ALLOC_CONF, "" if unknown
}

// Usage is what the memory is for, and what part of it is not used.
type Usage struct {
	Purpose  purpose.Memory // at the peak and at the end
	Space    timeline.Space // free memory, and fragmentation
	Waiting  timeline.Waiting
	Private  []timeline.PrivatePool // most reserved first
	Rounding timeline.Rounding
	// Trial is what expandable segments would have done, where memory ran out or
	// much was taken though enough was free; nil elsewhere.
	Trial *replay.Trial
	// Reclaim is what calls of empty_cache would have done there; nil as well where no steps
	// are seen.
	Reclaim *replay.Reclaim
}

// Allocations are those alive at the end of a file, and what the history shows of
// those that were freed.
type Allocations struct {
	Live []Live // by address
	// Older are the allocations that were made before the history began, by address.
	Older []Live
	// InGraphs is how much of what lives is in memory pools of CUDA graphs, by stack,
	// in requested bytes: such a block lives as long as its graph.
	InGraphs map[stack.ID]int64
	// Captures is in how many steps something of it was allocated.
	Captures int
	// Deaths counts, by stack, the allocations that were freed inside the history
	// by the logarithm of their lifetime in events.
	Deaths map[stack.ID]*Lifetimes
	// Kept is how the program went on with what lives at the end and was made inside
	// the history, by stack.
	Kept map[stack.ID]*timeline.Kept
}

// Growth is what each stack held at the checkpoints of the history, by which a file
// is judged alone; Inside is nil if it has too few steps.
type Growth struct {
	Inside      map[stack.ID]*trend.Population
	Checkpoints Checkpoints
}

// Checkpoints are the moments of a history at which growth is measured: before
// its first step, at the ends of steps, and at its end.
type Checkpoints struct {
	Events []int // each counts what lives after that event; -1 is before all of them
	// Steps is how many of the checkpoints end a step or several; they follow the
	// first. Another one, the end, follows them where the history continues.
	Steps int
}

// Live is an allocation that is alive at the end of a file.
type Live struct {
	Addr  uint64
	Bytes int64 // requested
	Born  int64 // µs; the event's number where the file has no times; -1 if unknown
	Age   int   // events since it was made, all of the history if it is older
	Stack stack.ID
	// Missing is why no line of own code is known, "" if one is.
	Missing timeline.Missing
}

// Lifetimes is a histogram: element i counts lifetimes of 2^(i-1) to 2^i events.
type Lifetimes [32]int32

// Over is the number of lifetimes of at least the given number of events, taken
// up to the next power of two.
func (l *Lifetimes) Over(events int) (n int64) {
	for i := bits.Len(uint(max(events-1, 0))) + 1; i < len(l); i++ {
		n += int64(l[i])
	}
	return n
}

// All is the number of lifetimes.
func (l *Lifetimes) All() (n int64) {
	for _, k := range l {
		n += int64(k)
	}
	return n
}

func (l *Lifetimes) add(events int) {
	l[min(bits.Len(uint(events)), len(l)-1)]++
}
