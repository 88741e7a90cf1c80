//go:build linux

package polling_test

import (
	"testing"

	"go.uber.org/goleak"

	"strandline/host/calls/event"
	"strandline/host/calls/polling"
	"strandline/internal/test/eventtest"
	"strandline/internal/test/live"
)

func TestMain(m *testing.M) {
	eventtest.Main()
	goleak.VerifyTestMain(m)
}

// TestSource holds polling to what every source has to do.
func TestSource(t *testing.T) {
	live.Traces(t)
	eventtest.Run(t, func(t *testing.T, command []string) (event.Source, *eventtest.Program) {
		return polling.Source{}, eventtest.Launch(t, command)
	})
}
