package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// create makes the file at path with what write writes and returns its length; "-"
// is standard output. The file appears there once it is whole: until then its
// bytes are in another one beside it, which is removed if writing fails.
func (g *globals) create(ctx context.Context, path string, write func(io.Writer) error) (int64, error) {
	if path == "-" {
		out := &output{ctx: ctx, w: g.env.stdout}
		err := write(out)
		return out.n, err
	}
	f, whole, err := g.openOutput(path)
	if err != nil {
		return 0, err
	}
	out := &output{ctx: ctx, w: f}
	err = errors.Join(write(out), f.Close())
	return out.n, whole(err)
}

// createFile is create for a writer that needs a file's name.
func (g *globals) createFile(path string, write func(name string) error) (int64, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return 0, fmt.Errorf("write %s: not a regular file", path)
	}
	f, whole, err := g.openOutput(path)
	if err != nil {
		return 0, err
	}
	err = write(f.Name())
	info, statErr := f.Stat()
	if err := whole(errors.Join(err, statErr, f.Close())); err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// output counts what is written, until the program is interrupted.
type output struct {
	ctx context.Context
	w   io.Writer
	n   int64
}

func (o *output) Write(p []byte) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := o.w.Write(p)
	o.n += int64(n)
	return n, err
}

// openOutput opens a new file that whole puts at path, or removes if it is given
// an error. It gets the mode and the owner of the file that it replaces. What
// is not a regular file, such as a pipe, is written as it is.
func (g *globals) openOutput(path string) (f *os.File, whole func(error) error, err error) {
	if err := refuseForeign(path); err != nil {
		return nil, nil, fmt.Errorf("write %s: %w", path, err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	old, err := os.Stat(path)
	if err == nil && !old.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return f, func(err error) error { return err }, err
	}
	mode := fs.FileMode(0o666)
	if old != nil {
		mode = 0o600 // until it has the owner whom the other mode is for
	}
	name := fmt.Sprintf("%s.%08x.tmp", path, rand.Uint32())
	if f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err != nil {
		return nil, nil, fmt.Errorf("write %s: %w", path, errors.Unwrap(err))
	}
	g.unfinished.Store(name, true)
	whole = func(err error) error {
		defer g.unfinished.Delete(name)
		if err == nil {
			err = os.Rename(name, path)
		}
		if err != nil {
			os.Remove(name)
		}
		return err
	}
	if old != nil {
		if err := takeAfter(f, old); err != nil {
			return nil, nil, whole(errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close()))
		}
	}
	return f, whole, nil
}

// refuseForeign refuses what another user has put at path, a link above all, in a
// directory such as /tmp, where anyone may write but only remove their own
// files. The rule is that of Linux's fs.protected_symlinks and protected_regular,
// whether or not they are on.
func refuseForeign(path string) error {
	for range 40 { // as many links as Linux follows
		info, err := os.Lstat(path)
		if err != nil {
			return nil // a new file, or opening it gives the error
		}
		dir, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return nil
		}
		if dir.Mode()&fs.ModeSticky != 0 && dir.Mode()&0o002 != 0 && foreign(info, dir) {
			return fmt.Errorf("%s belongs to another user, in a directory that everyone may write to", path)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return nil
		}
		to, err := os.Readlink(path)
		if err != nil {
			return nil
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return errors.New("too many links")
}
