package event

import "time"

// A Clock is what consumers of a source's events read and wait on.
type Clock struct {
	Now   func() uint64 // in ns, like the times of events
	Sleep func(time.Duration)
}

// System is the clock of the events that a kernel delivers.
var System = Clock{Now: Now, Sleep: time.Sleep}
