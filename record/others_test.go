package record

import (
	"testing"
	"time"
)

func TestOthers(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	process := func(pid int, uuid string, ended bool, dumps ...Dump) Process {
		return Process{PID: pid, Since: start, Devices: []Device{{Index: 0, UUID: uuid}}, Ended: ended, Dumps: dumps}
	}
	dump := func(seconds int, bytes int64) Dump {
		return Dump{Time: at(seconds), Devices: []Usage{{Device: 0, Reserved: bytes}}}
	}
	m := Manifest{
		Processes: []Process{
			process(1, "a", false, dump(1, 100)),
			process(2, "a", false, dump(1, 10), dump(5, 20), dump(15, 90)),
			process(3, "b", false, dump(5, 30)),
			process(4, "a", true, dump(5, 40)),
			process(5, "a", false, dump(20, 50)),
		},
		Readings: []Reading{
			{at(12), []Use{{1, "GPU-a", 7}, {2, "GPU-a", 25}, {9, "GPU-a", 60}, {8, "GPU-b", 70}}},
			{at(900), []Use{{7, "GPU-a", 80}}},
		},
	}
	got := m.Others(&m.Processes[0], OOM{Time: at(10), Device: 0})
	want := []struct {
		pid      int
		bytes    int64
		recorded bool
	}{{9, 60, false}, {5, 50, true}, {2, 25, true}}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, w := range want {
		if g := got[i]; g.PID != w.pid || g.Bytes != w.bytes || (g.Process != nil) != w.recorded {
			t.Errorf("holder %d is %+v, want %+v", i, g, w)
		}
	}
}
