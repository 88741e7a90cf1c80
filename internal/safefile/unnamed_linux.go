package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// anonymous opens a file without a name in a folder, so that nothing is left of it if
// the process is killed. link gives it a name; until then its errors name path. Not every file system has such files.
func anonymous(dir *os.Root, path string, mode fs.FileMode) (f *os.File, link func(name string) error, err error) {
	if f, err = dir.OpenFile(".", os.O_RDWR|unix.O_TMPFILE, mode); err != nil {
		return nil, nil, err
	}
	if f, err = withPath(f, path); err != nil {
		return nil, nil, err
	}
	at := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if _, err = os.Lstat(at); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, func(name string) error {
		folder, err := dir.Open(".")
		if err != nil {
			return err
		}
		defer folder.Close()
		err = unix.Linkat(unix.AT_FDCWD, at, int(folder.Fd()), name, unix.AT_SYMLINK_FOLLOW)
		if err != nil {
			return &os.LinkError{Op: "link", Old: at, New: name, Err: err}
		}
		return nil
	}, nil
}
