//go:build !linux

package procfs

import "errors"

// Descriptors are known only on Linux.
func (p Process) Descriptors() (*Descriptors, error) { return nil, errors.ErrUnsupported }

// MemoryFile is known only on Linux.
func (p Process) MemoryFile(int32) (MemoryFile, bool) { return MemoryFile{}, false }
