package processes

import (
	"strings"
	"testing"

	"strandline/host/store/recording"
)

func TestDevices(t *testing.T) {
	const gib = 1 << 30
	parts := func(torch, traced, unseen int64) []recording.GPUPart {
		return []recording.GPUPart{{Part: recording.PartPyTorch, Bytes: torch}, {Part: recording.PartTraced, Bytes: traced}, {Part: recording.PartUnseen, Bytes: unseen}}
	}
	for _, c := range []struct {
		name   string
		device recording.GPUDevice
		want   string // part of the title; none if it is empty
	}{
		{"in order", recording.GPUDevice{Parts: parts(8*gib, gib, 100<<20)}, ""},
		{"a little beyond", recording.GPUDevice{Parts: parts(8*gib, gib, 0), Beyond: 100 << 20, Absent: 50 << 20}, ""},
		{"beyond", recording.GPUDevice{Parts: parts(8*gib, gib, 0), Beyond: gib, Absent: gib}, "1 GiB more than the driver counts"},
		{"not in the snapshot", recording.GPUDevice{Parts: parts(gib, 2*gib, 0), Absent: gib}, "took 1 GiB from the driver that is in no segment"},
		{"unseen", recording.GPUDevice{Parts: parts(gib, 0, 3*gib)}, "3 GiB more for the processes than when the trace began"},
	} {
		found := devices([]recording.GPUDevice{c.device}, "pid 7 (python3)")
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Title, c.want)) {
			t.Errorf("%s: %+v", c.name, found)
		}
		for _, f := range found {
			if f.Process != "pid 7 (python3)" {
				t.Errorf("%s: process %q", c.name, f.Process)
			}
		}
	}
}
