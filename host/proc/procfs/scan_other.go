//go:build !linux

package procfs

import "errors"

func (*Pages) scan(start, end uint64) (uint64, error) { return 0, errors.ErrUnsupported }
