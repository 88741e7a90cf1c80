package trace

import (
	"context"
	"errors"
	"fmt"
	"math"

	"strandline/face/report"
)

// A Follower traces the calls of a process that another judgment suspects, while that goes
// on.
type Follower struct {
	stop context.CancelFunc
	done chan struct{}
	doc  *report.Trace
	why  error
}

// Follow traces a process and its children until they end or Close is called.
func Follow(ctx context.Context, pid int) *Follower {
	f := &Follower{done: make(chan struct{})}
	ctx, f.stop = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		f.doc, f.why = follow(ctx, pid)
	}()
	return f
}

func follow(ctx context.Context, pid int) (*report.Trace, error) {
	s, err := Start(ctx, Options{
		PID: pid, Backend: BPF, Duration: math.MaxInt64,
		Warn: func(string, ...any) {}, Progress: func(func() *report.Trace) {},
	})
	if ended := (*ProcessError)(nil); errors.As(err, &ended) {
		return nil, ErrTooSoon
	}
	if err != nil {
		return nil, fmt.Errorf("its calls cannot be traced: %w", err)
	}
	defer s.Close()
	if err := s.Run(ctx); err != nil {
		return nil, err
	}
	return s.Document(nil), nil
}

// ErrTooSoon is the reason why nothing was traced of a command that ended.
var ErrTooSoon = errors.New("it looked like a leak only shortly before it ended: let it run longer, or trace it from its start")

// Close ends the trace and returns what it found, or why it found nothing.
func (f *Follower) Close() (*report.Trace, error) {
	f.stop()
	<-f.done
	return f.doc, f.why
}
