package sampler

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"strandline/host/gpu/cudaalloc"
	"strandline/host/sampling/sample"
	"strandline/internal/test/live"
	"strandline/pausable"
	"strandline/pausable/state"
	"strandline/record"
)

// TestPausable samples a process with pausable memory.
func TestPausable(t *testing.T) {
	t.Parallel()
	p := live.Pausable(t, "../../..")
	s, err := New(Options{PID: p.PID, Interval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	until := func(want func(tags []sample.Tag) bool) {
		t.Helper()
		for {
			now, err := s.Sample(t.Context())
			if err != nil || len(now.Processes) != 1 {
				t.Fatalf("%v: %+v", err, now)
			}
			if want(now.Processes[0].Pausable) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	until(func(tags []sample.Tag) bool {
		return len(tags) == 3 && tags[1].Tag == "kv cache" && tags[1].Held == 6<<20
	})
	if _, err := pausable.Do(t.Context(), p.PID, state.Step{Do: state.Pause, All: true}, pausable.StepTime); err != nil {
		t.Fatal(err)
	}
	until(func(tags []sample.Tag) bool {
		return len(tags) == 3 && tags[0].Held == 0 && tags[0].Bytes == 6<<20 && tags[0].State == state.Paused && tags[0].BackupBytes == 6<<20
	})
}

// TestManyTags bounds what is kept apart.
func TestManyTags(t *testing.T) {
	t.Parallel()
	s := &state.Status{}
	for i := range 100 {
		s.Tags = append(s.Tags, state.Tag{Name: strconv.Itoa(i), Bytes: 2, Held: 1, State: state.Active})
	}
	s.Tags[99].State = state.Paused
	tags := tagsOf(s)
	if last := fmt.Sprint(tags[maxTags-1]); len(tags) != maxTags || last != "{(others) 138 69 partial  0}" {
		t.Errorf("%d tags, the last is %s", len(tags), last)
	}
}

// TestOtherWhilePaused divides a process whose PyTorch counts what is paused as reserved.
func TestOtherWhilePaused(t *testing.T) {
	t.Parallel()
	status := &state.Status{Tags: []state.Tag{
		{Name: "weights", Devices: []state.Share{{Device: 0, Bytes: 400}, {Device: 1, Bytes: 50, Held: 50}}},
		{Name: "kv", Devices: []state.Share{{Device: 0, Bytes: 300, Held: 100}}},
	}}
	used, more := int64(500), int64(70)
	p := sample.Process{Devices: []sample.DeviceShare{{Device: 0, Used: &used}, {Device: 1, Used: &more}}}
	split(&p, nil, []record.DeviceStats{{Device: 0, Allocated: 700, Reserved: 900}, {Device: 1, Allocated: 50, Reserved: 60}}, pausedOf(status), map[int]*state.Outside{0: {Tensors: 5, Cache: 4, Split: 3, Pools: 6, PoolTensors: 4}}, true, nil)
	if a, b := p.Devices[0].Pools, p.Devices[1].Pools; a == nil || *a != (sample.Pools{All: 6, Tensors: 4, Split: 3, Stale: true}) || b != nil {
		t.Errorf("pools are %+v and %+v", a, b)
	}
	if a, b := p.Devices[0], p.Devices[1]; *a.Other != 200 || *a.Allocated != 700 || *a.Cached != 200 || *b.Other != 10 {
		t.Errorf("other than PyTorch has %d and %d", *a.Other, *b.Other)
	}
}

// TestNotInRegions reads what is in no region once while memory is paused, and again when tags change. What was read
// while they changed is dropped, and what was read before stays.
func TestNotInRegions(t *testing.T) {
	t.Parallel()
	tag, reads, during := state.Tag{Name: "kv", Bytes: 9, State: state.Active}, 0, int64(0)
	status := func() *state.Status { return &state.Status{Tags: []state.Tag{tag}} }
	p := &pausables{
		ask: func(context.Context, int) (*state.Status, error) { return status(), nil },
		read: func(context.Context, int) (map[int]*state.Outside, *state.Status) {
			reads++
			tag.Held += during
			return map[int]*state.Outside{0: {Pools: int64(reads)}}, status()
		},
	}
	var own pausing
	for i, c := range []struct {
		held, during, want int64
		stale              bool
	}{
		{9, 0, 0, true}, {0, 0, 1, false}, {0, 0, 1, false}, {4, 0, 2, false}, {9, 0, 2, true}, {0, 1, 2, true}, {1, 0, 4, false},
	} {
		tag.Held, during = c.held, c.during
		own.rest = time.Time{}
		if !p.look(t.Context(), 7, &own) {
			t.Fatal("no answer")
		}
		if got := own.outside[0]; got == nil && c.want > 0 || got != nil && got.Pools != c.want || own.due != c.stale {
			t.Errorf("look %d: %+v, stale %t, want that of read %d", i, got, own.due, c.want)
		}
	}
	const waits = 20 * time.Millisecond
	read := p.read
	p.read = func(ctx context.Context, pid int) (map[int]*state.Outside, *state.Status) {
		time.Sleep(waits) // as for a processor
		return read(ctx, pid)
	}
	own = pausing{}
	if p.look(t.Context(), 7, &own); own.outside == nil || !own.rest.Before(time.Now().Add(100*waits-waits)) {
		t.Error("the wait for a processor counts as one")
	}
	own = pausing{rest: time.Now().Add(time.Hour)}
	if p.look(t.Context(), 7, &own); own.outside != nil || own.rest.IsZero() {
		t.Error("it is read before its time")
	}
}

// TestOutsideBlocks divides segments in no block of a region.
func TestOutsideBlocks(t *testing.T) {
	t.Parallel()
	tensors := []cudaalloc.Block{{Size: 3, Allocated: true}, {Size: 5}}
	got := outsideBlocks([]cudaalloc.Segment{
		{Addr: 100, Size: 8, Blocks: tensors}, // of a region on another device
		{Addr: 200, Size: 8, Blocks: tensors}, // in a region
		{Addr: 250, Size: 7, Blocks: []cudaalloc.Block{{Size: 7}}}, {Addr: 300, Size: 16, Private: true}, {Addr: 400, Size: 32, Expandable: true}, {Addr: 200, Size: 64, Private: true, Device: 1, Blocks: tensors},
	}, []state.Block{{Device: 1, Addr: 100, Bytes: 8}, {Addr: 192, Bytes: 16}}, []state.Device{{Index: 0}, {Index: 1}})
	if want := (state.Outside{Tensors: 3, Cache: 12, Split: 5, Pools: 16, Expandable: 32}); *got[0] != want || got[1].Pools != 64 || got[1].PoolTensors != 3 {
		t.Errorf("%+v and %+v", got[0], got[1])
	}
}
