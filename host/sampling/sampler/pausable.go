package sampler

import (
	"context"
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
	every time.Duration
	followers[pausing]
}

// pausing is one process, which need not have such memory.
type pausing struct {
	tags   []sample.Tag
	paused map[int]int64 // bytes by CUDA's ordinal
}

func newPausables(every time.Duration) *pausables {
	return &pausables{ask: pausable.Ask, every: max(every, 100*time.Millisecond), followers: newFollowers[pausing]()}
}

// of returns the tags of a process, nil as long as none are known, and what of each of its
// devices is paused. The first call begins to ask for them.
func (t *pausables) of(pid int) (tags []sample.Tag, paused map[int]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.followers.of(pid, t.follow)
	return own.tags, own.paused
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
		var paused map[int]int64
		next := t.every
		if err == nil {
			tags, paused, pause = tagsOf(s), pausedOf(s), first
		} else {
			next, pause = pause, min(2*pause, rarest)
		}
		t.mu.Lock()
		own.tags, own.paused = tags, paused
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
