//go:build !linux

package safefile

import (
	"errors"
	"os"
)

func anonymous(*os.Root) (*os.File, func(name string) error, error) {
	return nil, nil, errors.ErrUnsupported
}
