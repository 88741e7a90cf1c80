// Package safefile opens files that nobody named and creates those that a command
// writes, where other users may have put something in the way: a pipe or a device
// that never ends, a link to a file of somebody else, a folder of theirs.
//
// Trusted are the files and links of this user and of root; where a user became
// root by sudo, those of that user too.
//
//   - [Open] and [ReadFile] read a file that was found, not named.
//   - [OpenNamed] reads one that was named, which may be a pipe.
//   - [Create] replaces a file in one piece, [Append] adds to one, [Edit] opens a
//     regular one for both; the user named them.
//   - [MakeFolder] makes the folder of many files, and a [Folder] creates them;
//     [MakeSharedFolder] one for files that all users read.
//   - [MakeTemp] makes a temporary folder.
//
// Files get the mode 0600 and folders 0700, except shared ones. A file that is replaced
// keeps its mode.
package safefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// The modes of what is created.
const (
	fileMode         fs.FileMode = 0o600
	folderMode       fs.FileMode = 0o700
	sharedFileMode   fs.FileMode = 0o644
	sharedFolderMode fs.FileMode = 0o755
)

// Unbounded is the bound of a file that is read as a stream.
const Unbounded = 1<<63 - 1

// ErrNotRegular is the error for a pipe, a device, a socket or a folder.
var ErrNotRegular = errors.New("not a regular file")

// ErrForeign is the error for what another user could have planted.
var ErrForeign = errors.New("belongs to another user")

const maxLinks = 40 // as many as Linux follows

// Open opens a file for reading that was found, not named. It waits for no pipe and
// touches no device. A file of more than maxBytes is refused. A link is followed if
// its owner is trusted or owns the file that it leads to.
func Open(path string, maxBytes int64) (*os.File, error) {
	f, err := open(path, maxBytes)
	if err != nil && !errors.As(err, new(*fs.PathError)) {
		err = &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, err
}

func open(path string, maxBytes int64) (*os.File, error) {
	info, err := os.Stat(path) // opening a device may have effects
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		switch {
		case !info.Mode().IsRegular():
			err = ErrNotRegular
		case info.Size() > maxBytes:
			err = fmt.Errorf("has %d bytes, more than the %d of such a file", info.Size(), maxBytes)
		default:
			err = mayRead(path, info)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// mayRead follows the links at path to an open file.
func mayRead(path string, file fs.FileInfo) error {
	name := "it"
	for range maxLinks {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink == 0:
			if !os.SameFile(info, file) {
				return errChanged
			}
			return nil
		case !trusted(info) && !sameOwner(info, file):
			return fmt.Errorf("%s is a link that %w and leads to a file that does not", name, ErrForeign)
		}
		if path, err = follow(path); err != nil {
			return err
		}
		name = path
	}
	return errLinks
}

var (
	errChanged = errors.New("it was replaced while it was opened")
	errLinks   = errors.New("too many links")
)

// follow returns the path that the link at path leads to.
func follow(path string) (string, error) {
	to, err := os.Readlink(path)
	if err != nil {
		return "", err
	}
	return linkTarget(path, to)
}

// linkTarget is where the link at path leads by its text.
func linkTarget(path, to string) (string, error) {
	if filepath.IsAbs(to) {
		return to, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path)) // ".." is relative to the real folder
	return filepath.Join(dir, to), err
}

// ReadFile reads a file that was found, not named, of at most maxBytes.
func ReadFile(path string, maxBytes int64) ([]byte, error) {
	f, err := Open(path, maxBytes)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, maxBytes)
}

// ReadAll reads an open file of at most maxBytes.
func ReadAll(f *os.File, maxBytes int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && int64(len(data)) > maxBytes {
		err = &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("has more than %d bytes", maxBytes)}
	}
	return data, err
}

// OpenNamed opens a file for reading that the user named. Where that is a pipe it
// waits for a writer until the context is done.
func OpenNamed(ctx context.Context, path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	return openPipe(ctx, os.O_RDONLY, func(flags int) (*os.File, error) { return os.OpenFile(path, flags, 0) })
}

// An interruptedWait is the error for a pipe whose other end did not come in time.
type interruptedWait struct{ cause error }

func interrupted(ctx context.Context) error { return &interruptedWait{context.Cause(ctx)} }

var errNoReader = errors.New("nothing reads the pipe")

func (w *interruptedWait) Error() string {
	if w.cause == errNoReader {
		return fmt.Sprintf("nothing opened the pipe for reading within %s: start its reader first", maxPipeWait)
	}
	return "interrupted: nothing opened the pipe's other end"
}

func (w *interruptedWait) Unwrap() error { return w.cause }
