// Package event is the vocabulary of what a process did with its memory, whoever saw
// it: the system calls that change mappings, the calls of a GPU's driver, and the state
// of a thread from which a stack can be made. Packages bpf and ptrace produce
// it, polling cannot; ledger and gpudriver consume it.
//
// It judges nothing and reads nothing but the clock. Note that an event's PID is the
// process whose memory changed; between vfork and exec this is not the process that
// made the call.
package event

import (
	"math/bits"
)

// An Op is what happened.
type Op uint32

// What can happen. The [Event] fields that are not named here are 0.
const (
	Map      Op = iota + 1 // Addr, Len were mapped; Prot, Flags, FD
	Unmap                  // Addr, Len were unmapped
	Remap                  // Old, OldLen became Addr, Len; Flags are those of mremap; Took
	Break                  // the heap now ends at Addr
	Protect                // Addr, Len have the permissions Prot
	Advise                 // Flags is the advice of madvise for Addr, Len
	Attach                 // System V shared memory FD was attached at Addr
	Detach                 // and detached again
	Memfd                  // an in-memory file was created: FD
	Truncate               // the file FD now has the length Len
	Fork                   // the process Child was created; it uses the memory of Old
	Exec                   // the process runs another program: its mappings are gone
	Exit                   // the process ended
	// From 64 on: the functions of a GPU's driver, see [Op.Driver].
)

// A Place is where a system call was made: the instruction, and the word on top of the
// stack. The latter is the return address of the C library's small system call
// wrappers.
type Place struct{ IP, Caller uint64 }

// An Event is one system call that changed something. PID is the process whose memory
// changed, TID the thread that made the call.
type Event struct {
	Time        uint64 // ns of the monotonic clock
	PID, TID    uint32
	Op          Op
	Sampled     bool // the stack was copied: there is a Sample of the same Time
	Addr, Len   uint64
	Old, OldLen uint64
	Prot, Flags uint32
	FD          int32
	Class       uint32 // of Len: three significant bits
	// Took is an upper bound on how long a Remap took, in ns. During that time another
	// thread can be given the old addresses.
	Took  uint32
	Place Place
}

// Child returns the process that a Fork created, or that an Exit ended.
func (e *Event) Child() uint32 { return uint32(e.Addr) }

// Regs are the registers of a thread that unwinding needs, by their names on x86-64.
// On arm64 BP is x29, BX the link register x30, and R12 to R15 are x19 to x22.
type Regs struct{ IP, SP, BP, BX, R12, R13, R14, R15 uint64 }

// A PythonFrame is a frame of CPython's interpreter as it was in memory: the addresses
// of the frame and of its code object, the position in the code, and the bytes that
// hold its owner (3.12 and later) or is_entry and owner (3.11).
type PythonFrame struct {
	Frame, Code, Instruction uint64
	Owner                    uint16
	// Names is where the names of the code were, as returned by [NamesOf]; 0 if it was
	// not read.
	Names uint32
}

// NamesOf condenses the addresses of a code object's two names, of its file and of
// itself. The result distinguishes the object from another one at the same address.
func NamesOf(file, name uint64) uint32 { return uint32((name^file<<7)>>3) | 1 }

// A PythonState states how the walk of the interpreter's frames ended.
type PythonState uint32

// The states.
const (
	NoPython PythonState = iota // the interpreter was not announced by a call of [Source.Python], or there is none
	NoThread                    // the interpreter does not know this thread, or it runs no Python
	Complete                    // all frames are there
	Cut                         // there are more frames
)

// Absent states that the interpreter does not have such a field.
const Absent = ^uint32(0)

// A PythonLayout states where a process's CPython interpreter keeps its frames: the
// address of _PyRuntime, and offsets in bytes.
type PythonLayout struct {
	Runtime         uint64
	CodeTag         uint64 // bits of a code pointer that are not part of the address
	Interpreters    uint32 // in the runtime: the first interpreter
	Threads         uint32 // in the interpreter: the first thread
	ThreadNext      uint32 // in a thread; the next four too
	ThreadID        uint32 // pthread_self, compared where NativeID is Absent
	NativeID        uint32 // the kernel's number
	Frame           uint32 // the current frame, or the cframe that holds it
	CFrameCurrent   uint32 // in the cframe
	Code            uint32 // in a frame; the next four too
	Previous        uint32
	Instruction     uint32
	Owner           uint32 // the byte, or the two bytes is_entry and owner
	InstructionSize uint32 // in bytes: 4 or 8
	CodeFile        uint32 // in a code object: its names
	CodeName        uint32
}

// A Sample is the state of a thread as it returned from a system call, from which a
// stack can be made.
type Sample struct {
	Time     uint64
	PID, TID uint32
	Op       Op
	Addr     uint64 // of the mapping that the call made
	Len      uint64
	Regs     Regs
	// Stack is memory starting at the address Base. It begins with the page that
	// contains Regs.SP.
	Base  uint64
	Stack []byte
	// Interrupted is memory starting at the address InterruptedBase: if a signal is
	// handled on a separate stack, this is the stack that it interrupted.
	InterruptedBase uint64
	Interrupted     []byte
	Python          []PythonFrame // innermost first
	PythonState     PythonState
}

// SizeClass is a length rounded to three significant bits, in the numbering of the
// programs in the kernel.
func SizeClass(n uint64) uint32 {
	n >>= 12
	log := uint32(max(bits.Len64(n)-3, 0))
	return log<<3 | uint32(n>>log)&7
}

// A Batch is what happened since the last one.
type Batch struct {
	// Events are in the order of their time, and none from before Until comes later.
	Events  []Event
	Samples []Sample
	Until   uint64
	// The rest are totals since the start.
	Lost        uint64 // events that found no room
	LostSamples uint64 // stacks that found no room
	Paired      uint64 // mappings that were made and then unmapped as a whole
	PairedBytes uint64
	Unwatched   uint64 // children that are not watched because there are too many
}

var opNames = [...]string{
	Map: "mmap", Unmap: "munmap", Remap: "mremap", Break: "brk", Protect: "mprotect", Advise: "madvise", Attach: "shmat",
	Detach: "shmdt", Memfd: "memfd_create", Truncate: "ftruncate", Fork: "fork", Exec: "exec", Exit: "exit",
}

// String returns the name of the system call or driver function.
func (o Op) String() string {
	if f := o.Driver(); f != nil {
		return f.Name
	}
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "unknown"
}

// The bits of [Event.Prot] and, for Map, of [Event.Flags] that matter here, as on Linux
// on x86-64 and arm64.
const (
	ProtWrite    = 2
	ProtExec     = 4
	MapShared    = 1
	MapAnonymous = 0x20
)
