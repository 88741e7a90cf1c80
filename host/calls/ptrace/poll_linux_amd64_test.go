package ptrace

import (
	"testing"

	"strandline/host/calls/event"
)

// An event whose call is served while its batch is polled comes with its stack in the
// next one, and is not before the end of the last.
func TestPollAmidACall(t *testing.T) {
	var tr Tracer
	tr.serve(event.Now())
	e := event.Event{Time: event.Now(), Op: event.Map, Sampled: true}
	for event.Now() <= e.Time { // the clock goes on before the batch is polled
	}
	first, err := tr.Poll()
	if err != nil {
		t.Fatal(err)
	}
	tr.enter(e, &event.Sample{Time: e.Time})
	tr.serve(0)
	second, err := tr.Poll()
	if err != nil {
		t.Fatal(err)
	}
	if first.Until > e.Time {
		t.Errorf("a batch up to %d lacks the event of %d", first.Until, e.Time)
	}
	if len(first.Samples) > 0 || len(second.Events) != 1 || len(second.Samples) != 1 || second.Until < first.Until {
		t.Errorf("got %+v and %+v", first, second)
	}
}

// A stack is not kept without its event.
func TestNoRoomForAnEvent(t *testing.T) {
	tr := Tracer{batch: event.Batch{Events: make([]event.Event, maxEvents)}}
	tr.enter(event.Event{Time: 1}, &event.Sample{Time: 1})
	if b, err := tr.Poll(); err != nil || b.Lost != 1 || len(b.Samples) > 0 {
		t.Errorf("%d lost, %d stacks, %v", b.Lost, len(b.Samples), err)
	}
}
