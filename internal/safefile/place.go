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
	"time"
)

// A place is where a file that the user named is to be: behind the links of trusted
// users, in a folder that is open, so that nobody can put a link in the way.
type place struct {
	dir        *os.Root    // nil if no name in a folder leads to the file
	name       string      // in dir
	path       string      // of dir and name
	given      string      // by the user
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
			return &place{path: path, given: given, descriptor: fd}, nil
		}
		p, err := placeAt(path)
		if err != nil {
			return nil, err
		}
		p.given = given
		if p.old == nil || p.old.Mode()&fs.ModeSymlink == 0 {
			return p, nil
		}
		p.close()
		link, to, err := lookAt(path)
		switch {
		case err != nil:
			return nil, err
		case to == "":
			return nil, errChanged
		case !trusted(link):
			return nil, p.foreign("is a link that ")
		}
		if to, err = linkTarget(path, to); err != nil {
			return nil, err
		}
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			if info, err := os.Stat(path); err == nil { // a descriptor of another process
				return &place{path: path, given: given, old: info, descriptor: -1}, nil
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
	p := &place{dir: dir, name: filepath.Base(path), path: path, given: path, descriptor: -1}
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

// planted returns an error for a file of another user: whatever is written to it is
// theirs, and a pipe of theirs has whom they like at its other end.
func (p *place) planted() error {
	if p.old == nil || trusted(p.old) {
		return nil
	}
	return p.foreign("")
}

// foreign is the error for a file of another user that the user's path leads to.
func (p *place) foreign(kind string) error {
	name := "it"
	if p.path != p.given {
		name = p.path
	}
	return fmt.Errorf("%s %s%w: remove it, or give another name", name, kind, ErrForeign)
}

func (p *place) close() {
	if p.dir != nil {
		p.dir.Close()
	}
}

// maxPipeWait is how long a pipe's reader is waited for.
var maxPipeWait = 30 * time.Second

// special opens a place that is no regular file, such as a pipe, for which it waits.
func (p *place) special(ctx context.Context) (*os.File, error) {
	if p.descriptor >= 0 {
		return duplicate(p.descriptor, p.path)
	}
	if p.old.IsDir() {
		return nil, errFolder
	}
	if err := p.planted(); err != nil {
		return nil, err
	}
	open := func(flags int) (*os.File, error) {
		if p.dir == nil {
			return p.same(os.OpenFile(p.path, flags, 0))
		}
		return p.same(p.dir.OpenFile(p.name, flags, 0))
	}
	if p.old.Mode()&fs.ModeNamedPipe != 0 {
		ctx, stop := context.WithTimeoutCause(ctx, maxPipeWait, errNoReader)
		defer stop()
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
	if severalNames(p.old) && checkFolder(p.dir) != nil {
		return nil, errors.New("it has a second name, which another user may have given it; give another name")
	}
	return p.same(p.dir.OpenFile(p.name, flags|nonblock, 0))
}

// added opens what is there, to add to it, or creates a file. The file of another user is
// accepted in a folder where only they could put it, as CI systems run jobs as root.
func (p *place) added(ctx context.Context) (*os.File, error) {
	if p.isSpecial() {
		return p.special(ctx)
	}
	if err := p.planted(); err != nil && !onlyOwner(p.dir, p.old) {
		return nil, err
	}
	return p.existing(os.O_WRONLY | os.O_APPEND)
}

// Append opens a file that the user named to add to it; a new one gets the mode 0600. A
// pipe is waited for until the context is done, and half a minute at most.
func Append(ctx context.Context, path string) (*os.File, error) {
	return named(path, func(p *place) (*os.File, error) { return p.added(ctx) })
}

// Edit opens a regular file that the user named to read and write it; a new one gets
// the mode 0600.
func Edit(path string) (*os.File, error) {
	return named(path, func(p *place) (*os.File, error) {
		if p.isSpecial() {
			return nil, ErrNotRegular
		}
		if err := p.planted(); err != nil {
			return nil, err
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
	if err == nil {
		f, err = withPath(f, path)
	}
	return f, plain(path, err)
}

// Check returns why [Create] could not write a file, which is better known before hours of
// work than after them. It opens no pipe and no device.
func Check(path string) error {
	return check(path, func(p *place) error {
		o := Output{place: p, mode: fileMode}
		return errors.Join(o.begin(anonymous), o.Close())
	})
}

// CheckAppend is Check for [Append].
func CheckAppend(path string) error {
	return check(path, func(p *place) error {
		if p.old == nil {
			o := Output{place: p, mode: fileMode}
			return errors.Join(o.begin(anonymous), o.Close())
		}
		defer p.close()
		f, err := p.added(context.Background())
		if err == nil {
			err = f.Close()
		}
		return err
	})
}

func check(path string, regular func(*place) error) error {
	p, err := locate(path)
	if err != nil {
		return plain(path, err)
	}
	if !p.isSpecial() {
		return plain(path, regular(p))
	}
	defer p.close()
	if p.old != nil && p.old.IsDir() {
		return plain(path, errFolder)
	}
	return plain(path, p.planted())
}

var errFolder = errors.New("is a folder")

func named(path string, open func(*place) (*os.File, error)) (*os.File, error) {
	p, err := locate(path)
	if err != nil {
		return nil, plain(path, err)
	}
	defer p.close()
	f, err := open(p)
	if err == nil {
		f, err = withPath(f, path)
	}
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
