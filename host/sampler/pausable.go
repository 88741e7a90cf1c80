package sampler

import (
	"context"
	"sync"
	"time"

	"strandline/host/sample"
	"strandline/pausable"
	"strandline/pausable/state"
)

// mostTags is how many tags of a process are kept apart; the rest is one.
const mostTags = 32

// pausables asks processes what of their memory is pausable.
type pausables struct {
	ask   func(ctx context.Context, pid int) (*state.Status, error)
	every time.Duration
	ctx   context.Context
	stop  context.CancelFunc
	wait  sync.WaitGroup

	mu  sync.Mutex
	all map[int]*pausing
}

// pausing is one process, which need not have such memory.
type pausing struct {
	stop context.CancelFunc
	tags []sample.Tag
}

func newPausables(every time.Duration) *pausables {
	ctx, stop := context.WithCancel(context.Background())
	return &pausables{ask: pausable.Ask, every: max(every, 100*time.Millisecond), ctx: ctx, stop: stop, all: map[int]*pausing{}}
}

// of returns the tags of a process, nil as long as none are known. The first call begins
// to ask for them.
func (t *pausables) of(pid int) []sample.Tag {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.all[pid]
	if own == nil {
		ctx, stop := context.WithCancel(t.ctx)
		own = &pausing{stop: stop}
		t.all[pid] = own
		t.wait.Go(func() { t.follow(ctx, pid, own) })
	}
	return own.tags
}

// follow asks a process as long as it is watched, one that does not answer less and less
// often.
func (t *pausables) follow(ctx context.Context, pid int, own *pausing) {
	const first, patience = time.Second, 10 * time.Second
	for pause := first; ctx.Err() == nil; {
		asking, end := context.WithTimeout(ctx, patience)
		s, err := t.ask(asking, pid)
		end()
		var tags []sample.Tag
		next := t.every
		if err == nil {
			tags, pause = tagsOf(s), first
		} else {
			next, pause = pause, min(2*pause, rarest)
		}
		t.mu.Lock()
		own.tags = tags
		t.mu.Unlock()
		select {
		case <-time.After(next):
		case <-ctx.Done():
		}
	}
}

// tagsOf are the tags of a process, of which only so many are kept apart.
func tagsOf(s *state.Status) (out []sample.Tag) {
	for i := range s.Tags {
		t := &s.Tags[i]
		one := sample.Tag{Tag: t.Name, Bytes: t.Bytes, Held: t.Held, State: t.State, Backup: t.Backup, BackupBytes: t.BackupBytes}
		if i < mostTags {
			out = append(out, one)
			continue
		}
		rest := &out[mostTags-1]
		rest.Tag, rest.Bytes, rest.Held, rest.BackupBytes = "(others)", rest.Bytes+one.Bytes, rest.Held+one.Held, rest.BackupBytes+one.BackupBytes
		if rest.State != one.State {
			rest.State = state.Partial
		}
	}
	return out
}

// drop ends what [pausables.of] began.
func (t *pausables) drop(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.all[pid]; own != nil {
		own.stop()
		delete(t.all, pid)
	}
}

func (t *pausables) close() {
	t.stop()
	t.wait.Wait()
}
