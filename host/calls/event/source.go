package event

import "time"

// A Source sees what processes do. Packages bpf, ptrace and polling have one each, and
// the test suite in eventtest applies to all of them.
type Source interface {
	// Watch starts watching a process. Children that it creates from then on are
	// watched automatically.
	Watch(pid int) error
	// Poll returns what has happened since the last call.
	Poll() (*Batch, error)
	// Budget allows n stacks to be copied until it is called again.
	Budget(n int) error
	// Pace sets how often the stack of calls like e is copied.
	Pace(e *Event, every time.Duration) error
	// LargeStacks makes the copies of a process's stacks 64 KiB instead of 16 KiB.
	LargeStacks(pid int) error
	// Python makes the samples of a process carry its interpreter's frames.
	Python(pid int, layout PythonLayout) error
	// SeesCalls reports whether system calls are seen: if not, the kernel's lists are
	// all that is known.
	SeesCalls() bool
	// Close ends the watching, and may be called more than once.
	Close()
}
