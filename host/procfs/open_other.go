//go:build !linux

package procfs

import (
	"errors"
	"os"
)

// OpenMapped is only available on Linux, as is what follows.
func (p Process) OpenMapped(Mapping) (*os.File, error) { return nil, errors.ErrUnsupported }

// OpenFile is only available on Linux.
func (p Process) OpenFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// OpenFile is only available on Linux.
func OpenFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// IdentityOf is only available on Linux.
func IdentityOf(*os.File) (Identity, bool) { return Identity{}, false }
