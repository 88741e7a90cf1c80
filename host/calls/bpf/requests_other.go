//go:build !linux || !amd64

package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"strandline/host/calls/event"
)

var errNotHere = fmt.Errorf("not available on %s/%s: %w", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)

// Requests exist only on Linux on x86-64.
type Requests struct{}

// StartRequests fails with [errors.ErrUnsupported].
func StartRequests() (*Requests, error) { return nil, errNotHere }

// Python is not available here.
func (*Requests) Python(event.PythonLayout) error { return errNotHere }

// Watch is not available here.
func (*Requests) Watch(int, *os.File, []RequestPlace) error { return errNotHere }

// WatchDriver is not available here.
func (*Requests) WatchDriver(int, *os.File) (int, error) { return 0, errNotHere }

// Poll is not available here.
func (*Requests) Poll() (*event.Requests, error) { return nil, errNotHere }

// Activity is not available here.
func (*Requests) Activity() (events, open uint64, err error) { return 0, 0, errNotHere }

// Open is not available here.
func (*Requests) Open() (map[uint32]uint64, error) { return nil, errNotHere }

// Stop does nothing here.
func (*Requests) Stop() {}

// Close does nothing here.
func (*Requests) Close() {}
