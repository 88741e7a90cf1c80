// Package pausable holds a library in C that gives the memory of a CUDA device back for a
// time and takes it again at the same address, with what was in it where that was asked
// for. A program loads it as PyTorch's pluggable allocator; see c/pausable.h.
//
// The library is embedded, as build.sh builds it, and [Library] returns it.
package pausable

import (
	"errors"
	"fmt"
	"runtime"
)

// Name is that of the library's file.
const Name = "libstrandline-mem.so"

// Library is the shared library for this system. The error is [errors.ErrUnsupported]
// where there is none.
func Library() ([]byte, error) {
	if len(library) == 0 {
		return nil, fmt.Errorf("pausable memory on %s/%s: %w", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)
	}
	return library, nil
}
