package sampler

import (
	"context"
	"fmt"
	"testing"
	"time"

	"strandline/host/sampling/sample"
	"strandline/record"
)

// BenchmarkSample samples 200 processes, of which each holds memory of one of 8 devices.
// A sample a second takes less than a hundredth of a core if one takes less than 10 ms.
func BenchmarkSample(b *testing.B) {
	tr := newTree(b)
	devices := steady{}
	n := func(n int64) *int64 { return &n }
	for d := range 8 {
		devices = append(devices, sample.Device{Index: d, UUID: fmt.Sprint("GPU-", d), Used: n(70 << 30), Free: n(10 << 30), Total: n(80 << 30)})
	}
	for pid := 1000; pid < 1200; pid++ {
		tr.process(pid, 1, 100, "python3", 1<<20)
		d := &devices[pid%8]
		d.Processes = append(d.Processes, sample.Holding{PID: pid, Used: n(2 << 30)})
	}
	s, err := New(Options{root: tr.root, Interval: time.Second, Devices: devices, dialTorch: func(context.Context, int) (*record.Control, error) { return nil, record.ErrNotRecorded }})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		out, err := s.Sample(b.Context())
		if err != nil || len(out.Processes) != 200 {
			b.Fatalf("%d processes, %v", len(out.Processes), err)
		}
	}
}
