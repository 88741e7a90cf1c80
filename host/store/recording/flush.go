package recording

// A flusher writes a file through to the disk without making its writer wait: on a slow
// disk this takes seconds.
type flusher struct {
	due   chan struct{} // holds an element if a flush was requested and has not begun
	ended chan struct{} // closed when no flush is running
	errs  chan error    // the first failure that was not reported yet
}

func newFlusher(sync func() error) *flusher {
	f := &flusher{due: make(chan struct{}, 1), ended: make(chan struct{}), errs: make(chan error, 1)}
	go func() {
		defer close(f.ended)
		for range f.due {
			if err := sync(); err != nil {
				select {
				case f.errs <- err:
				default:
				}
			}
		}
	}()
	return f
}

// flush requests that what has been written so far be flushed. The error is that of an
// earlier flush.
func (f *flusher) flush() error {
	select {
	case f.due <- struct{}{}:
	default: // the pending one covers this
	}
	return f.failed()
}

func (f *flusher) failed() error {
	select {
	case err := <-f.errs:
		return err
	default:
		return nil
	}
}

// close waits until the requested flushes are done.
func (f *flusher) close() error {
	close(f.due)
	<-f.ended
	return f.failed()
}
