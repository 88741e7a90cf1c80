package cli

import (
	"errors"
	"io"
	"os"
)

// errOnce is the error for an input that was read too far to start over.
var errOnce = errors.New("it can be read only once")

// source opens a file to read it from the beginning; "-" is standard input. Of what
// can be read only once, such as a pipe, the first 1 MiB are kept, so that it can be
// opened again as long as no more was read.
func (g *globals) source(path string) (io.ReadCloser, error) {
	if rec := g.pipes[path]; rec != nil {
		if rec.over {
			return nil, errOnce
		}
		return &replayed{rec: rec}, nil
	}
	in := io.Reader(g.env.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err != nil || info.Mode().IsRegular() || info.IsDir() {
			return f, err
		}
		in = f
	}
	if g.pipes == nil {
		g.pipes = map[string]*recorder{}
	}
	g.pipes[path] = &recorder{r: in}
	return &replayed{rec: g.pipes[path]}, nil
}

// recorder keeps the beginning of what is read.
type recorder struct {
	r    io.Reader
	head []byte
	over bool // more was read than is kept
}

func (r *recorder) Read(p []byte) (int, error) {
	const most = 1 << 20
	n, err := r.r.Read(p)
	if r.over = r.over || len(r.head)+n > most; !r.over {
		r.head = append(r.head, p[:n]...)
	} else {
		r.head = nil
	}
	return n, err
}

// replayed reads what a recorder has, and then on from there. Only the last one of
// a recorder is read.
type replayed struct {
	rec *recorder
	at  int
}

func (r *replayed) Read(p []byte) (n int, err error) {
	if r.at < len(r.rec.head) {
		n = copy(p, r.rec.head[r.at:])
	} else {
		n, err = r.rec.Read(p)
	}
	r.at += n
	return n, err
}

// Close leaves the recorder open: it may be read again.
func (r *replayed) Close() error { return nil }
