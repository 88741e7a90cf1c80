package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"strandline/face/api/page"
	"strandline/face/report"
	"strandline/torch/replay"
)

// run is an answer to simulate, taken apart.
type run struct {
	page.Outcome
	steps []replay.Step
	looks []replay.Sample
}

func simulated(t *testing.T, e *Engine, what string) (out run) {
	t.Helper()
	b := ask(t, e, what, 200)
	if string(b[:4]) != "SLC1" {
		t.Fatalf("%s begins with %q", what, b[:4])
	}
	le := binary.LittleEndian
	s, n, text := int(le.Uint32(b[4:])), int(le.Uint32(b[8:])), int(le.Uint32(b[12:]))
	at := 16
	events := func(n int) (list []int) {
		for i := range n {
			list = append(list, int(int32(le.Uint32(b[at+4*i:]))))
		}
		at = (at + 4*n + 7) / 8 * 8
		return list
	}
	values := func(n int) (list []int64) {
		for i := range n {
			list = append(list, int64(math.Float64frombits(le.Uint64(b[at+8*i:]))))
		}
		at += 8 * n
		return list
	}
	event, reserved := events(s), values(s)
	for i := range event {
		out.steps = append(out.steps, replay.Step{Event: event[i], Reserved: reserved[i]})
	}
	event = events(n)
	columns := [4][]int64{values(n), values(n), values(n), values(n)}
	for i := range event {
		out.looks = append(out.looks, replay.Sample{Event: event[i], Reserved: columns[0][i], Allocated: columns[1][i], Active: columns[2][i], Stranded: columns[3][i]})
	}
	if len(b) != at+text {
		t.Fatalf("%s: %d bytes, want %d", what, len(b), at+text)
	}
	if err := json.Unmarshal(b[at:], &out.Outcome); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSameAsSimulate checks that runs are as `simulate --json` states them, and that
// the course of memory agrees.
func TestSameAsSimulate(t *testing.T) {
	under := func(conf string, change func(*replay.Result, *replay.Scenario)) func(*replay.Result) replay.Scenario {
		return func(x *replay.Result) (sc replay.Scenario) {
			set, err := replay.ParseSettings(conf, x.Version)
			if err != nil {
				t.Fatal(err)
			}
			if change != nil {
				change(x, &sc)
			}
			return x.Under(sc, set)
		}
	}
	for _, c := range []struct {
		file, asked string
		scenario    func(*replay.Result) replay.Scenario
	}{
		{"varied-lengths/default.pickle.gz", "set=expandable_segments:True", under("expandable_segments:True", nil)},
		{"varied-lengths/default.pickle.gz", "set=max_split_size_mb:128&capacity=4GiB&fraction=0.5",
			under("max_split_size_mb:128", func(_ *replay.Result, sc *replay.Scenario) { sc.Capacity, sc.Limit = 4<<30, 2<<30 })},
		{"varied-lengths/default.pickle.gz", "empty=every%3D1step",
			under("", func(x *replay.Result, sc *replay.Scenario) { sc.Empty, _, _ = x.EmptyAt("every=1step") })},
		{"out-of-memory/oom.pickle", "recorded=1", (*replay.Result).Recorded},
		{"out-of-memory/oom.pickle", "capacity=3.5GiB",
			under("", func(_ *replay.Result, sc *replay.Scenario) { sc.Capacity = 7 << 29 })},
	} {
		e := example(t, c.file)
		name := c.file + " " + c.asked
		got := simulated(t, e, "simulate?n=300&"+c.asked)
		x := e.files[0].devices[0].replayed.Load().exact
		sc := c.scenario(x)
		sc.Samples = replay.Samples
		o := x.WhatIf(sc)
		doc := report.NewSimulation(c.file, "", false)
		doc.AddReplay(x)
		doc.AddRun(replay.Choice{}, []report.Run{{On: x, Scenario: &sc, Outcome: &o}}, nil)
		want := doc.Runs[0].Devices[0]
		if got.Reserved != want.Reserved || got.Allocated != want.Allocated || got.Stranded != want.Stranded || got.Calls != want.Calls ||
			got.OOMs != want.OOMs || got.Retries != want.Retries || got.CostMS != want.CostMS || (got.OOM != nil) != (want.OOM != nil) {
			t.Errorf("%s: %+v, want %+v", name, got.Outcome, want)
		}
		if want.OOM != nil && (got.OOM.Event != want.OOM.Event || got.OOM.Bytes != want.OOM.Bytes || got.OOM.Site.File != *want.OOM.Site.File) {
			t.Errorf("%s: out of memory %+v, want %+v", name, got.OOM, want.OOM)
		}
		most := int64(0)
		for _, s := range got.steps {
			most = max(most, s.Reserved)
		}
		if most != got.Reserved {
			t.Errorf("%s: the curve reaches %d, the peak is %d", name, most, got.Reserved)
		}
		stranded := int64(0)
		for _, l := range got.looks {
			stranded = max(stranded, l.Stranded)
		}
		if stranded < got.Stranded {
			t.Errorf("%s: the course of what is stranded reaches %d, and it is %d", name, stranded, got.Stranded)
		}
		asked := min(300, x.Trace.Len())
		if n := len(got.looks); n < asked || n > asked+1 || got.looks[0].Event != 0 || got.looks[n-1].Event != x.Trace.Len()-1 {
			t.Errorf("%s: looked at %d events", name, n)
		}
		for i, s := 0, 0; i < len(got.looks); i++ {
			l := got.looks[i]
			for s+1 < len(got.steps) && got.steps[s+1].Event <= l.Event {
				s++
			}
			if got.steps[s].Reserved != l.Reserved || l.Stranded > l.Reserved-l.Active || l.Active < l.Allocated {
				t.Fatalf("%s: %+v beside the step %+v", name, l, got.steps[s])
			}
		}
	}
}

// TestRecordedRun checks that the curve of the recorded run is the recorded one.
func TestRecordedRun(t *testing.T) {
	e := example(t, "out-of-memory/oom.pickle")
	h := e.files[0].devices[0].requested.h
	for _, s := range simulated(t, e, "simulate?recorded=1").steps {
		if s.Event >= 0 && h.Reserved(s.Event) > s.Reserved { // a request may take several events, the run records its end
			t.Errorf("after event %d %d bytes are reserved, recorded are %d", s.Event, s.Reserved, h.Reserved(s.Event))
		}
	}
}

func TestReplay(t *testing.T) {
	e := example(t, "out-of-memory/oom.pickle")
	doc := read[page.Replay](t, e, "replay")
	if !doc.Exact || doc.Lost || doc.Difference != nil || doc.Calls.Recorded == 0 || doc.Calls != (page.Reproduced{Recorded: doc.Calls.Recorded, Reproduced: doc.Calls.Recorded}) || doc.Capacity == nil {
		t.Errorf("%+v", doc)
	}
	if fmt.Sprint(doc.Try) != "[expandable_segments:True]" {
		t.Errorf("to be tried: %v", doc.Try)
	}
	runs := read[map[string][]page.Outcome](t, e, "search")["runs"]
	own := slices.IndexFunc(runs, func(r page.Outcome) bool { return r.Settings == "" })
	if len(runs) < 10 || runs[0].Settings != "expandable_segments:True" || runs[0].OOM != nil || *runs[0].Capacity != *doc.Capacity || own < 0 || runs[own].OOM == nil {
		t.Errorf("%d runs, the best is %+v; the file's own is number %d", len(runs), runs[0], own)
	}
	x := e.files[0].devices[0].replayed.Load().exact
	set, _ := replay.ParseSettings("expandable_segments:True", x.Version)
	want, err := x.Smallest(t.Context(), replay.Scenario{Settings: set}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if fits := read[map[string]int64](t, e, "fits?set=expandable_segments:True"); fits["smallest_capacity_bytes"] != want || want == 0 {
		t.Errorf("fits in %v, want %d", fits, want)
	}
}

func TestRunsRefused(t *testing.T) {
	e := example(t, "varied-lengths/default.pickle.gz")
	for what, want := range map[string]string{
		"simulate?set=max_split_size_mb:1":     "write a number of MiB above 20",
		"simulate?set=backend:cudaMallocAsync": "the driver manages memory then",
		"simulate?capacity=lots":               "capacity: size",
		"simulate?capacity=0":                  "more than 0 bytes",
		"simulate?fraction=0.5":                "also give the capacity",
		"simulate?capacity=4GiB&fraction=2":    "not a share above 0",
		"simulate?empty=never":                 "is not a policy",
		"simulate?empty=every%3D9999999events": "never reached",
		"simulate?n=999999":                    "n is",
		"simulate?from=9&to=5":                 "to is",
		"fits?sets=":                           "unknown parameters: sets",
	} {
		if body := string(ask(t, e, what, 400)); !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %q", what, body, want)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if a := e.Ask(gone, "simulate", url.Values{"set": {"expandable_segments:True"}}); a.Status == 200 {
		t.Errorf("a run that nobody waits for went on: %s", a.Body)
	}
}
