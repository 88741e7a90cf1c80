package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/host/code/cpython"
	"strandline/host/proc/footprint"
	"strandline/host/proc/glibcheap"
	"strandline/host/proc/procfs"
	"strandline/host/store/recording"
)

// Looks are spread over a short trace, and at first two seconds apart in a long one.
func TestClock(t *testing.T) {
	began := time.Unix(100, 0)
	for duration, apart := range map[time.Duration]time.Duration{5 * time.Second: time.Second, time.Hour: 2 * time.Second} {
		c := newClock(began, duration)
		if !c.look.Equal(began.Add(apart)) || c.betweenLooks != apart || !c.checkpoint.Equal(began) {
			t.Errorf("%v: %+v", duration, c)
		}
		for late, next := range map[time.Duration]time.Duration{0: 1, time.Millisecond: 1, 9*c.betweenCheckpoints + 1: 10} {
			c.checkpoint = began
			if c.afterCheckpoint(began.Add(late)); !c.checkpoint.Equal(began.Add(next * c.betweenCheckpoints)) {
				t.Errorf("%v late: the next one is %v after", late, c.checkpoint.Sub(began))
			}
		}
	}
}

// Looks shortly before the end of a process are forgotten, if enough are left.
func TestWithoutLastLooks(t *testing.T) {
	at := func(seconds ...int) (out []*footprint.Observation) {
		for _, s := range seconds {
			out = append(out, &footprint.Observation{At: time.Duration(s) * time.Second})
		}
		return out
	}
	inUse := func(looks []*footprint.Observation, bytes ...uint64) []*footprint.Observation {
		for i, n := range bytes {
			looks[i].Arenas = []glibcheap.Arena{{System: 100, Free: 100 - n}}
		}
		return looks
	}
	for _, c := range []struct {
		looks []*footprint.Observation
		ended time.Duration // seconds
		want  int
	}{
		{at(0, 2, 4, 6, 8, 9), 10, 4},
		{at(0, 8, 9), 10, 3},
		{at(0, 2, 4, 6), 10, 4},
		{inUse(at(0, 30, 60, 90, 94), 10, 40, 70, 90, 20), 100, 4}, // a slow end
		{inUse(at(0, 30, 60, 90, 94), 10, 40, 70, 90, 94), 100, 5},
		{inUse(at(0, 20, 40, 60, 80), 10, 40, 70, 90, 20), 100, 5}, // it goes on after it
	} {
		w := &Session{looks: map[procfs.Process][]*footprint.Observation{1: c.looks}}
		w.withoutLastLooks(c.ended * time.Second)
		if got := len(w.looks[1]); got != c.want {
			t.Errorf("%d of %d looks before the end at %d s, want %d", got, len(c.looks), c.ended, c.want)
		}
	}
}

// Growth within the bound of a cache of prompts is doubted, and the bound is named.
func TestDoubtCaches(t *testing.T) {
	const gone = 1 << 26 // no process has such a number
	for command, want := range map[string]finding.Severity{
		"llama-server -m a.gguf":                finding.Warning,
		"llama-server -m a.gguf --cache-ram 16": finding.Problem,
		"python server.py":                      finding.Problem,
	} {
		w := &Session{sums: &ledger.Sums{Processes: []ledger.Process{{PID: 1, Command: "sh"}, {PID: gone, Command: command}}}}
		found := []finding.Finding{{Kind: finding.HeapLeak, Severity: finding.Problem, Process: fmt.Sprintf("pid %d (server)", gone), Bytes: finding.Int(100 << 20)}}
		w.doubtCaches(found)
		if f := &found[0]; f.Severity != want || strings.Contains(strings.Join(f.Detail, " "), "--cache-ram") != (want == finding.Warning) {
			t.Errorf("%s: %s, %q", command, f.Severity, f.Detail)
		}
	}
}

// Of many looks every second one is kept, the first among them.
func TestThinLooks(t *testing.T) {
	looks := func(n int) (out []*footprint.Observation) {
		for i := range n {
			out = append(out, &footprint.Observation{At: time.Duration(i)})
		}
		return out
	}
	w := &Session{trace: &ledger.Trace{Root: 1}, looks: map[procfs.Process][]*footprint.Observation{1: looks(maxLooks - 1), 2: looks(maxLooks)}}
	if w.thinLooks() || len(w.looks[1]) != maxLooks-1 {
		t.Errorf("the first process has %d looks", len(w.looks[1]))
	}
	var at []time.Duration
	for _, o := range w.looks[2] {
		at = append(at, o.At)
	}
	if !slices.Equal(at, []time.Duration{0, 2, 4}) {
		t.Errorf("those of a child are of %v", at)
	}
	w.looks[1] = looks(maxLooks)
	if !w.thinLooks() {
		t.Error("it does not say that looks of the first process are dropped")
	}
}

// A child is judged in place of the first process if it made most of the growth and was
// looked at often enough.
func TestSubject(t *testing.T) {
	for _, c := range []struct {
		first, child, all int64 // MiB
		looks             int
		want              procfs.Process
	}{
		{0, 10, 10, 3, 2},
		{0, 10, 10, 2, 1},  // too few looks
		{0, 1, 1, 3, 1},    // too little
		{20, 10, 30, 3, 1}, // the first grew more
		{4, 10, 20, 3, 1},  // others grew, too
	} {
		const mib = 1 << 20
		w := &Session{
			trace: &ledger.Trace{Root: 1}, looks: map[procfs.Process][]*footprint.Observation{2: make([]*footprint.Observation, c.looks)},
			sums: &ledger.Sums{Growth: c.all * mib, Processes: []ledger.Process{{PID: 1, Growth: c.first * mib}, {PID: 2, Growth: c.child * mib}}},
		}
		if got := w.subject(); got != c.want {
			t.Errorf("%+v: process %d", c, got)
		}
	}
	if _, ok := (&Session{}).growing(); ok {
		t.Error("a child grows before there are sums")
	}
}

// What was taken while the driver was asked is told apart from what it counted.
func TestCountOfDevice(t *testing.T) {
	held := recording.GPUState{Pieces: []recording.GPUPiece{{Bytes: 100}}}
	w := &gpuWatch{used: 5000, held: &held}
	if s := w.state(); s.NotCounted == "" || s.Held() != 100 {
		t.Errorf("before it is asked: %+v", s)
	}
	a := w.count(t.Context(), held)
	if a.why != nil || *a.state.Count.Devices[0].Used != 5000 || !a.state.Count.Given {
		t.Fatalf("%+v", a)
	}
	w.learn(a, 130)
	if s := w.state(); s.Meanwhile != 30 || s.NotCounted != "" {
		t.Errorf("%+v", s)
	}
	w.learn(a, 90)
	if s := w.state(); s.Meanwhile != 0 {
		t.Errorf("%d bytes were taken, where some were freed", s.Meanwhile)
	}
}

// TestUnreadContainers says that the containers of a Python are not read.
func TestUnreadContainers(t *testing.T) {
	w := &Session{trace: &ledger.Trace{Root: 1}, containers: map[procfs.Process]*cpython.History{1: {Unread: "this build of CPython 3.14"}}}
	found := []finding.Finding{{Kind: finding.PythonObjects, Process: "pid 1"}, {Kind: finding.HeapLeak, Process: "pid 1"}, {Kind: finding.PythonObjects, Process: "pid 2"}}
	w.nameContainers(found)
	for i, want := range []int{1, 0, 0} {
		if len(found[i].Detail) != want {
			t.Errorf("%d: %q", i, found[i].Detail)
		}
	}
}
