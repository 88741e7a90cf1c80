//go:build !unix

package cli

import (
	"io/fs"
	"os"
)

func foreign(_, _ fs.FileInfo) bool { return false }

func takeAfter(f *os.File, old fs.FileInfo) error { return f.Chmod(old.Mode().Perm()) }
