//go:build !linux || !amd64

package ptrace

import (
	"errors"
	"fmt"
	"os"
	"time"

	"strandline/host/calls/event"
)

// A Tracer is available only on Linux on x86-64.
type Tracer struct{ PID int }

// Start fails with [errors.ErrUnsupported].
func Start(string, []string, *os.File, *os.File, *os.File) (*Tracer, func(), error) {
	return nil, nil, errNotHere
}

var errNotHere = fmt.Errorf("tracing a command needs Linux on x86-64: %w", errors.ErrUnsupported)

// Filtered fails with [errors.ErrUnsupported].
func Filtered(uintptr, []string) error { return errNotHere }

// Nested reports nothing here.
func (*Tracer) Nested() string { return "" }

// Failed reports nothing here.
func (*Tracer) Failed() string { return "" }

// The other methods make it an [event.Source]. No Tracer ever exists here.

func (*Tracer) Poll() (*event.Batch, error)            { return nil, errNotHere }
func (*Tracer) SeesCalls() bool                        { return false }
func (*Tracer) Watch(int) error                        { return errNotHere }
func (*Tracer) LargeStacks(int) error                  { return errNotHere }
func (*Tracer) Python(int, event.PythonLayout) error   { return errNotHere }
func (*Tracer) Budget(int) error                       { return errNotHere }
func (*Tracer) Pace(*event.Event, time.Duration) error { return errNotHere }
func (*Tracer) Close()                                 {}
