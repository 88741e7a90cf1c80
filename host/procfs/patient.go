package procfs

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// ErrSilent says that a file or a memory was asked and did not answer: it is on a
// file system whose server is away, or the process answers for it itself.
var ErrSilent = errors.New("it does not answer")

// patience is how long an answer may take.
const patience = 3 * time.Second

// within gives f up when it takes too long. What it returns then is dropped.
func within[T any](f func() (T, error), drop func(T)) (T, error) {
	type answer struct {
		what T
		err  error
	}
	answers, late := make(chan answer), make(chan struct{})
	go func() {
		what, err := f()
		select {
		case answers <- answer{what, err}:
		case <-late:
			if err == nil {
				drop(what)
			}
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.what, a.err
	case <-timer.C:
		close(late)
		var none T
		return none, ErrSilent
	}
}

// patient reads until it is not answered.
type patient struct {
	from   io.ReaderAt
	silent atomic.Bool
}

// Patient makes a reader give up reads that are not answered, and all that would
// come after one.
func Patient(r io.ReaderAt) io.ReaderAt { return &patient{from: r} }

func (p *patient) ReadAt(b []byte, at int64) (n int, err error) {
	if p.silent.Load() {
		return 0, ErrSilent
	}
	own := make([]byte, len(b)) // a late answer must not change what is used by then
	n, err = within(func() (int, error) { return p.from.ReadAt(own, at) }, func(int) {})
	if err == ErrSilent {
		p.silent.Store(true)
	}
	return copy(b, own[:n]), err
}
