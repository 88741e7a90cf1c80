package safefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// An Output is a new file that gets its name when it is whole. What is no regular
// file, such as a pipe, is written as it is.
type Output struct {
	*os.File
	place *place
	mode  fs.FileMode             // of a new file
	info  fs.FileInfo             // of the file
	link  func(name string) error // gives the file a name, where it has none yet

	mu     sync.Mutex
	part   string // the name of the file until it is in its place; empty if it has none
	placed bool
	closed bool
}

// Create opens a new file for path, which the user named. A pipe is waited for until the
// context is done. The file has the mode and the owner of the one that it replaces.
func Create(ctx context.Context, path string) (*Output, error) {
	return create(path, func(o *Output) (err error) {
		if !o.place.isSpecial() {
			return o.begin(anonymous)
		}
		o.placed = true
		o.File, err = o.place.special(ctx)
		return err
	})
}

// CreateNamed is Create for a writer that opens the file by its name, which Name
// returns. A file that is not regular is refused.
func CreateNamed(path string) (*Output, error) {
	return create(path, func(o *Output) error {
		if o.place.isSpecial() {
			return ErrNotRegular
		}
		return o.begin(nil)
	})
}

func create(path string, open func(*Output) error) (*Output, error) {
	p, err := locate(path)
	if err != nil {
		return nil, plain(path, err)
	}
	o := &Output{place: p, mode: fileMode}
	if err := open(o); err != nil {
		o.Close()
		return nil, plain(path, err)
	}
	return o, nil
}

// begin opens a file without a name, where unnamed can, or one with a name of its own.
func (o *Output) begin(unnamed func(dir *os.Root, path string, mode fs.FileMode) (*os.File, func(string) error, error)) (err error) {
	p := o.place
	if err := p.planted(); err != nil {
		return err
	}
	if unnamed != nil {
		o.File, o.link, _ = unnamed(p.dir, p.path, o.mode)
	}
	if o.File == nil {
		p.sweep()
		part := p.part()
		if o.File, err = p.dir.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, o.mode); err != nil {
			return fmt.Errorf("no file can be made in %s: %w", filepath.Dir(p.path), errors.Unwrap(err))
		}
		if o.File, err = withPath(o.File, p.path); err != nil {
			return errors.Join(err, p.dir.Remove(part))
		}
		o.part = part
		if lock(o.File) == errHeld {
			return errChanged
		}
	}
	if p.old != nil {
		err = takeAfter(o.File, p.old)
	}
	if err == nil {
		o.info, err = o.Stat()
	}
	return err
}

const partSuffix = ".tmp"

// part is a name that nobody can foresee, in the folder of the place.
func (p *place) part() string { return fmt.Sprintf("%s.%016x%s", p.name, rand.Uint64(), partSuffix) }

// isPart reports whether part could make a name.
func (p *place) isPart(name string) bool {
	number, begins := strings.CutPrefix(name, p.name+".")
	number, ends := strings.CutSuffix(number, partSuffix)
	_, err := strconv.ParseUint(number, 16, 64)
	return begins && ends && err == nil && len(number) == 16
}

// sweep removes the parts that killed processes of this user left: nobody holds them.
func (p *place) sweep() {
	entries, _ := fs.ReadDir(p.dir.FS(), ".")
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !p.isPart(e.Name()) || !mine(info) {
			continue
		}
		f, err := p.dir.OpenFile(e.Name(), os.O_RDONLY|nonblock, 0)
		if err != nil {
			continue
		}
		if own, err := f.Stat(); err == nil && os.SameFile(info, own) && lock(f) == nil {
			p.dir.Remove(e.Name())
		}
		f.Close()
	}
}

// Name is the name of a file that was created by [CreateNamed], until it is in its place.
func (o *Output) Name() string { return filepath.Join(filepath.Dir(o.place.path), o.part) }

// put puts the file in its place, where it replaces another one.
func (o *Output) put() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.placed:
		return nil
	case o.closed:
		return plain(o.place.path, fs.ErrClosed)
	}
	if err := o.rename(); err != nil {
		return plain(o.place.path, err)
	}
	o.placed = true
	return nil
}

// Keep puts the file in its place and returns it, to be written on. The Output is over.
func (o *Output) Keep() (*os.File, error) {
	if err := o.put(); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	o.closed = true
	o.place.close()
	return o.File, nil
}

func (o *Output) rename() error {
	dir := o.place.dir
	if o.part == "" {
		part := o.place.part()
		if err := o.link(part); err != nil {
			return err
		}
		o.part = part
	}
	info, err := dir.Lstat(o.part)
	if err == nil && !os.SameFile(info, o.info) {
		err = errChanged
	}
	if err != nil {
		return err
	}
	return dir.Rename(o.part, o.place.name)
}

// claim gives the file its name unless there is a file of that name.
func (o *Output) claim() error {
	if o.link != nil {
		return o.link(o.place.name)
	}
	return o.place.dir.Link(o.part, o.place.name)
}

// Commit puts the file in its place and closes it. If either fails, there is no new file.
func (o *Output) Commit() (err error) {
	if o.link == nil { // some systems report on closing that the disk is full
		err = o.File.Close()
	}
	if err == nil {
		err = o.put()
	}
	return errors.Join(err, o.Close())
}

// Close closes the file. It is discarded unless it is in its place.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	defer o.place.close()
	if !o.placed && o.part != "" {
		o.place.dir.Remove(o.part)
	}
	if o.File == nil {
		return nil
	}
	if err := o.File.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}
