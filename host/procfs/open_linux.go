package procfs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// OpenMapped opens the file behind a mapping as the process sees it: also one
// that is deleted, or lies in another mount namespace. Without the right to do so
// it is opened by its name, if the file of that name is still the same.
func (p Process) OpenMapped(m Mapping) (*os.File, error) {
	f, err := OpenFile(p.file(fmt.Sprintf("map_files/%x-%x", m.Start, m.End)))
	if err == nil || errors.Is(err, ErrSilent) || !strings.HasPrefix(m.Path, "/") {
		return f, err
	}
	names := []string{m.Path}
	if m.Deleted { // or that is the end of its name
		names = append(names, m.Path+" (deleted)")
	}
	for _, name := range names {
		f, byName := p.OpenFile(name)
		if byName != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Sys().(*syscall.Stat_t).Ino == m.Inode {
			return f, nil
		}
		f.Close()
	}
	return nil, err
}

// OpenFile opens a file by the name that it has for the process. Links lead
// where they lead there.
func (p Process) OpenFile(path string) (*os.File, error) {
	return regular(path, func() (int, error) {
		root, err := unix.Open(p.file("root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		defer unix.Close(root)
		fd, err := unix.Openat2(root, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
		if err == unix.ENOSYS || err == unix.EPERM { // older than Linux 5.6, or kept from us by a container
			return unix.Open(p.file("root")+path, unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		return fd, err
	})
}

// OpenFile opens a file of ours.
func OpenFile(name string) (*os.File, error) {
	return regular(name, func() (int, error) { return unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0) })
}

// regular opens a file for reading, if it is a regular one: opening a device can
// do things, and opening a pipe can wait.
func regular(name string, find func() (fd int, err error)) (*os.File, error) {
	return within(func() (*os.File, error) {
		fd, err := find()
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return nil, &os.PathError{Op: "stat", Path: name, Err: err}
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return nil, fmt.Errorf("%s is no regular file", name)
		}
		return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	}, func(f *os.File) { f.Close() })
}

// IdentityOf is the identity of an open file, whatever name it was opened by.
func IdentityOf(f *os.File) (Identity, bool) {
	info, err := f.Stat()
	if err != nil {
		return Identity{}, false
	}
	s := info.Sys().(*syscall.Stat_t)
	return Identity{FileID{uint64(s.Dev), s.Ino}, s.Size, info.ModTime().UnixNano()}, true
}
