//go:build linux

package ledger

import (
	"os"
	"testing"
	"time"

	"strandline/host/calls/event"
	"strandline/host/calls/polling"
	"strandline/host/code/symbolize"
	"strandline/host/proc/procfs"
)

// A late source delivers events some time after they happened, by a clock of its own.
type late struct {
	polling.Source
	by  time.Duration
	now time.Duration
}

func (l *late) Poll() (*event.Batch, error) {
	return &event.Batch{Until: uint64(max(l.now-l.by, 0))}, nil
}

// TestCheckWaits checks that what happened before the kernel's lists were read is
// entered before they are compared, however late the source is.
func TestCheckWaits(t *testing.T) {
	for _, by := range []time.Duration{0, time.Second, time.Minute} {
		names := symbolize.New()
		source := &late{by: by, now: 24 * time.Minute}
		clock := event.Clock{Now: func() uint64 { return uint64(source.now) }, Sleep: func(d time.Duration) { source.now += d }}
		tr, err := NewTrace(procfs.Process(os.Getpid()), source, names, clock)
		if err != nil {
			t.Fatal(err)
		}
		read := source.now
		if err := tr.Check(); err != nil {
			t.Fatal(err)
		}
		if want := max(by, settling); source.now-read < want {
			t.Errorf("events are %s late: waited for %s", by, source.now-read)
		}
		if uint64(read) > tr.polled {
			t.Errorf("events are %s late: those before the list are not entered", by)
		}
		names.Close()
	}
}
