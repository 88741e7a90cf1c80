//go:build unix

package cli

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// foreign reports whether a file belongs neither to this user nor to the owner of
// its directory.
func foreign(file, dir fs.FileInfo) bool {
	f, ok := file.Sys().(*syscall.Stat_t)
	d, known := dir.Sys().(*syscall.Stat_t)
	return ok && known && int(f.Uid) != os.Geteuid() && f.Uid != d.Uid
}

// takeAfter gives a new file the owner and the mode of an old one. Where the group
// cannot be given, the new one gets no rights.
func takeAfter(f *os.File, old fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := old.Mode().Perm()
	want, ok := old.Sys().(*syscall.Stat_t)
	have, known := info.Sys().(*syscall.Stat_t)
	if ok && known {
		if want.Gid != have.Gid && f.Chown(-1, int(want.Gid)) != nil {
			mode &^= 0o070
		}
		if want.Uid != have.Uid && f.Chown(int(want.Uid), -1) != nil {
			return errors.New("it belongs to another user, to whom the new file cannot be given; remove it first")
		}
	}
	return f.Chmod(mode)
}
