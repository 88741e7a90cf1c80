package sampler

import (
	"context"
	"slices"
	"time"

	"strandline/host/sampling/sample"
	"strandline/pausable"
	"strandline/pausable/state"
)

// maxTags is how many tags of a process are kept apart; the rest is one.
const maxTags = 32

// pausables asks processes what of their memory is pausable.
type pausables struct {
	ask   func(ctx context.Context, pid int) (*state.Status, error)
	read  func(ctx context.Context, pid int) (map[int]*state.Outside, *state.Status)
	every time.Duration
	followers[pausing]
}

// pausing is one process, which need not have such memory.
type pausing struct {
	tags   []sample.Tag
	paused map[int]int64 // bytes by CUDA's ordinal
	// outside is what PyTorch has in no region, by CUDA's ordinal, when that was last read; nil if it was not.
	outside map[int]*state.Outside
	due     bool      // the tags changed since
	rest    time.Time // until when it is not read again
}

func newPausables(every time.Duration) *pausables {
	return &pausables{ask: pausable.Ask, read: OutsideRegions, every: max(every, 100*time.Millisecond), followers: newFollowers[pausing]()}
}

// of returns the tags of a process, nil as long as none are known, and what of each of its
// devices is paused, or PyTorch's in no region, which is stale if they changed since. The first call begins to ask for them.
func (t *pausables) of(pid int) (tags []sample.Tag, paused map[int]int64, outside map[int]*state.Outside, stale bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.followers.of(pid, t.follow)
	return own.tags, own.paused, own.outside, own.due
}

// follow asks a process as long as it is watched, one that does not answer less and less
// often.
func (t *pausables) follow(ctx context.Context, pid int, own *pausing) {
	const first = time.Second
	for pause := first; ctx.Err() == nil; {
		next := t.every
		if t.look(ctx, pid, own) {
			pause = first
		} else {
			next, pause = pause, min(2*pause, rarest)
		}
		select {
		case <-time.After(next):
		case <-ctx.Done():
		}
	}
}

// look asks a process once, and reports whether it answered. While some memory is paused, what is in no region is
// read once after each change, and no more often than takes a hundredth of a processor.
func (t *pausables) look(ctx context.Context, pid int, own *pausing) bool {
	const patience = 10 * time.Second
	asking, end := context.WithTimeout(ctx, patience)
	s, err := t.ask(asking, pid)
	end()
	var now pausing
	if err == nil {
		now = *own // which is written here alone
		now.tags, now.paused = tagsOf(s), pausedOf(s)
		now.due = own.due || !slices.Equal(now.tags, own.tags)
		sleeps := slices.ContainsFunc(now.tags, func(t sample.Tag) bool { return t.Held < t.Bytes })
		if sleeps && now.due && time.Now().After(own.rest) {
			took := processorTime(func() {
				if read := t.outsideNow(ctx, pid, now.tags); read != nil {
					now.outside, now.due = read, false
				}
			})
			now.rest = time.Now().Add(100 * took)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	*own = now
	return err == nil
}

// outsideNow is what PyTorch has in no region while a process has these tags; nil if it cannot be read, or they
// changed meanwhile.
func (t *pausables) outsideNow(ctx context.Context, pid int, tags []sample.Tag) map[int]*state.Outside {
	const patience = 10 * time.Second
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	outside, after := t.read(ctx, pid)
	if after == nil || !slices.Equal(tagsOf(after), tags) {
		return nil
	}
	return outside
}

// tagsOf are the tags of a process, of which only so many are kept apart.
func tagsOf(s *state.Status) (out []sample.Tag) {
	for i := range s.Tags {
		t := &s.Tags[i]
		one := sample.Tag{Tag: t.Name, Bytes: t.Bytes, Held: t.Held, State: t.State, Backup: t.Backup, BackupBytes: t.BackupBytes}
		if i < maxTags {
			out = append(out, one)
			continue
		}
		rest := &out[maxTags-1]
		rest.Tag, rest.Bytes, rest.Held, rest.BackupBytes = "(others)", rest.Bytes+one.Bytes, rest.Held+one.Held, rest.BackupBytes+one.BackupBytes
		if rest.State != one.State {
			rest.State = state.Partial
		}
	}
	return out
}

// pausedOf is what is paused of each device, in bytes by CUDA's ordinal.
func pausedOf(s *state.Status) map[int]int64 {
	out := map[int]int64{}
	for i := range s.Tags {
		for _, d := range s.Tags[i].Devices {
			out[d.Device] += d.Bytes - d.Held
		}
	}
	return out
}
