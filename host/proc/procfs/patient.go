package procfs

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// ErrSilent states that a read of a file or of memory got no response: the file is on a
// file system whose server is gone, or that the process itself serves.
var ErrSilent = errors.New("it does not answer")

// patience is how long a response may take. A slow disk and a busy machine, as where PyTorch
// is imported, can take longer now and then.
var patience = 3 * time.Second

// withPatience gives up on f if it takes too long. What f returns later goes to drop, without an
// error or with one.
func withPatience[T any](f func() (T, error), drop func(T, error)) (T, error) {
	type answer struct {
		what T
		err  error
	}
	answers, timeout := make(chan answer), make(chan struct{})
	go func() {
		what, err := f()
		select {
		case answers <- answer{what, err}:
		case <-timeout:
			drop(what, err)
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.what, a.err
	case <-timer.C:
		close(timeout)
		var none T
		return none, ErrSilent
	}
}

// patient reads while no read waits for a response.
type patient struct {
	from    io.ReaderAt
	overdue atomic.Int64 // reads that got no response in time, and none since
}

// Patient returns a reader that gives up on a read that gets no response in time, and on all
// reads until it gets one.
func Patient(r io.ReaderAt) io.ReaderAt { return &patient{from: r} }

func (p *patient) ReadAt(b []byte, at int64) (n int, err error) {
	if p.overdue.Load() > 0 {
		return 0, ErrSilent
	}
	own := make([]byte, len(b)) // a late response must not change what is in use by then
	n, err = withPatience(func() (int, error) { return p.from.ReadAt(own, at) }, func(int, error) { p.overdue.Add(-1) })
	if err == ErrSilent {
		p.overdue.Add(1)
	}
	return copy(b, own[:n]), err
}
