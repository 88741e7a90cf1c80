package rl

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/serving"
	"strandline/plan/training"
)

func rlPhases(t *testing.T, change func(r *Setup)) *Phases {
	t.Helper()
	tr, err := training.Trainer("fsdp")
	if err != nil {
		t.Fatal(err)
	}
	m := plantest.Model(t, "Qwen2.5-7B", "")
	tr.Model, tr.Shard, tr.Length = m, 8, 8192
	r := Setup{Training: tr, Rollout: serving.Setup{Model: m, Engine: engine.Release{Name: engine.SGLang}, GPU: plantest.GPU(t, "H200"), Length: 8192}}
	change(&r)
	p, err := r.Phases()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPhases(t *testing.T) {
	p := rlPhases(t, func(*Setup) {})
	all := p.Outcomes()
	if len(all) != 4 {
		t.Fatalf("%d ways of sharing", len(all))
	}
	resident, paused, staged := all[0], all[2], all[3]
	switch {
	case resident.Fraction == nil || staged.Fraction == nil || paused.Fraction == nil:
		t.Fatalf("no fraction fits: %+v", all)
	case !(*resident.Fraction < *paused.Fraction && *paused.Fraction < *staged.Fraction):
		t.Errorf("fractions %g, %g and %g do not rise", *resident.Fraction, *paused.Fraction, *staged.Fraction)
	case resident.Verdict == plan.Fits || staged.Verdict != plan.Fits:
		t.Errorf("with the default fraction: %s resident, %s staged", resident.Verdict, staged.Verdict)
	}
	// At the largest fraction every phase fits, and a little above it one does not.
	for i, o := range all {
		for _, c := range []struct {
			more int64
			fits bool
		}{{0, true}, {1 << 28, false}} {
			grown := *p
			grown.Components = append([]plan.Component(nil), p.Components...)
			for j := range grown.Components {
				if grown.Components[j].Name == p.Pool {
					grown.Components[j].Size = plan.Exactly(o.KV + c.more)
				}
			}
			if got := grown.Outcomes()[i].Verdict == plan.Fits; got != c.fits {
				t.Errorf("%s: with %d bytes more than the largest pool: fits is %v", o.Way, c.more, got)
			}
		}
	}
	if critic := rlPhases(t, func(r *Setup) { r.Critic, r.Reference = true, true }); critic.Outcomes()[0].Peaks[2].Size.Low <= resident.Peaks[2].Size.Low {
		t.Error("a critic takes nothing")
	}
}

func TestPhaseFile(t *testing.T) {
	p := rlPhases(t, func(*Setup) {})
	var file bytes.Buffer
	if err := p.YAML(&file); err != nil {
		t.Fatal(err)
	}
	again, err := ReadPhases(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatalf("%v\n%s", err, file.String())
	}
	a, b := p.Outcomes(), again.Outcomes()
	for i := range a {
		if math.Abs(*a[i].Fraction-*b[i].Fraction) > 0.0011 || a[i].Verdict != b[i].Verdict {
			t.Errorf("%s: %g and %s, after reading again %g and %s", a[i].Way, *a[i].Fraction, a[i].Verdict, *b[i].Fraction, b[i].Verdict)
		}
	}
	var twice bytes.Buffer
	if err := again.YAML(&twice); err != nil || !reflect.DeepEqual(twice.String(), file.String()) {
		t.Errorf("written again it is another file: %v", err)
	}
	for _, c := range []struct{ file, want string }{
		{"", "empty"},
		{"gpu: 80GiB\nways: []\n", "there are none"},
		{"gpu: much\n", `gpu: "much" is not a size`},
		{"gpu: 80GiB\ncolor: red\n", "color"},
		{"gpu: 80GiB\ncomponents: [{name: a, size: 2GiB..1GiB}]\n", "ends before it begins"},
		{"gpu: 80GiB\ncomponents: [{name: a, size: 1GiB}, {name: a, size: 1GiB}]\n", "twice"},
		{"gpu: 80GiB\ncomponents: [{name: a, size: 1GiB}]\nways: [{name: w, phases: [{name: p, holds: [a, a]}]}]\n", `holds "a" twice`},
		{"gpu: 80GiB\ncomponents: [{name: a, size: 1GiB}]\nways: [{name: w, phases: [{name: p}]}, {name: w, phases: [{name: p}]}]\n", `way "w" is twice there`},
		{"gpu: 80GiB\n---\ngpu: 1GiB\n", "more than one document"},
		{"gpu: 0\n", "no memory"},
		{"gpu: 80GiB\ngpus: 2\nsize: 3\n", "line 2: field gpus not found"},
		{"gpu: 80GiB\nways: [{name: w, phases: [{name: p, holds: [b]}]}]\n", `holds "b"`},
		{"gpu: 80GiB\nways: [{name: w, phases: []}]\n", "no phases"},
		{"a: &a [*a]\n", "a"},
	} {
		if _, err := ReadPhases(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.file, err, c.want)
		}
	}
}

func FuzzReadPhases(f *testing.F) {
	f.Add("gpu: 80GiB\ncomponents: [{name: a, size: 1GiB..2GiB}]\nways: [{name: w, phases: [{name: p, holds: [a]}]}]\nfraction: {sizes: a, of: 80GiB, less: 1GiB}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ReadPhases(strings.NewReader(text)); err == nil {
			p.Outcomes()
		}
	})
}

// TestHandOvers times what moves between phases.
func TestHandOvers(t *testing.T) {
	p := rlPhases(t, func(r *Setup) {})
	if p.Speeds.Host != defaultHost || p.Speeds.Disk != defaultDisk || p.Speeds.Link != 450e9 {
		t.Errorf("speeds %+v", p.Speeds)
	}
	out := p.Outcomes()
	resident, restarted, paused, staged := out[0], out[1], out[2], out[3]
	if len(resident.HandOvers) != 1 || resident.HandOvers[0].Phase != "weight sync" {
		t.Errorf("both resident: %+v", resident.HandOvers)
	}
	states := float64(p.size(trainerWeights).High+p.size(trainerOptimizer).High) / defaultHost
	if got := paused.Step[0]; got < 2*states || got > 2*states+1 { // there and back
		t.Errorf("pause and resume takes %g s, and the states %g each way", got, states)
	}
	if staged.Step != paused.Step {
		t.Errorf("staged takes %v, paused %v: the same is moved", staged.Step, paused.Step)
	}
	if got := restarted.Step[0]; got < 2*states+15+2*p.restart.checkpoint/defaultDisk {
		t.Errorf("a restart takes %g s", got)
	}
	sum := Seconds{}
	for _, h := range restarted.HandOvers {
		sum = sum.plus(h.Seconds[0], h.Seconds[1])
		if h.Seconds[0] > h.Seconds[1] || len(h.Moves) == 0 {
			t.Errorf("%+v", h)
		}
	}
	if sum != restarted.Step {
		t.Errorf("the sum is %v, not %v", restarted.Step, sum)
	}
	slow := rlPhases(t, func(r *Setup) { r.Speeds = Speeds{Host: defaultHost / 10, Disk: defaultDisk / 10} }).Outcomes()
	if slow[2].Step[0] < 9*paused.Step[0] || slow[1].Step[0] <= restarted.Step[0] {
		t.Errorf("slower links: %v after %v", slow[2].Step, paused.Step)
	}
	var file bytes.Buffer
	if err := p.YAML(&file); err != nil || !strings.Contains(file.String(), "restarts: true") {
		t.Errorf("%v: %s", err, file.String())
	}
	if again, err := ReadPhases(&file); err != nil || len(again.Outcomes()[1].HandOvers) != 0 {
		t.Errorf("phases of a file are timed: %v", err)
	}
}

// TestRollouts counts the sequences of an engine and what they need.
func TestRollouts(t *testing.T) {
	p := rlPhases(t, func(r *Setup) { r.Demand = Demand{Prompts: 100, Group: 8, Prompt: 1024, Response: 1024, Workers: 8} })
	n := p.Rollouts
	if n.Sequences != 100 || n.KV.High != 100*n.One || n.KV.Low >= n.KV.High || n.KV.Low < n.KV.High/2 {
		t.Errorf("%+v", n)
	}
	for _, o := range p.Outcomes() {
		if (o.AtOnce == nil) != (o.Fraction == nil) || o.AtOnce != nil && (*o.AtOnce > 100 || *o.AtOnce < 1) {
			t.Errorf("%s: %v at once", o.Way, o.AtOnce)
		}
	}
	if alone := rlPhases(t, func(r *Setup) { r.Demand = Demand{Prompts: 10, Prompt: 1024, Response: 1024} }).Rollouts; alone.KV.Low != alone.KV.High || alone.Sequences != 10 {
		t.Errorf("without groups: %+v", alone)
	}
	if rlPhases(t, func(*Setup) {}).Rollouts != nil {
		t.Error("rollouts without prompts")
	}
}
