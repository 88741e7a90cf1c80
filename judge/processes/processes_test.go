package processes

import (
	"testing"

	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
)

// A finding names the process that holds most.
func TestProcessOfFinding(t *testing.T) {
	processes := []ledger.Process{{PID: 7, Name: "server"}, {PID: 9, Name: "worker"}, {PID: 11, Name: "worker", Role: "rank 2"}}
	for _, c := range []struct {
		processes []ledger.Process
		shares    []ledger.Share
		want      string
	}{
		{processes, []ledger.Share{{PID: 7, Live: 1 << 20}, {PID: 9, Live: 63 << 20}}, "pid 9 (worker)"},
		{processes, []ledger.Share{{PID: 11, Live: 24 << 20}, {PID: 9, Live: 40 << 20}}, "pid 9 (worker) and 1 other"},
		{processes, []ledger.Share{{PID: 11, Live: 64 << 20}}, "pid 11 (worker, rank 2)"},
		{processes, nil, ""},
		{processes[:1], []ledger.Share{{PID: 7, Live: 64 << 20}}, "pid 7 (server)"},
		{processes[2:], nil, "pid 11 (worker, rank 2)"},
	} {
		u := made(event.Map, ledger.Anonymous, 1<<20, "main:grow")
		u.Shares = c.shares
		s := traceOf(u)
		s.Processes = c.processes
		if found := Host(s, nil, nil); len(found) != 1 || found[0].Process != c.want {
			t.Errorf("%+v: %+v, want process %q", c.shares, found, c.want)
		}
	}
}

// What two stacks of one place mapped is one finding.
func TestPlacesThatLookAlike(t *testing.T) {
	a, b := made(event.Map, ledger.Anonymous, 1<<20, "main:grow"), made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "main:grow")
	if found := Host(traceOf(a, b), nil, nil); len(found) != 1 || *found[0].Bytes != a.Live+b.Live {
		t.Errorf("got %+v", found)
	}
}
