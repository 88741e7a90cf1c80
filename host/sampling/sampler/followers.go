package sampler

import (
	"context"
	"sync"
)

// followers follow processes, each in a goroutine of its own, and keep what they find.
type followers[T any] struct {
	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup

	mu  sync.Mutex
	all map[int]*followed[T]
}

type followed[T any] struct {
	stop  context.CancelFunc
	found T
}

func newFollowers[T any]() followers[T] {
	ctx, stop := context.WithCancel(context.Background())
	return followers[T]{ctx: ctx, stop: stop, all: map[int]*followed[T]{}}
}

// of is what is found of a process, under the lock that the caller holds. The first call begins
// to follow it.
func (f *followers[T]) of(pid int, follow func(ctx context.Context, pid int, found *T)) *T {
	own := f.all[pid]
	if own == nil {
		ctx, stop := context.WithCancel(f.ctx)
		own = &followed[T]{stop: stop}
		f.all[pid] = own
		f.wait.Go(func() { follow(ctx, pid, &own.found) })
	}
	return &own.found
}

// drop ends what of began.
func (f *followers[T]) drop(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own := f.all[pid]; own != nil {
		own.stop()
		delete(f.all, pid)
	}
}

func (f *followers[T]) close() {
	f.stop()
	f.wait.Wait()
}
