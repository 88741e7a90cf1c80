package procfs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// OpenMapped opens the file of a mapping as the process sees it, even if it is deleted
// or in another mount namespace. Without permission to do so it opens the file by its
// name, if that is still the same file.
func (p Process) OpenMapped(m Mapping) (*os.File, error) {
	f, err := OpenFile(p.file(fmt.Sprintf("map_files/%x-%x", m.Start, m.End)))
	if err == nil || errors.Is(err, ErrSilent) || !strings.HasPrefix(m.Path, "/") {
		return f, err
	}
	names := []string{m.Path}
	if m.Deleted { // or this is really how its name ends
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

// OpenFile opens a file by its name as the process sees it. Links are resolved as they
// are for the process.
func (p Process) OpenFile(path string) (*os.File, error) {
	return regular(path, func() (int, error) {
		root, err := unix.Open(p.file("root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		defer unix.Close(root)
		fd, err := unix.Openat2(root, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
		if err == unix.ENOSYS || err == unix.EPERM { // older than Linux 5.6, or forbidden in a container
			return unix.Open(p.file("root")+path, unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		return fd, err
	})
}

// OpenFile opens a file by its name as we see it.
func OpenFile(name string) (*os.File, error) {
	return regular(name, func() (int, error) { return unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0) })
}

// regular opens a file for reading if it is a regular file: opening a device can have
// side effects, and opening a pipe can block.
func regular(name string, find func() (fd int, err error)) (*os.File, error) {
	return withPatience(func() (*os.File, error) {
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
			return nil, fmt.Errorf("%s is not a regular file", name)
		}
		return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	}, func(f *os.File, err error) {
		if err == nil {
			f.Close()
		}
	})
}

// IdentityOf returns the identity of an open file, whatever name it was opened by.
func IdentityOf(f *os.File) (Identity, bool) {
	info, err := f.Stat()
	if err != nil {
		return Identity{}, false
	}
	s := info.Sys().(*syscall.Stat_t)
	return Identity{FileID{uint64(s.Dev), s.Ino}, s.Size, info.ModTime().UnixNano()}, true
}

// Stored returns how much of the file behind a mapping has pages or blocks, in bytes.
// start and end must be those of the mapping in the kernel's list.
func (p Process) Stored(start, end uint64) (uint64, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(p.file(fmt.Sprintf("map_files/%x-%x", start, end)), &st); err != nil {
		return 0, err
	}
	return 512 * uint64(st.Blocks), nil
}
