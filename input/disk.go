package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"strandline/internal/safefile"
	"strandline/pausable/history"
	"strandline/record"
)

const manifestName = record.ManifestName

// OpenPaths finds the files that paths lead to: those that are named, and those below the folders
// that are named, without hidden folders. "-" is the standard input. A path that leads to
// nothing is an error.
func OpenPaths(paths []string, o Options) (*Files, error) {
	fs := &Files{Given: paths, options: o, disk: newDisk(o)}
	fs.manifests.read = record.ReadManifest
	seen := map[string]bool{}
	for _, path := range paths {
		if err := fs.find(path, seen); err != nil {
			return nil, err
		}
	}
	return fs, nil
}

// OpenFile is OpenPaths for a command that takes one file. A folder is an [ErrFolder].
func OpenFile(path string, o Options) (*File, error) {
	if path != "-" && IsFolder(path) {
		return nil, fmt.Errorf("%s: %w", path, ErrFolder)
	}
	files, err := OpenPaths([]string{path}, o)
	if err != nil {
		return nil, err
	}
	return files.List[0], nil
}

// ErrFolder is the error where one file is to be named and a folder is.
var ErrFolder = errors.New("is a directory")

// A named is what the name of a file in a folder says of it.
type named int

const (
	foreign  named = iota // it is not opened
	possible              // a snapshot, a recording, a table or a profile
	either                // likewise, or the text of a rank
	output                // a log, too
)

// nameOf is what the name of a file says. Of source code and pages nothing is read unless they
// are named: they quote messages of failures that did not happen.
func nameOf(name string) named {
	switch ext := extOf(name); ext {
	case ".log", ".out", ".err", ".txt", ".stdout", ".stderr":
		return output
	case "", ".jsonl":
		return either
	case ".pickle", ".pkl", ".json", ".strandline", ".trace", ".csv", ".tsv", ".prof", ".pb", ".sqlite", ".sqlite3", ".db", ".dat", ".smaps", history.Suffix:
		return possible
	default:
		if _, err := strconv.ParseUint(ext[1:], 10, 64); err == nil { // step.100, smaps.2, out.3
			return either
		}
		if _, err := strconv.ParseUint(strings.TrimLeft(ext, ".oe"), 10, 64); err == nil { // job.o77 of PBS and Grid Engine
			return output
		}
	}
	return foreign
}

// extOf is the extension of a file's name in lower case, without that of its compression.
func extOf(name string) string {
	name = strings.ToLower(name)
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	return filepath.Ext(name)
}

// find adds the files that a path leads to.
func (fs *Files) find(path string, seen map[string]bool) error {
	if path == "-" {
		fs.add(path, true, nil, seen)
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		fs.add(path, true, info, seen)
		return nil
	}
	return filepath.WalkDir(path, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != path && len(d.Name()) > 1 && d.Name()[0] == '.' {
			return filepath.SkipDir
		}
		if d.IsDir() || d.Name() == manifestName {
			return nil
		}
		if nameOf(d.Name()) == foreign {
			fs.Passed = append(fs.Passed, p)
			return nil
		}
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			fs.add(p, false, info, seen)
		} else {
			fs.Passed = append(fs.Passed, p) // a pipe, a device, or a link to a folder or nothing
		}
		return nil
	})
}

// add adds a file once.
func (fs *Files) add(path string, named bool, info os.FileInfo, seen map[string]bool) {
	if seen[path] {
		return
	}
	seen[path] = true
	f := &File{Source: Source{Path: path, Named: named}, all: fs}
	if info != nil && info.Mode().IsRegular() {
		f.Size, f.Changed = info.Size(), info.ModTime()
	}
	f.Open = func() (io.ReadCloser, error) { return fs.disk.open(path, named) }
	fs.List = append(fs.List, f)
}

// Close closes the files that are open.
func (fs *Files) Close() {
	if fs.disk != nil {
		fs.disk.closeAll()
	}
}

// release closes the file: nothing else will be read from it.
func (f *File) release() {
	if f.all.disk != nil {
		f.all.disk.release(f.Path)
	}
}

// errOnce is the error for an input that was read too far to start over.
var errOnce = errors.New("it can be read only once")

// Of an input that can be read only once, such as a pipe, its beginning is kept, so that it
// can be recognized before it is read; of a regular file, what is looked at.
const (
	keptOfPipe   = 1 << 20
	keptOfFile   = lookSize
	maxKeptFiles = 64 // the others are opened each time
)

// A disk has the files that are open, by path, so that each is opened once, whatever its
// name leads to later.
type disk struct {
	stdin     io.Reader
	openNamed func(path string) (*os.File, error)
	mu        sync.Mutex
	byPath    map[string]*kept
}

func newDisk(o Options) *disk {
	d := &disk{stdin: o.Stdin, openNamed: o.OpenNamed, byPath: map[string]*kept{}}
	if d.openNamed == nil {
		d.openNamed = func(path string) (*os.File, error) { return safefile.OpenNamed(context.Background(), path) }
	}
	return d
}

// open opens a file to read it from the beginning. An input that can be read only once can
// be opened again as long as no more than its first 1 MiB was read. One that was not named
// is a regular file, or it is refused.
func (d *disk) open(path string, named bool) (io.ReadCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in := d.byPath[path]; in != nil {
		if in.truncated && in.file == nil {
			return nil, errOnce
		}
		return &replayed{in: in}, nil
	}
	in := &kept{r: d.stdin, max: keptOfPipe}
	if path != "-" {
		f, info, err := d.openFile(path, named)
		if err != nil {
			return nil, err
		}
		if in.r = f; info.Mode().IsRegular() {
			in.file, in.max, in.end = f, keptOfFile, cmp.Or(info.Size(), math.MaxInt64)
			if len(d.byPath) >= maxKeptFiles {
				return struct {
					io.Reader
					io.Closer
				}{io.LimitReader(f, in.end), f}, nil
			}
		}
	}
	d.byPath[path] = in
	return &replayed{in: in}, nil
}

// openFile opens a file, and says what it is.
func (d *disk) openFile(path string, named bool) (f *os.File, info os.FileInfo, err error) {
	if named {
		f, err = d.openNamed(path)
	} else {
		f, err = safefile.Open(path, safefile.Unbounded)
	}
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err != nil || info.IsDir() {
		f.Close()
		return nil, nil, cmp.Or(err, fmt.Errorf("%s %w", path, ErrFolder))
	}
	return f, info, nil
}

// release closes a regular file.
func (d *disk) release(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in := d.byPath[path]; in != nil && in.file != nil {
		in.file.Close()
		delete(d.byPath, path)
	}
}

func (d *disk) closeAll() {
	for path := range d.byPath {
		d.release(path)
	}
}

// kept is an input whose beginning is kept.
type kept struct {
	r         io.Reader
	file      *os.File // where it is a regular file, which can be read anywhere
	end       int64    // of the file when it was opened: what a program adds meanwhile is left
	head      []byte
	max       int  // bytes to keep
	truncated bool // more was read than is kept
	all       bool // nothing follows the head
}

// readAt reads what is not kept. A pipe is only read on.
func (in *kept) readAt(p []byte, at int64) (n int, err error) {
	switch {
	case in.all:
		return 0, io.EOF
	case in.file != nil:
		if p = p[:min(int64(len(p)), max(0, in.end-at))]; len(p) > 0 {
			n, err = in.file.ReadAt(p, at)
		} else {
			err = io.EOF
		}
	default:
		n, err = in.r.Read(p)
	}
	switch whole := len(in.head)+n <= in.max; {
	case in.truncated:
	case whole && at == int64(len(in.head)):
		in.head = append(in.head, p[:n]...)
		in.all = err == io.EOF
	case !whole:
		in.truncated = true
		if in.file == nil {
			in.head = nil
		}
	}
	return n, err
}

// replayed reads what an input has kept, and then on from there. Of a pipe only the last
// one is read.
type replayed struct {
	in *kept
	at int64
}

func (r *replayed) Read(p []byte) (n int, err error) {
	if r.at < int64(len(r.in.head)) {
		n = copy(p, r.in.head[r.at:])
	} else {
		n, err = r.in.readAt(p, r.at)
	}
	r.at += int64(n)
	return n, err
}

// Close leaves the input open: it may be read again.
func (r *replayed) Close() error { return nil }

// watched is a reader that reports its progress and ends with its context.
type watched struct {
	ctx  context.Context
	r    io.Reader
	show func(read int64)
	n    int64
}

func (w *watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.r.Read(p)
	w.n += int64(n)
	if w.show != nil {
		w.show(w.n)
	}
	return n, err
}

// IsFolder reports whether a path leads to a folder.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
