//go:build !linux || !amd64

package ptrace

import (
	"errors"
	"os"

	"strandline/host/bpf"
)

// A Tracer is to be had on Linux on x86-64 alone.
type Tracer struct {
	bpf.Tracer
	PID int
}

var errNotHere = errors.New("tracing a command needs Linux on x86-64")

// Start tells that there is no tracer here.
func Start(string, []string, *os.File, *os.File, *os.File) (*Tracer, func(), error) {
	return nil, nil, errNotHere
}

// Nested names nothing here.
func (*Tracer) Nested() string { return "" }

// Filtered is not to be had here.
func Filtered(uintptr, []string) error { return errNotHere }
