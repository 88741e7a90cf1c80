//go:build unix

package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const nonblock = syscall.O_NONBLOCK

// trusted reports whether a file or link is this user's or root's; for root, also
// whether it is of the user who called sudo.
func trusted(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || s.Uid == 0 || ours(int(s.Uid))
}

func ours(uid int) bool {
	me := os.Geteuid()
	if uid == me {
		return true
	}
	caller, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	return me == 0 && err == nil && uid == caller
}

// mine reports whether a file is of the user that this process runs as.
func mine(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

// lock locks a file until it is closed. The error is errHeld where another process has
// locked it, and another one where files cannot be locked.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return errHeld
	}
	return err
}

func sameOwner(a, b fs.FileInfo) bool {
	s, ok := a.Sys().(*syscall.Stat_t)
	t, known := b.Sys().(*syscall.Stat_t)
	return ok && known && s.Uid == t.Uid
}

// severalNames reports whether a file has hard links.
func severalNames(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink > 1
}

// removed reports whether an open folder has no name any more.
func removed(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink == 0
}

// checkFolder returns why files of ours are not safe in a folder that exists.
func checkFolder(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	switch {
	case !ok:
		return nil
	case !trusted(info):
		return fmt.Errorf("the folder %w (%d), who can redirect the files written there: give a new folder, or one of your own", ErrForeign, s.Uid)
	case mode&0o002 == 0 && (mode&0o020 == 0 || privateGroup(f, s)):
		return nil
	}
	return &sharedFolder{mode, ours(int(s.Uid)) && mode&fs.ModeSticky == 0}
}

// WritableByOthers reports whether other users than its owner can write to a folder. A
// group that is the owner's alone does not count.
func WritableByOthers(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&0o022 == 0 {
		return false, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&0o002 != 0 {
		return true, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return true, nil // nothing is known of it
	}
	defer f.Close()
	return !privateGroup(f, s), nil
}

// A sharedFolder is the error for a folder that others can write to, a kind of [ErrForeign].
type sharedFolder struct {
	mode    fs.FileMode
	mayHide bool
}

func (e *sharedFolder) Error() string {
	text := fmt.Sprintf("other users can write to the folder (mode %04o): give a new folder in it", e.mode.Perm())
	if e.mayHide {
		text += ", or take that right from them by chmod go-w"
	}
	return text
}

func (*sharedFolder) Is(target error) bool { return target == ErrForeign }

// onlyOwner reports whether nobody but the owner of a file could put it into its folder.
func onlyOwner(dir *os.Root, file fs.FileInfo) bool {
	info, err := dir.Stat(".")
	return err == nil && info.Mode()&0o022 == 0 && sameOwner(info, file)
}

// othersWrite reports whether users that are not trusted may write an open file.
func othersWrite(f *os.File, info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (info.Mode()&0o002 != 0 || info.Mode()&0o020 != 0 && !privateGroup(f, s))
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

// withPath returns a file by the path that the user knows it by, which its errors name:
// one that is opened below an [os.Root] is called after the root. The former is closed.
func withPath(f *os.File, path string) (out *os.File, err error) {
	defer f.Close()
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	if failed := c.Control(func(fd uintptr) { out, err = duplicate(int(fd), path) }); failed != nil {
		return nil, failed
	}
	return out, err
}

// duplicate is another descriptor of an open file.
func duplicate(fd int, name string) (*os.File, error) {
	n, err := syscall.Dup(fd)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	syscall.CloseOnExec(n)
	return os.NewFile(uintptr(n), name), nil
}
