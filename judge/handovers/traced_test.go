package handovers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"strandline/host/store/recording"
)

func recorded(t *testing.T) *recording.Run {
	t.Helper()
	f, err := os.Open("testdata/traced.strandline")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := recording.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestTraced lays a trace of the loop of TestTidy, which has no log, beside the plan: its
// groups, phases and sizes are those of the tags.
func TestTraced(t *testing.T) {
	checks, err := Traced(phases(t), recorded(t), 0, nil)
	if err != nil || len(checks) != 1 {
		t.Fatal(err, checks)
	}
	c := checks[0]
	if c.Way != "staged" || !c.ByCalls || len(c.Findings) != 0 || c.Failed(true) {
		t.Errorf("%q, %+v", c.Way, c.Findings)
	}
	want := map[string]string{"group1": "rollout KV cache", "group2": "optimizer", "group3": "rollout weights"}
	for _, tag := range c.Tags {
		if !slices.Equal(tag.Components, []string{want[tag.Name]}) {
			t.Errorf("%+v", tag)
		}
	}
	for i, used := range []int64{576 * mib, 128 * mib, 192 * mib} {
		if p := &c.Phases[i]; p.Measured == nil || p.Measured.Times < 4 || p.Measured.Used != [2]int64{used, used} || p.Measured.Seconds < 1 {
			t.Errorf("%+v %+v", p, p.Measured)
		}
	}
	moved := map[string]int64{"group2": 128 * mib, "group1, group3": 576 * mib, "group3": 64 * mib, "group1": 512 * mib}
	if len(c.HandOvers) != 5 {
		t.Errorf("%+v", c.HandOvers)
	}
	for _, h := range c.HandOvers {
		if h.Moved != moved[h.Tag] || h.Seconds <= 0 {
			t.Errorf("%+v", h)
		}
	}
	if b := c.Behind; b == nil || len(b.Active) != 0 || b.Least.Used != 0 {
		t.Errorf("%+v", b)
	}
}

// TestTracedNames takes a group for the component that is named, and refuses what is not there.
func TestTracedNames(t *testing.T) {
	checks, err := Traced(phases(t), recorded(t), 0, map[string]string{"group2": "activations"})
	if err != nil || checks[0].Phases[1].Tags["group2"].High != 400*mib {
		t.Errorf("%v %+v", err, checks)
	}
	if _, err := Traced(phases(t), recorded(t), 0, map[string]string{"x": "activations"}); err == nil || !strings.Contains(err.Error(), "no tag x") {
		t.Error(err)
	}
	run := recorded(t)
	run.HandOvers = nil
	if _, err := Traced(phases(t), run, 0, nil); err == nil || !strings.Contains(err.Error(), "no memory in this recording left") {
		t.Error(err)
	}
}

// TestTracedLibraries names who takes more in each cycle, and what was never handed over.
func TestTracedLibraries(t *testing.T) {
	run := recorded(t)
	owner := run.HandOvers[0].Owner
	tr := tracing{groups: groupsOf(run.HandOvers), done: run.HandOvers}
	tr.courses()
	run.Samples = nil
	for i := range run.HandOvers {
		sample := recording.Sample{Seconds: run.HandOvers[i].Ended, GPU: []recording.GPUOwner{
			{Owner: "NCCL", Memory: "device", LiveBytes: int64(i+1) * 2 * mib, LiveCount: 1},
			{Owner: owner, Memory: "device", LiveBytes: total(tr.held[i+1]) + 32*mib, LiveCount: 1},
		}}
		run.Samples = append(run.Samples, sample)
	}
	checks, err := Traced(phases(t), run, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := checks[0]
	if len(c.Findings) != 1 || !c.Failed(false) || !strings.HasSuffix(c.Findings[0].Detail[0], "NCCL's") {
		t.Errorf("%+v", c.Findings)
	}
	kept := slices.ContainsFunc(c.Behind.Least.Libraries, func(l Library) bool { return l.Name == owner+", never handed over" && l.Bytes == 32*mib })
	if !kept {
		t.Errorf("%+v", c.Behind.Least.Libraries)
	}
}

// TestTracedExactly takes what was held at the hand-overs themselves, where samples are of
// other phases: what the trainer frees before it ends is of its phase alone.
func TestTracedExactly(t *testing.T) {
	run := recorded(t)
	owner := run.HandOvers[0].Owner
	tr := tracing{groups: groupsOf(run.HandOvers), done: run.HandOvers}
	tr.courses()
	for i := range run.HandOvers {
		h := &run.HandOvers[i]
		kept := recording.GPUOwner{Owner: "PyTorch's allocator", Memory: "device", LiveBytes: int64(i+1) * 2 * mib}
		h.After = []recording.GPUOwner{kept, {Owner: owner, Memory: "device", LiveBytes: total(tr.held[i+1])}}
		if kept.LiveBytes -= 2 * mib; h.Do == recording.Pause {
			h.Before = []recording.GPUOwner{kept, {Owner: owner, Memory: "device", LiveBytes: total(tr.held[i])}}
		}
	}
	for i := range run.Samples { // all of them see the trainer's activations
		run.Samples[i].GPU = nil
	}
	run.Samples[0].GPU = []recording.GPUOwner{{Owner: "PyTorch's allocator", Memory: "device", LiveBytes: 900 * mib, LiveCount: 1}}
	run.Samples = run.Samples[:1]
	checks, err := Traced(phases(t), run, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := checks[0]
	if len(c.Findings) != 1 || !c.Failed(false) || !strings.HasSuffix(c.Findings[0].Detail[0], "PyTorch's allocator's") {
		t.Errorf("%+v", c.Findings)
	}
	for i := range c.Phases {
		if used := c.Phases[i].Measured.Used; used[1] >= 900*mib || used[1] == used[0] {
			t.Errorf("%s used %v", c.Phases[i].Name, used)
		}
	}
}

// TestTracedLong compares the last hand-overs of many, in which a group is away at first.
func TestTracedLong(t *testing.T) {
	run := recorded(t)
	one := run.HandOvers[1:]
	run.HandOvers = nil
	const step = 100.0
	for i := range maxDone/4 + 1 {
		for k, do := range []recording.Act{recording.Pause, recording.Resume, recording.Pause, recording.Resume} {
			h := recording.HandOver{PID: one[0].PID, Do: do, Began: step*float64(i) + float64(10*k), Blocks: one[0].Blocks}
			h.Ended = h.Began + 0.1
			run.HandOvers = append(run.HandOvers, h)
		}
	}
	run.HandOvers = append(run.HandOvers, recording.HandOver{PID: one[0].PID, Do: recording.Pause, Began: 1e7, Ended: 1e7, Blocks: one[0].Blocks})
	checks, err := Traced(phases(t), run, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := checks[0]
	if !slices.ContainsFunc(c.Notes, func(n string) bool { return strings.HasPrefix(n, "of 10005 hand-overs, the last 10000") }) {
		t.Errorf("%q", c.Notes)
	}
	if c.Behind == nil || c.Behind.Least.Used != 0 || c.Findings == nil || len(c.Findings) > 0 {
		t.Errorf("%+v %+v", c.Behind, c.Findings)
	}
}
