//go:build !linux || !amd64

package bpf

import (
	"errors"
	"os"
	"time"
)

// A Tracer is to be had on Linux on x86-64 alone.
type Tracer struct{}

var errNotHere = errors.New("the BPF programs are for Linux on x86-64")

// Start tells that there is no tracer here.
func Start() (*Tracer, error) { return nil, errNotHere }

// Close has nothing to do.
func (*Tracer) Close() {}

// Watch is not to be had here, nor is what follows.
func (*Tracer) Watch(int) error { return errNotHere }

// LargeStacks is not to be had here.
func (*Tracer) LargeStacks(int) error { return errNotHere }

// Python is not to be had here.
func (*Tracer) Python(int, Python) error { return errNotHere }

// Budget is not to be had here.
func (*Tracer) Budget(int) error { return errNotHere }

// Pace is not to be had here.
func (*Tracer) Pace(*Event, time.Duration) error { return errNotHere }

// Poll is not to be had here.
func (*Tracer) Poll() (*Batch, error) { return nil, errNotHere }

// AttachDriver is not to be had here.
func (*Tracer) AttachDriver(int, *os.File) (int, error) { return 0, errNotHere }

// DetachDriver has nothing to do.
func (*Tracer) DetachDriver(int) {}

// DriverBudget is not to be had here.
func (*Tracer) DriverBudget(int) error { return errNotHere }

// Now is the clock of the events.
func Now() uint64 { return 0 }
