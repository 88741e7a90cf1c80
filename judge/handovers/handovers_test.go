package handovers

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/pausable/history"
	"strandline/pausable/state"
	"strandline/plan/rl"
)

func read(t *testing.T, name string) *history.Log {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	log, err := history.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func phases(t *testing.T) *rl.Phases {
	t.Helper()
	f, err := os.Open("../../examples/pausable/phases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := rl.ReadPhases(f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const mib = 1 << 20

// TestTidy lays a loop that gives all back beside its plan.
func TestTidy(t *testing.T) {
	c, err := New(phases(t), read(t, "testdata/tidy.pausable"), 0, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Way != "staged" || c.Total != 4<<30 || len(c.Findings) != 0 || c.Failed(true) {
		t.Errorf("%q, %d, %+v", c.Way, c.Total, c.Findings)
	}
	for i, want := range []struct {
		name string
		used int64
		tags map[string]int64
	}{
		{"rollout", 576 * mib, map[string]int64{"weights": 64 * mib, "kv_cache": 512 * mib}},
		{"update", 128 * mib, map[string]int64{"trainer": 128 * mib}},
		{"sync", 192 * mib, map[string]int64{"trainer": 128 * mib, "weights": 64 * mib}},
	} {
		p := &c.Phases[i]
		if p.Name != want.name || p.Measured == nil || p.Measured.Used != [2]int64{want.used, want.used} || p.Excess() != 0 {
			t.Errorf("%+v %+v", p, p.Measured)
			continue
		}
		for tag, n := range want.tags {
			if p.Measured.Most.Tags[tag] != n || p.Tags[tag].High != n {
				t.Errorf("%s: tag %s has %d, planned %v, not %d", p.Name, tag, p.Measured.Most.Tags[tag], p.Tags[tag], n)
			}
		}
	}
	if len(c.Unplanned) != 2 || len(c.HandOvers) != 6 {
		t.Errorf("%+v\n%+v", c.Unplanned, c.HandOvers)
	}
	for _, h := range c.HandOvers {
		want := map[string]int64{"trainer": 128 * mib, "weights": 64 * mib, "kv_cache": 0}[h.Tag]
		if h.Bytes != want || h.Seconds <= 0 || h.Longest < h.Seconds || math.Abs(h.Rate()*h.Seconds-float64(want)) > 1 {
			t.Errorf("%+v", h)
		}
	}
	if b := c.Behind; b == nil || len(b.Active) != 0 || b.Least.Used != 0 || b.Planned.High != 250*mib {
		t.Errorf("%+v", b)
	}
}

// TestUntidy finds a pool of a graph, the trainer's cache, and what each cycle leaves.
func TestUntidy(t *testing.T) {
	c, err := New(phases(t), read(t, "../../examples/pausable/untidy.pausable"), 0, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := c.Behind
	if b == nil || *b.Least.Pools != 96*mib || b.Least.Rest != 300*mib || b.Least.Used != 398*mib {
		t.Fatalf("%+v", b)
	}
	var titles []string
	for i := range c.Findings {
		titles = append(titles, c.Findings[i].Title)
	}
	want := []string{
		"each cycle leaves more on device 0: 144 MiB in 6 cycles",
		"218 MiB of device 0 is in PyTorch's cache, unused by any tensor, when memory is taken again",
		"96 MiB of device 0 is in pools of CUDA graphs or of the program, in no region, and is not released",
	}
	if !slices.Equal(titles, want) || c.Findings[0].Kind != finding.Leak || !strings.Contains(c.Findings[0].Detail[0], "144 MiB of it: tensors in no region") {
		t.Errorf("%q %q", titles, c.Findings[0].Detail)
	}
	if !c.Failed(false) || c.Phases[0].Excess() == 0 {
		t.Error("it passes")
	}
}

// TestNames gives tags their components, and refuses what is in neither.
func TestNames(t *testing.T) {
	log, p := read(t, "testdata/tidy.pausable"), phases(t)
	c, err := New(p, log, 0, map[string]string{"trainer": "activations"}, nil)
	if err != nil || c.Phases[1].Tags["trainer"].High != 400*mib {
		t.Errorf("%v %+v", err, c)
	}
	for want, names := range map[string]map[string]string{
		`the plan has no component "x" for tag trainer`: {"trainer": "x"},
		"the log has no tag x":                          {"x": "activations"},
	} {
		if _, err := New(p, log, 0, names, nil); err == nil || err.Error() != want {
			t.Error(err)
		}
	}
	if _, err := New(p, log, 1, nil, nil); err == nil || err.Error() != "the log has no figures of device 1" {
		t.Error(err)
	}
	if _, err := New(p, &history.Log{PID: 1}, 0, nil, nil); err == nil {
		t.Error("a log without steps is laid beside a plan")
	}
}

// TestUnknownTags does not take a time in which everything is paused for each phase where no
// tag is known.
func TestUnknownTags(t *testing.T) {
	log := read(t, "testdata/tidy.pausable")
	for i := range log.Steps {
		for _, s := range []*state.Status{log.Steps[i].Before, log.Steps[i].After} {
			for k := range s.Tags {
				s.Tags[k].Name = strings.NewReplacer("weights", "x", "kv_cache", "y", "trainer", "z").Replace(s.Tags[k].Name)
			}
		}
	}
	c, err := New(phases(t), log, 0, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := slices.ContainsFunc(c.Phases, func(p Phase) bool { return p.Measured != nil })
	noted := slices.ContainsFunc(c.Notes, func(n string) bool {
		return strings.HasPrefix(n, "no component of the plan is known for ") && strings.Contains(n, "y")
	})
	if seen || !noted || len(c.Unplanned) < 3 || c.Failed(true) {
		t.Errorf("%+v, %q, %+v", c.Phases, c.Notes, c.Unplanned)
	}
	if c, err = New(phases(t), log, 0, map[string]string{"z": "optimizer"}, nil); err != nil || c.Phases[0].Measured == nil && c.Phases[1].Measured == nil {
		t.Errorf("%v, %+v", err, c)
	}
}
