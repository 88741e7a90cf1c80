// Package polling is the source for when no system calls can be seen. It delivers no
// events: the ledger learns what is mapped only from the kernel's lists, which it reads
// with every source.
//
// Note that what is mapped and unmapped between two polls is missed.
package polling

import (
	"time"

	"strandline/host/calls/event"
)

// A Source has no events.
type Source struct{}

var _ event.Source = Source{}

// Poll returns no events, up to now.
func (Source) Poll() (*event.Batch, error) { return &event.Batch{Until: event.Now()}, nil }

// SeesCalls reports false.
func (Source) SeesCalls() bool { return false }

// Watch does nothing, and neither do the other methods: there are no stacks to copy.
func (Source) Watch(int) error { return nil }

// LargeStacks does nothing.
func (Source) LargeStacks(int) error { return nil }

// Python does nothing.
func (Source) Python(int, event.PythonLayout) error { return nil }

// Budget does nothing.
func (Source) Budget(int) error { return nil }

// Pace does nothing.
func (Source) Pace(*event.Event, time.Duration) error { return nil }

// Close does nothing.
func (Source) Close() {}
