package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// lookAt returns what is at a path, and where it leads if it is a link. Both are of one
// file, whatever takes its place meanwhile.
func lookAt(path string) (info fs.FileInfo, to string, err error) {
	info, err = os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return info, "", err
	}
	f, err := os.OpenFile(path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return info, "", err
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(f.Fd()), "", buf)
	if err != nil {
		return nil, "", &fs.PathError{Op: "readlink", Path: path, Err: err}
	}
	return info, string(buf[:n]), nil
}

// openReal opens a folder whose path has no links. Kernels before 5.6 follow one that was
// put there since.
func openReal(path string) (*os.Root, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	switch err {
	case nil:
		defer unix.Close(fd)
		root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
		if !errors.Is(err, fs.ErrNotExist) {
			return root, err
		}
	case unix.ELOOP:
		return nil, errChanged
	case unix.ENOSYS, unix.EPERM: // also by a filter of system calls
	default:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return openFolder(path)
}

// hasACL reports whether a folder has a list of further users, whose rights its group's hide.
func hasACL(folder *os.File) bool {
	found := true
	control(folder, func(fd int) error {
		_, err := unix.Fgetxattr(fd, "system.posix_acl_access", nil)
		found = err != unix.ENODATA && err != unix.ENOTSUP
		return nil
	})
	return found
}
