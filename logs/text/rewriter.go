package text

import "io"

// A rewriter reads a text in which something is replaced.
type rewriter struct {
	r io.Reader
	rewriting
	held []byte // what was not taken
	err  error
}

// A rewriting replaces something in a text.
type rewriting interface {
	// rewrite rewrites text in its place. It returns how many bytes are left of those that it
	// has taken: the rest is what more text may change. At the end of the text it takes all.
	rewrite(p []byte, last bool) (kept, taken int)
	// longest is the most that it leaves, in bytes.
	longest() int
}

// rewritten is a text with a rewriting.
func rewritten(r io.Reader, by rewriting) io.Reader { return &rewriter{r: r, rewriting: by} }

func (w *rewriter) Read(p []byte) (int, error) {
	if len(p) <= w.longest() {
		return 0, io.ErrShortBuffer
	}
	for {
		if w.err != nil && len(w.held) == 0 {
			return 0, w.err
		}
		n := copy(p, w.held)
		if w.err == nil {
			var got int
			got, w.err = w.r.Read(p[n:])
			n += got
		}
		kept, taken := w.rewrite(p[:n], w.err != nil)
		w.held = append(w.held[:0], p[taken:n]...)
		if kept > 0 {
			return kept, nil
		}
	}
}
