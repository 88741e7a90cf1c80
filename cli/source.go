package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"strandline/internal/safefile"
)

// errOnce is the error for an input that was read too far to start over.
var errOnce = errors.New("it can be read only once")

// Of an input that can be read only once, such as a pipe, its beginning is kept, so that it
// can be looked at by one format after another; of a regular file, what they usually look
// at.
const (
	keptOfPipe = 1 << 20
	keptOfFile = 64 << 10
	keptOpen   = 64 // files at most; the others are opened each time
)

// inputs are the files that were opened, by path, so that each is opened and its beginning
// read only once, whatever it is tried as.
type inputs struct {
	mu     sync.Mutex
	byPath map[string]*input
	found  map[string]bool // files below a folder that was named
}

// find notes that a path was not named.
func (in *inputs) find(path string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.found == nil {
		in.found = map[string]bool{}
	}
	in.found[path] = true
}

// source opens a file to read it from the beginning; "-" is standard input. An input that
// can be read only once can be opened again as long as no more than its first 1 MiB was
// read.
func (g *globals) source(path string) (io.ReadCloser, error) {
	g.inputs.mu.Lock()
	defer g.inputs.mu.Unlock()
	if in := g.inputs.byPath[path]; in != nil {
		if in.over && in.file == nil {
			return nil, errOnce
		}
		return &replayed{in: in}, nil
	}
	in := &input{r: g.env.stdin, most: keptOfPipe}
	if path != "-" {
		f, err := g.openInput(path)
		if err != nil {
			return nil, err
		}
		in.r = f
		switch info, err := f.Stat(); {
		case err != nil || info.IsDir():
			f.Close()
			return nil, cmp.Or(err, fmt.Errorf("%s is a directory", path))
		case info.Mode().IsRegular() && len(g.inputs.byPath) >= keptOpen:
			return f, nil
		case info.Mode().IsRegular():
			in.file, in.most = f, keptOfFile
		}
	}
	if g.inputs.byPath == nil {
		g.inputs.byPath = map[string]*input{}
	}
	g.inputs.byPath[path] = in
	return &replayed{in: in}, nil
}

// openInput opens a file that was named, for which an interrupt ends the wait if it is a
// pipe, or one that was found in a folder.
func (g *globals) openInput(path string) (*os.File, error) {
	if g.inputs.found[path] {
		return safefile.Open(path, safefile.Unbounded)
	}
	ctx := g.interrupted
	if ctx == nil || g.concludes.Load() && ctx.Err() != nil {
		ctx = context.Background() // what is read after an interrupt is still reported
	}
	return safefile.OpenNamed(ctx, path)
}

// release closes a regular file that nothing else will be read from.
func (g *globals) release(path string) {
	g.inputs.mu.Lock()
	defer g.inputs.mu.Unlock()
	if in := g.inputs.byPath[path]; in != nil && in.file != nil {
		in.file.Close()
		delete(g.inputs.byPath, path)
	}
}

// releaseAll closes the regular files.
func (g *globals) releaseAll() {
	for path := range g.inputs.byPath {
		g.release(path)
	}
}

// input keeps the beginning of what is read.
type input struct {
	r    io.Reader
	file *os.File // where it is a regular file, which can be read anywhere
	head []byte
	most int  // bytes to keep
	over bool // more was read than is kept
	all  bool // nothing follows what is kept
}

// readAt reads what is not kept. A pipe is only read on.
func (in *input) readAt(p []byte, at int64) (n int, err error) {
	switch {
	case in.all:
		return 0, io.EOF
	case in.file != nil:
		n, err = in.file.ReadAt(p, at)
	default:
		n, err = in.r.Read(p)
	}
	switch whole := len(in.head)+n <= in.most; {
	case in.over:
	case whole && at == int64(len(in.head)):
		in.head = append(in.head, p[:n]...)
		in.all = err == io.EOF
	case !whole:
		in.over = true
		if in.file == nil {
			in.head = nil
		}
	}
	return n, err
}

// replayed reads what an input has kept, and then on from there. Of a pipe only the last
// one is read.
type replayed struct {
	in *input
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
