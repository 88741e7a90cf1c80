//go:build !unix

package safefile

import (
	"errors"
	"io/fs"
	"os"
)

// Owners are not known here: what exists is taken as the user's.

const nonblock = 0

func trusted(fs.FileInfo) bool { return true }

func mine(fs.FileInfo) bool { return false } // nothing is swept

func lock(*os.File) error { return errors.ErrUnsupported }

func sameOwner(_, _ fs.FileInfo) bool { return true }

func severalNames(fs.FileInfo) bool { return false }

func removed(fs.FileInfo) bool { return false } // what is open cannot be removed

func checkFolder(*os.Root) error { return nil }

func onlyOwner(*os.Root, fs.FileInfo) bool { return false }

func othersWrite(*os.File, fs.FileInfo) bool { return false }

func takeAfter(f *os.File, old fs.FileInfo) error { return f.Chmod(old.Mode().Perm()) }

func withPath(f *os.File, _ string) (*os.File, error) { return f, nil }

func duplicate(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }
