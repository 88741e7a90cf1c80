// Package profiles holds what files other than PyTorch's memory snapshots report about
// memory: profiles of JAX, exports of Nsight Systems, traces of torch.profiler, texts
// of /proc. The packages below it read one kind of file each; judge/tables judges
// them.
package profiles

import (
	"errors"

	"strandline/stack"
)

// ErrOther is the error of a reader whose file is of another kind.
var ErrOther = errors.New("a file of another kind")

// Levels is the format of files that hold levels over time.
const Levels = "levels"

// A File is what one file states. Sizes are bytes.
type File struct {
	Name        string
	Format      string // such as jax
	Writer      string // the program and version that wrote it, as far as the file states it
	Levels      []Level
	Uses        []Use
	Failed      []Call
	Checkpoints []Checkpoint
	Spans       []Span // of Checkpoints, by device
	Host        *Host  // of a text of /proc or the like
	// Columns are levels over time, of a table.
	Columns []Column
	// Earlier is what a text states several times, oldest first, before Host.
	Earlier []Host
	// Moments are when each of Earlier and Host was so, in seconds from a moment that
	// files with such times have in common; nil if the text does not state all of them.
	Moments []float64
	// Mappings are the largest of each of Earlier and Host, where the texts name each; nil otherwise.
	Mappings [][]Mapping
	Notes    []string // what is wrong with the file or not in it, a sentence each
	// Partial is why reading ended before the end of the file.
	Partial error
}

// A Column is the level of one thing over time.
type Column struct {
	Process string // the process or device that the rows name; "" if there is one
	Name    string // as the table has it
	// Times are seconds from the first row, in the order of the rows; a clock that is
	// set can make them run back. Bytes are the levels, NaN where one is missing.
	Times, Bytes []float64
	// Unit is what Times are where the table has no times: a count of steps, for example
	// ("step").
	Unit  string
	Limit *int64 // the most it can be, in bytes, where the table states it
	// Unstated states that neither the name nor a unit says that it is memory.
	Unstated bool
	// Peak states that it is a high-water mark, which never falls; Lines are those in which
	// the first and the last level stand, "" where a table has them.
	Peak  bool
	Lines [2]string
	// Logged states that a program printed these lines, alike but for their figures; Died that
	// the last of them says that it died.
	Logged, Died bool
	Kept         string // the phase that should give memory back, and gave next to nothing; "" if none
	Phase        string // that all lines name, such as "after offload"; "" if none
	// Evicts states that it is a cache that stays below Limit by evicting its oldest entries.
	Evicts bool
	// Percent states that Bytes and Limit are percent of a size that is not known.
	Percent bool
	// Cache states that it is the KV cache of an engine, which has taken its memory
	// already; Requests are those in progress at each time, nil if they are not stated.
	Cache    bool
	Requests []float64
}

// A Level is how much memory of a kind a device held. What the file does not state
// is nil.
type Level struct {
	Device string // its label; "" if the file states none
	Kind   string // such as buffer, device or pinned
	Live   *int64 // at the end
	Count  *int64
	Peak   *int64
}

// A Use is memory that was allocated at one place in pieces of one size.
type Use struct {
	Device string
	Kind   string
	Stack  []stack.Frame // innermost first
	Size   int64         // of one piece; below 0 if it is unknown
	Count  int64
}

// A Call is a function of an interface that returned an error.
type Call struct {
	Name   string
	Status int64 // what it returned
	Count  int64
}

// A Checkpoint is a moment that the file names, such as the beginning of a step.
type Checkpoint struct{ Name string }

// A Span is memory that was allocated and freed within a trace.
type Span struct {
	Device string
	// Born is the number of the first checkpoint at which it lived, Died that of the first
	// at which it did not; the number of checkpoints if it lived to the end.
	Born, Died int
	Bytes      int64
	Stack      []stack.Frame // of what allocated it, innermost first
}

// Host is memory of a process, a cgroup or a machine as the kernel counts it. What
// the text does not state is nil.
type Host struct {
	PID       int    // of the process; 0 if the text does not state it
	RSS       *int64 // resident, in all
	Peak      *int64 // the highest RSS
	Anonymous *int64
	Heap      *int64 // of Anonymous, the heap of malloc with its arenas
	File      *int64 // pages of files
	Shared    *int64 // memory shared between processes, tmpfs and /dev/shm
	Memfd     *int64 // of Shared, files of memfd_create
	HugePages *int64 // of Anonymous, in huge pages
	Pinned    *int64 // locked in memory, whatever it is
	Kernel    *int64 // held by the kernel
	Stacks    *int64 // of Anonymous, the stacks of threads
	Swap      *int64
	Cache     *int64 // pages of files of a cgroup or machine, mapped or not
	Total     *int64 // of the machine
	Available *int64 // to programs, without swapping
	// PrivateDirty and SharedDirty are pages that were written, of this process alone
	// and common to several.
	PrivateDirty, SharedDirty *int64
	Threads                   *int64 // a number
	Writable                  *int64 // private address space that can be written, resident or not
	// Allocator is the library that takes the place of glibc's malloc, such as
	// libjemalloc.so.2.
	Allocator string
}

// A Mapping is a range of addresses of a process, in bytes.
type Mapping struct {
	Start, End uint64
	RSS        int64
	Path       string // "" if it is anonymous, "[stack]" and the like, or a file
}
