package processes

import (
	"strings"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/gpu/gpudriver"
	"strandline/host/store/recording"
)

// Memory from the driver is judged by when it came.
func TestDriverOverTime(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name     string
		steps    []int64 // MiB in each second
		severity finding.Severity
		title    string // "" for no finding
		detail   string
	}{
		{"a leak", []int64{0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, finding.Problem, "took 33 MiB of device memory from the driver in 33 pieces and returned nothing", "it grows by 180 MiB a minute; at this rate, the 6 GiB that remain of the device's 10 GiB last about 34 min 8 s"},
		{"a model that is loaded", []int64{0, 40, 40, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0}, finding.Info, "took 120 MiB of device memory from the driver in the first 3 s of the trace, and hardly anything since", ""},
		{"a pause at the end", []int64{0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0}, finding.Warning, "in the first 22 s of the trace", "hardly anything came in the last 2 s"},
		{"a buffer", []int64{0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "", "", ""},
	} {
		u := over(made(event.Op(64), ledger.Anonymous, mib, "libtorch_cuda.so:f", "app.py:load"), c.steps...)
		s := &gpudriver.Sums{Uses: []gpudriver.Use{{Use: *u, Memory: event.Device, Owner: "torch"}}}
		s.Bytes[event.Device] = u.Live
		for i := range c.steps {
			s.Checkpoints = append(s.Checkpoints, uint64(i)*uint64(time.Second))
		}
		devices := []recording.GPUDevice{{Names: []string{"0"}, Used: new(int64(4 << 30)), Total: new(int64(10 << 30))}}
		found := Driver(s, nil, devices)
		if c.title == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v", c.name, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Severity != c.severity || !strings.Contains(found[0].Title, c.title) || !strings.Contains(strings.Join(found[0].Detail, "; "), c.detail) {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}

// TestCached checks when the segments of PyTorch are a cache.
func TestCached(t *testing.T) {
	for _, c := range []struct {
		name    string
		tensors []int64
		want    finding.Severity
	}{
		{"not known", nil, finding.Problem},
		{"too few looks", []int64{100, 100, 100}, finding.Problem},
		{"tensors that come and go", []int64{100, 400, 100, 100, 500, 100, 900, 100}, finding.Warning},
		{"tensors that stay", []int64{100, 200, 300, 400, 500, 600, 700, 800}, finding.Problem},
	} {
		f := finding.Finding{Kind: finding.DriverLeak, Severity: finding.Problem}
		cached(&f, 700, c.tensors)
		if f.Severity != c.want || (c.want == finding.Warning) != strings.Contains(f.Title, "PyTorch's cache grew") {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}
