//go:build !linux

package safefile

import (
	"errors"
	"io/fs"
	"os"
)

func anonymous(*os.Root, string, fs.FileMode) (*os.File, func(name string) error, error) {
	return nil, nil, errors.ErrUnsupported
}
