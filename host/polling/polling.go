// Package polling is the source of events where no system call can be seen: the
// ledger then learns what is mapped from the kernel's lists alone.
//
// It does not read those lists itself, as the ledger reads them under every source.
// The trap: what was mapped and unmapped between two looks is never known.
package polling

import (
	"time"

	"strandline/host/event"
)

// A Source has no events.
type Source struct{}

var _ event.Source = Source{}

// Poll returns no events, up to now.
func (Source) Poll() (*event.Batch, error) { return &event.Batch{Until: event.Now()}, nil }

// SeesCalls reports false.
func (Source) SeesCalls() bool { return false }

// Watch does nothing, and neither do the others: there are no stacks to copy.
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
