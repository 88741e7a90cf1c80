package safefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A place is where a file that the user named is to be: behind the links of trusted
// users, in a folder that is open, so that nobody can put a link in the way.
type place struct {
	dir        *os.Root    // nil if no name in a folder leads to the file
	name       string      // in dir
	path       string      // of dir and name
	old        fs.FileInfo // of the file that is there; nil if there is none
	descriptor int         // of this process, where the path names one; otherwise -1
}

// descriptorOf returns the descriptor of this process that a path names.
func descriptorOf(path string) (fd int, ok bool) {
	for _, dir := range []string{"/dev", "/proc/self", "/proc/thread-self", fmt.Sprintf("/proc/%d", os.Getpid())} {
		if number, found := strings.CutPrefix(path, dir+"/fd/"); found {
			fd, err := strconv.Atoi(number)
			return fd, err == nil
		}
	}
	return 0, false
}

// locate follows a path to a place, which is to be closed.
func locate(path string) (*place, error) {
	if base := filepath.Base(path); path == "" || base == "." || base == ".." || os.IsPathSeparator(path[len(path)-1]) {
		return nil, errors.New("not the name of a file")
	}
	given := path
	for range maxLinks {
		if fd, ok := descriptorOf(filepath.Clean(path)); ok {
			return &place{path: path, descriptor: fd}, nil
		}
		p, err := placeAt(path)
		if err != nil {
			return nil, err
		}
		if p.old == nil || p.old.Mode()&fs.ModeSymlink == 0 {
			if err := p.planted(given); err != nil {
				p.close()
				return nil, err
			}
			return p, nil
		}
		p.close()
		if !trusted(p.old) {
			return nil, p.foreign(given, "is a link that ", "")
		}
		to, err := follow(path)
		if err != nil {
			return nil, err
		}
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			if info, err := os.Stat(path); err == nil { // a descriptor of another process
				return &place{path: path, old: info, descriptor: -1}, nil
			}
		}
		path = to
	}
	return nil, errLinks
}

// placeAt is the place of a path whose last part is not followed.
func placeAt(path string) (*place, error) {
	dir, err := openRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, name: filepath.Base(path), path: path, descriptor: -1}
	if err := p.look(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *place) look() (err error) {
	if p.old, err = p.dir.Lstat(p.name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// planted returns an error for a file that another user has put where anyone can put
// one but only its owner can remove it, such as /tmp. The rule is that of
// fs.protected_regular of Linux, whether or not it is on.
func (p *place) planted(given string) error {
	if p.old == nil || trusted(p.old) {
		return nil
	}
	dir, err := p.dir.Stat(".")
	if err == nil && dir.Mode()&fs.ModeSticky != 0 && dir.Mode()&0o002 != 0 && !sameOwner(p.old, dir) {
		err = p.foreign(given, "", ", in a folder that everyone may write to")
	}
	return err
}

// foreign is the error for a file of another user that the given path leads to.
func (p *place) foreign(given, what, where string) error {
	name := "it"
	if p.path != given {
		name = p.path
	}
	return fmt.Errorf("%s %s%w%s: remove it, or give another name", name, what, ErrForeign, where)
}

func (p *place) close() {
	if p.dir != nil {
		p.dir.Close()
	}
}

// openRoot opens a folder. [os.OpenRoot] waits for a pipe.
func openRoot(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) || err == nil && !info.IsDir():
		return nil, noFolder(dir)
	case err != nil:
		return nil, err
	}
	return os.OpenRoot(dir)
}

// noFolder is a path where there is no folder.
type noFolder string

func (dir noFolder) Error() string { return "there is no folder " + string(dir) }

func (noFolder) Is(target error) bool { return target == fs.ErrNotExist }

// special opens a place that is no regular file, such as a pipe, for which it waits.
func (p *place) special(ctx context.Context) (*os.File, error) {
	if p.descriptor >= 0 {
		return duplicate(p.descriptor, p.path)
	}
	if p.old.IsDir() {
		return nil, errFolder
	}
	open := func(flags int) (*os.File, error) {
		if p.dir == nil {
			return p.same(os.OpenFile(p.path, flags, 0))
		}
		return p.same(p.dir.OpenFile(p.name, flags, 0))
	}
	if p.old.Mode()&fs.ModeNamedPipe != 0 {
		return openPipe(ctx, os.O_WRONLY, open)
	}
	return open(os.O_WRONLY)
}

// same closes a file unless it is what was found at the place.
func (p *place) same(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(info, p.old) {
		err = errChanged
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (p *place) isSpecial() bool {
	return p.descriptor >= 0 || p.old != nil && !p.old.Mode().IsRegular()
}

// existing opens a regular file, or creates it.
func (p *place) existing(flags int) (*os.File, error) {
	if p.old == nil {
		return p.dir.OpenFile(p.name, flags|os.O_CREATE|os.O_EXCL, fileMode)
	}
	dir, err := p.dir.Stat(".")
	if err == nil && severalNames(p.old) && checkFolder(dir) != nil {
		err = errors.New("it has a second name, which another user may have given it; give another name")
	}
	if err != nil {
		return nil, err
	}
	return p.same(p.dir.OpenFile(p.name, flags|nonblock, 0))
}

// Append opens a file that the user named to add to it; a new one gets the mode 0600. A
// pipe is waited for until the context is done.
func Append(ctx context.Context, path string) (*os.File, error) {
	return named(path, func(p *place) (*os.File, error) {
		if p.isSpecial() {
			return p.special(ctx)
		}
		return p.existing(os.O_WRONLY | os.O_APPEND)
	})
}

// Edit opens a regular file that the user named to read and write it; a new one gets
// the mode 0600.
func Edit(path string) (*os.File, error) {
	return named(path, func(p *place) (*os.File, error) {
		if p.isSpecial() {
			return nil, ErrNotRegular
		}
		return p.existing(os.O_RDWR)
	})
}

// New creates a file that the user named. A file that exists is an [fs.ErrExist], and a
// link too.
func New(path string) (*os.File, error) {
	dir, err := openRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.OpenFile(filepath.Base(path), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	return f, plain(path, err)
}

// Check returns why [Create] and [Append] could not write a file, which is better known
// before hours of work than after them. It opens no pipe and no device.
func Check(path string) error {
	p, err := locate(path)
	if err != nil {
		return plain(path, err)
	}
	defer p.close()
	switch {
	case p.old != nil && p.old.IsDir():
		return plain(path, errFolder)
	case p.isSpecial():
		return nil
	case p.old != nil:
		f, err := p.existing(os.O_WRONLY)
		if err == nil {
			err = f.Close()
		}
		return plain(path, err)
	}
	o := Output{place: p, mode: fileMode}
	return plain(path, errors.Join(o.begin(anonymous), o.Close()))
}

var errFolder = errors.New("is a folder")

func named(path string, open func(*place) (*os.File, error)) (*os.File, error) {
	p, err := locate(path)
	if err != nil {
		return nil, plain(path, err)
	}
	defer p.close()
	f, err := open(p)
	return f, plain(path, err)
}

// plain is an error with the whole path, whatever system call it is of.
func plain(path string, err error) error {
	if err == nil {
		return nil
	}
	var wrong *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &wrong):
		err = wrong.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}
