package trace

import (
	"context"
	"errors"
	"fmt"
	"math"

	"strandline/face/report"
	"strandline/judge/processes"
)

// A Follower traces the calls of a process that another judgment suspects, while that goes
// on.
type Follower struct {
	stop context.CancelFunc
	done chan struct{}
	doc  *report.Trace
	why  error
	kept map[int][]processes.Container
}

// Follow traces a process and its children until they end or Close is called.
func Follow(ctx context.Context, pid int) *Follower {
	f := &Follower{done: make(chan struct{})}
	ctx, f.stop = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		f.doc, f.why = f.follow(ctx, pid)
	}()
	return f
}

func (f *Follower) follow(ctx context.Context, pid int) (*report.Trace, error) {
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
	f.kept = map[int][]processes.Container{}
	for p, h := range s.containers {
		f.kept[int(p)] = processes.Growing(h)
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

// Containers are those of a Python process that grew, once the trace has ended.
func (f *Follower) Containers(pid int) []processes.Container { return f.kept[pid] }
