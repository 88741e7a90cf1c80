package sampler

import (
	"fmt"
	"strconv"
	"testing"
	"time"

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
	split(&p, nil, []record.DeviceStats{{Device: 0, Allocated: 700, Reserved: 900}, {Device: 1, Allocated: 50, Reserved: 60}}, pausedOf(status), nil)
	if a, b := p.Devices[0], p.Devices[1]; *a.Other != 200 || *a.Allocated != 700 || *a.Cached != 200 || *b.Other != 10 {
		t.Errorf("other than PyTorch has %d and %d", *a.Other, *b.Other)
	}
}
