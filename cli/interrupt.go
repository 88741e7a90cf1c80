package cli

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"strandline/internal/safefile"
)

// grace is how long a command that is interrupted may take to end on its own.
const grace = 2 * time.Second

// run runs a command until it ends or, if it is interrupted and does not end in
// time, abandons it: it may wait for standard input, or compute. An abandoned
// command writes no more, and its unfinished files go. A command that still
// reports what it has is waited for; a second interrupt ends it.
func (g *globals) run(ctx context.Context, command func(context.Context) error) error {
	out, messages := &outlet{w: g.env.stdout}, &outlet{w: g.env.stderr}
	env := *g.env
	env.stdout, env.stderr = out, messages
	g.env, g.interrupted = &env, ctx
	done := make(chan error, 1)
	go func() { done <- command(ctx) }()
	select {
	case err := <-done:
		return out.result(err)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return out.result(err)
	case <-time.After(grace):
		if g.concludes.Load() {
			return out.result(<-done)
		}
	}
	out.closed.Store(true)
	messages.closed.Store(true)
	g.unfinished.Range(func(f, _ any) bool {
		f.(*safefile.Output).Close()
		return true
	})
	return ctx.Err()
}

// outlet is an output that can be shut.
type outlet struct {
	w      io.Writer
	closed atomic.Bool
	failed atomic.Pointer[error] // a write did
}

func (o *outlet) Write(p []byte) (int, error) {
	if o.closed.Load() {
		return 0, context.Canceled
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// result returns how a command ended, or an error if part of its output is lost.
func (o *outlet) result(err error) error {
	if failed := o.failed.Load(); failed != nil && (err == nil || errors.As(err, new(exit))) {
		return *failed
	}
	return err
}

// unfinished are the files that are being written.
type unfinished = sync.Map
