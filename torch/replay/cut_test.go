package replay

import (
	"bytes"
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"

	"strandline/internal/test/live"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// unpacked is the pickle in a compressed one.
func unpacked(t *testing.T, file string) []byte {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	data, err := z.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A file that is cut off is replayed as far as it goes, and nothing is settled for
// what it lacks: the replay claims no more than it has met, and gives the cut as
// its reason.
func TestCutFilesReplay(t *testing.T) {
	live.Sequential(t)
	for _, file := range golden(t) {
		data := unpacked(t, file)
		for _, end := range []int{len(data) / 7, len(data) / 2, len(data) * 6 / 7, len(data) - 100, len(data) - 1} {
			s := readPart(t, file, data[:end])
			for _, d := range s.Devices() {
				r := NewRecording(timeline.New(s, d))
				x := r.Replay()
				met := x.events == r.Trace.Len() && x.CallsMet == x.Calls && x.SegmentsMet == x.Segments
				switch {
				case x.events > r.Trace.Len(), x.CallsMet > x.Calls, x.SegmentsMet > x.Segments, x.Difference == nil && !met:
					t.Errorf("%s, %d of %d bytes, device %d: %d of %d events, %d of %d calls, %d of %d segments are met, with the difference %v",
						file, end, len(data), d.Index, x.events, r.Trace.Len(), x.CallsMet, x.Calls, x.SegmentsMet, x.Segments, x.Difference)
				case x.Difference != nil && x.Difference.Reason != "the file is cut":
					t.Errorf("%s, %d of %d bytes, device %d: the reason is %q", file, end, len(data), d.Index, x.Difference.Reason)
				}
			}
		}
	}
}

// A file that lacks nothing but its last byte is replayed exactly, unless something
// had to be settled for it.
func TestFilesCutAtTheEndReplayExactly(t *testing.T) {
	live.Sequential(t)
	exact, settled := 0, 0
	for _, file := range golden(t) {
		data := unpacked(t, file)
		s, cut := open(t, file), readPart(t, file, data[:len(data)-1])
		s.Partial = cut.Partial
		devices, again := s.Devices(), cut.Devices()
		if len(devices) != len(again) {
			t.Fatalf("%s: %d devices of %d are left", file, len(again), len(devices))
		}
		for i, d := range devices {
			x, y := NewRecording(timeline.New(s, d)).Replay(), NewRecording(timeline.New(cut, again[i])).Replay()
			if x.events != y.events || x.CallsMet != y.CallsMet || x.SegmentsMet != y.SegmentsMet || (x.Difference == nil) != (y.Difference == nil) {
				t.Errorf("%s, device %d: %d events, %d calls and %d segments are met (%v), and %d, %d and %d (%v) of the whole file", file, d.Index,
					y.events, y.CallsMet, y.SegmentsMet, y.Difference, x.events, x.CallsMet, x.SegmentsMet, x.Difference)
			}
			if x.Difference == nil {
				exact++
			} else {
				settled++
			}
		}
	}
	if exact < settled {
		t.Errorf("%d devices are replayed exactly and %d are not", exact, settled)
	}
}

func readPart(t *testing.T, file string, data []byte) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Read(bytes.NewReader(data), snapshot.Options{Name: file})
	if err != nil {
		t.Fatalf("%s, cut after %d bytes: %v", file, len(data), err)
	}
	if s.Partial == nil {
		t.Fatalf("%s, cut after %d bytes, is not partial", file, len(data))
	}
	return s
}
