package procfs

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// slow is a reader whose reads wait until it is let go.
type slow struct {
	io.ReaderAt
	wait chan struct{}
}

func (s slow) ReadAt(b []byte, at int64) (int, error) {
	<-s.wait
	return s.ReaderAt.ReadAt(b, at)
}

// TestPatient gives up on reads while one gets no response, and reads again once it got it.
func TestPatient(t *testing.T) {
	before := patience
	defer func() { patience = before }()
	patience = time.Millisecond
	s := slow{strings.NewReader("some text"), make(chan struct{})}
	r := Patient(s)
	b := make([]byte, 4)
	for range 2 {
		if n, err := r.ReadAt(b, 0); n != 0 || err != ErrSilent {
			t.Fatalf("%d, %v", n, err)
		}
	}
	patience = before
	close(s.wait)
	for {
		n, err := r.ReadAt(b, 5)
		if err == ErrSilent {
			runtime.Gosched()
			continue
		}
		if err != nil || string(b[:n]) != "text" {
			t.Fatalf("%q, %v", b[:n], err)
		}
		break
	}
}
