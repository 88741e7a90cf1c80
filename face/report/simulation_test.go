package report

import (
	"slices"
	"strings"
	"testing"

	"strandline/torch/allocator"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// Each run states which of its rules were not checked against a recording of the
// release; the text states it once for all of them.
func TestUntestedRules(t *testing.T) {
	s, err := snapshot.Open("../../torch/replay/testdata/w01_train.late.step2.pickle.zst", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := replay.NewRecording(timeline.New(s, s.Devices()[0]))
	r.Version = 204
	x := r.Replay()
	d := NewSimulation("file", "2.4", false)
	d.AddReplay(x)
	for _, conf := range []string{"expandable_segments:True", "max_split_size_mb:64,expandable_segments:True", ""} {
		set, err := allocator.ParseSettings(conf, r.Version)
		if err != nil {
			t.Fatal(err)
		}
		sc := replay.Scenario{Settings: set}
		o := x.WhatIf(sc)
		d.AddRun(replay.Choice{Conf: conf}, []Run{{On: x, Scenario: &sc, Outcome: &o}}, nil)
	}
	for i, want := range []string{
		"unverified but for PyTorch 2.6 to 2.15: expandable_segments",
		"unverified but for PyTorch 2.6 to 2.15: expandable_segments, max_split_size_mb", "",
	} {
		if notes := d.Runs[i].Notes; want != "" && !slices.Contains(notes, want) || want == "" && strings.Contains(strings.Join(notes, ""), "unverified") {
			t.Errorf("run %d: %q, want %q", i, notes, want)
		}
	}
	var b strings.Builder
	d.Text(&b, Style{Verbose: true})
	if text := b.String(); strings.Count(text, "unverified") != 1 || !strings.Contains(text, "note: unverified but for PyTorch 2.6 to 2.15: expandable_segments, max_split_size_mb") {
		t.Errorf("%s", text)
	}
}

// Memory from before the recording shows nothing about settings: where it makes
// up the peak, none is called as good as another.
func TestHeldFromBefore(t *testing.T) {
	s, err := snapshot.Open("../../torch/replay/testdata/w01_train.late.step2.pickle.zst", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := replay.NewRecording(timeline.New(s, s.Devices()[0])).Replay()
	for _, c := range []struct {
		whole            bool
		sentence, advice string
	}{
		{true, "With the defaults this run peaks at ", "Keep the file's"},
		{false, "With the defaults this run keeps the ", "The recording does not show"},
	} {
		d := NewSimulation("file", "2.6", false)
		d.AddReplay(x)
		if c.whole {
			d.Devices[0].Held = 0
		}
		sc := x.Under(replay.Scenario{}, x.Settings)
		o := x.WhatIf(sc)
		d.AddRun(replay.Choice{}, []Run{{On: x, Scenario: &sc, Outcome: &o}}, nil)
		if got := d.sentence(&d.Runs[0], &d.Devices[0]); !strings.HasPrefix(got, c.sentence) {
			t.Errorf("whole %v: %s", c.whole, got)
		}
		if d.Recommend(); !strings.HasPrefix(d.Best.Text, c.advice) {
			t.Errorf("whole %v: %s", c.whole, d.Best.Text)
		}
	}
}
