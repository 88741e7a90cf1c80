package processes

import (
	"testing"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/proc/footprint"
)

// A class of some MiB is not that of calls that hold much more, also where it cannot
// be read how much of that is resident.
func TestUseThatCannotBeRead(t *testing.T) {
	u := made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "libc.so.6:malloc", "app.py:f")
	u.Resident = -1
	h := host{looks: &footprint.Growth{Parts: []footprint.Part{{Class: finding.ArenaRetention, Bytes: 8 << 20}}}}
	if got := h.kindOf(u); got != finding.HeapLeak {
		t.Errorf("it is %s", got)
	}
}
