// Package profiles holds what files other than PyTorch's memory snapshots report about
// memory: profiles of JAX, exports of Nsight Systems, traces of torch.profiler, texts
// of /proc. The packages below it read one kind of file each; judge/profiles judges
// them.
package profiles

import (
	"errors"

	"strandline/stack"
)

// ErrOther is the error of a reader whose file is of another kind.
var ErrOther = errors.New("a file of another kind")

// A File is what one file states. Sizes are bytes.
type File struct {
	Name   string
	Format string // such as jax
	Writer string // the program and version that wrote it, as far as the file says
	Levels []Level
	Uses   []Use
	Failed []Call
	Marks  []Mark
	Spans  []Span // of Marks, by device
	Host   *Host  // of a text of /proc and its kin
	// Earlier is what a text states several times, oldest first, before Host.
	Earlier []Host
	Notes   []string // what is wrong with the file or not in it, a sentence each
	// Partial is why reading ended before the end of the file.
	Partial error
}

// A Level is how much memory of a kind a device held. What the file does not tell
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

// A Mark is a moment that the file names, such as the beginning of a step.
type Mark struct{ Name string }

// A Span is memory that was allocated and freed within a trace.
type Span struct {
	Device string
	// Born is the number of the first mark at which it lived, Died that of the first
	// at which it did not; the number of marks if it lived to the end.
	Born, Died int
	Bytes      int64
}

// Host is memory of a process, a cgroup or a machine as the kernel counts it. What
// the text does not state is nil.
type Host struct {
	RSS       *int64 // resident, in all
	Peak      *int64 // the highest RSS
	Anonymous *int64
	Heap      *int64 // of Anonymous, the heap of malloc
	File      *int64 // pages of files
	Shared    *int64 // memory shared between processes, tmpfs and /dev/shm
	HugePages *int64 // of Anonymous, in huge pages
	Kernel    *int64 // held by the kernel
	Stacks    *int64 // of threads
	Swap      *int64
	Total     *int64 // of the machine
	Available *int64 // to programs, without swapping
}
