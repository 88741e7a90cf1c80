//go:build !linux

package procfs

import (
	"errors"
	"os"
)

// OpenMapped is available only on Linux, as are the functions below.
func (p Process) OpenMapped(Mapping) (*os.File, error) { return nil, errors.ErrUnsupported }

// OpenFile is available only on Linux.
func (p Process) OpenFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// OpenFile is available only on Linux.
func OpenFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// IdentityOf is available only on Linux.
func IdentityOf(*os.File) (Identity, bool) { return Identity{}, false }

// Stored fails with [errors.ErrUnsupported].
func (Process) Stored(uint64, uint64) (uint64, error) { return 0, errors.ErrUnsupported }
