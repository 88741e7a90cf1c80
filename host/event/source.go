package event

import "time"

// A Source sees what processes do. Packages bpf, ptrace and polling have one each,
// and the suite in eventtest holds for all of them.
type Source interface {
	// Watch begins with a process. Children that it makes from then on follow by
	// themselves.
	Watch(pid int) error
	// Poll takes what happened since the last call.
	Poll() (*Batch, error)
	// Budget allows the stacks of n calls to be copied until it is called again.
	Budget(n int) error
	// Pace sets how often the stack of calls like e is copied.
	Pace(e *Event, every time.Duration) error
	// LargeStacks makes the copies of a process's stacks 64 KiB instead of 16.
	LargeStacks(pid int) error
	// Python makes the samples of a process carry the frames of its interpreter.
	Python(pid int, layout PythonLayout) error
	// SeesCalls reports whether system calls are seen: without, the kernel's lists
	// are all that is known.
	SeesCalls() bool
	// Close ends the watching, and may be called again.
	Close()
}
