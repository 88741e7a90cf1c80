package sampler

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"strandline/host/gpu/nvsmi"
	"strandline/host/sampling/sample"
)

// fakeDevices answers with what a test sets, when the test lets it.
type fakeDevices struct {
	answers chan []sample.Device // nil is an error
}

func (*fakeDevices) Name() string { return "a fake" }
func (*fakeDevices) Close() error { return nil }

func (f *fakeDevices) Read(ctx context.Context) ([]sample.Device, error) {
	select {
	case d := <-f.answers:
		if d == nil {
			return nil, errors.New("the driver is gone")
		}
		return d, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestPollerHangs(t *testing.T) {
	source := &fakeDevices{answers: make(chan []sample.Device, 1)}
	p := poll(source, time.Nanosecond)
	defer p.close()
	if d, note := p.now(time.Hour); d != nil || note == "" {
		t.Errorf("before the first answer: %v, %q", d, note)
	}
	source.answers <- []sample.Device{{Index: 3}}
	<-p.asked
	p.first(t.Context())
	d, note := p.now(time.Hour)
	if len(d) != 1 || d[0].Index != 3 || note != "" {
		t.Errorf("after it: %v, %q", d, note)
	}
	for { // the next question is asked at some time, and not answered
		if d, note = p.now(0); note != "" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if d != nil || !strings.HasPrefix(note, "a fake has not answered for ") {
		t.Errorf("while it hangs: %v, %q", d, note)
	}
	source.answers <- nil
	for note != "the driver is gone" {
		_, note = p.now(time.Hour)
		time.Sleep(time.Millisecond)
	}
}

func TestFromSMI(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	got := devicesFromSMI(&nvsmi.Reading{
		Devices:   []nvsmi.Device{{Index: "4", UUID: "GPU-a", Used: n(70), Total: n(100)}, {Index: "5", UUID: "GPU-b"}, {Index: "6", UUID: "GPU-c", Total: n(100)}},
		Processes: []nvsmi.Use{{PID: 7, UUID: "GPU-a", Used: n(60)}, {PID: 8, UUID: "GPU-b"}},
	})
	if len(got) != 3 || got[0].Index != 4 || *got[0].Free != 30 || got[0].Processes[0].PID != 7 || got[0].Note != "" {
		t.Errorf("%+v", got)
	}
	if !got[1].Unified || got[1].Note == "" || got[1].Used != nil || got[1].Processes[0].Used != nil {
		t.Errorf("a device without memory of its own: %+v", got[1])
	}
	if got[2].Unified || got[2].Note == "" || got[2].Free != nil {
		t.Errorf("a device that does not report what is used: %+v", got[2])
	}
}
