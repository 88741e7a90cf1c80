package timeline_test

import (
	"errors"
	"strings"
	"testing"

	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// TestDoubt has a block that no event made: of a file that was read whole it is
// older than the recording, of one that was cut off it may be younger.
func TestDoubt(t *testing.T) {
	h := newHistory()
	h.add(snapshot.SegmentAlloc, 0x0, 4*mib, "main")
	h.add(snapshot.Alloc, 0x0, mib, "main")
	h.segment(0x0, 4*mib, "large", "main",
		snapshot.Block{Addr: 0, Size: mib, Requested: mib, State: snapshot.Allocated},
		snapshot.Block{Addr: 2 * mib, Size: mib, Requested: mib, State: snapshot.Allocated})
	s := h.snapshot()
	if got := timeline.New(s, s.Devices()[0]).Doubt(); got != "" {
		t.Errorf("a file that was read whole: %q", got)
	}
	s.Partial = &snapshot.Partial{Err: errors.New("the file ends")}
	line := timeline.New(s, s.Devices()[0])
	if got, want := line.Doubt(), "too high by up to 1 MiB requested"; !strings.Contains(got, want) {
		t.Errorf("%q; want %q in it", got, want)
	}
	if gaps := strings.Join(line.Gaps(), "\n"); strings.Contains(gaps, "when the recording began") {
		t.Errorf("what may be missing is called older: %s", gaps)
	}
}
