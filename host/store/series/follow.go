package series

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"strandline/host/sampling/sample"
	"strandline/internal/budget"
	"strandline/internal/safefile"
)

// A Follower takes what [Follow] reads.
type Follower interface {
	// Begin states that the file is read from its beginning; all that came before is
	// forgotten, since it comes again.
	Begin()
	Take(*sample.Sample) error
	// Unreadable states why a part of the file is left out.
	Unreadable(why error)
	// Rest reports that all that is there has been read. More can follow.
	Rest()
}

// pause is the time between looks at the end of a file that is followed.
const pause = 200 * time.Millisecond

// Follow reads a recording like [Read], and waits at its end for more until the context
// is done. Where the file is thinned, or replaced by another recording, it is read again.
func Follow(ctx context.Context, path string, to Follower) error {
	for {
		samples, again, err := followOnce(ctx, path, to)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !again && samples == 0:
			return ErrOther
		case !again: // the rest is unreadable, which was stated
			to.Rest()
			return nil
		}
	}
}

// followOnce follows a file until another one is in its place, and counts the samples.
func followOnce(ctx context.Context, path string, to Follower) (samples int, again bool, err error) {
	f, err := safefile.Open(path, safefile.Unbounded)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	to.Begin()
	t := &tail{ctx: ctx, f: f, path: path, rest: to.Rest}
	samples, err = readAll(t, budget.New(func() int64 { return t.read }, budget.Packed), to.Take, to.Unreadable)
	return samples, t.replaced, err
}

// A tail reads a file, and at its end waits until it grows. It ends where another file
// is in its place.
type tail struct {
	ctx      context.Context
	f        *os.File
	path     string
	rest     func()
	read     int64
	replaced bool
	ended    bool
}

func (t *tail) Read(b []byte) (int, error) {
	for waited := false; !t.ended; waited = true {
		n, err := t.f.Read(b)
		t.read += int64(n)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		if !waited {
			t.rest()
		}
		select {
		case <-t.ctx.Done():
			t.ended = true
		case <-time.After(pause):
			t.replaced = t.isReplaced()
			t.ended = t.replaced
		}
	}
	return 0, io.EOF
}

// isReplaced reports whether another file has the name, or the file was cut short. One
// that was removed is not replaced.
func (t *tail) isReplaced() bool {
	own, err := t.f.Stat()
	if err != nil {
		return false
	}
	info, err := os.Stat(t.path)
	return own.Size() < t.read || err == nil && !os.SameFile(own, info)
}
