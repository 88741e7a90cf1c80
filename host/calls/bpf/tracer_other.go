//go:build !linux || (!amd64 && !arm64)

package bpf

import (
	"os"
	"time"

	"strandline/host/calls/event"
)

// A Tracer is available only on Linux on x86-64 and arm64.
type Tracer struct{}

// Start fails with [errors.ErrUnsupported].
func Start() (*Tracer, error) { return nil, errNotHere }

// The other methods make it an [event.Source] and a source of the GPU driver's calls.
// No Tracer ever exists here.

func (*Tracer) Poll() (*event.Batch, error)             { return nil, errNotHere }
func (*Tracer) SeesCalls() bool                         { return false }
func (*Tracer) Watch(int) error                         { return errNotHere }
func (*Tracer) LargeStacks(int) error                   { return errNotHere }
func (*Tracer) Python(int, event.PythonLayout) error    { return errNotHere }
func (*Tracer) Budget(int) error                        { return errNotHere }
func (*Tracer) Pace(*event.Event, time.Duration) error  { return errNotHere }
func (*Tracer) Close()                                  {}
func (*Tracer) AttachDriver(int, *os.File) (int, error) { return 0, errNotHere }
func (*Tracer) DetachDriver(int)                        {}
func (*Tracer) DriverBudget(int) error                  { return errNotHere }
