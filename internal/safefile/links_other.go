//go:build !linux

package safefile

import (
	"io/fs"
	"os"
)

// lookAt returns what is at a path, and where it leads if it is a link.
func lookAt(path string) (info fs.FileInfo, to string, err error) {
	info, err = os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return info, "", err
	}
	if to, err = os.Readlink(path); err != nil {
		return nil, "", err
	}
	again, err := os.Lstat(path)
	if err == nil && !os.SameFile(info, again) {
		err = errChanged
	}
	return info, to, err
}

// openReal opens a folder whose path has no links.
func openReal(path string) (*os.Root, error) { return openFolder(path) }

// hasACL reports whether a folder may have a list of further users.
func hasACL(*os.File) bool { return true }
