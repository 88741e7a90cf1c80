package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// Recordings of each release, with what PyTorch counted itself (bench/pytorch makes
// them): the file shows which release it is of, and every call, block and counter is
// reproduced.
func TestReleasesReplayExactly(t *testing.T) {
	files, _ := filepath.Glob("testdata/releases/*.pickle.zst")
	if len(files) == 0 {
		t.Fatal("no recordings of releases")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".pickle.zst"), func(t *testing.T) { holdRelease(t, file) })
	}
}

func holdRelease(t *testing.T, file string) {
	text, err := os.ReadFile(strings.TrimSuffix(file, ".pickle.zst") + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var truth struct {
		Torch string             `json:"torch"`
		Stats []map[string]int64 `json:"memory_stats"`
		Host  map[string]int64   `json:"host_memory_stats"`
	}
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	s := open(t, file)
	release := strings.Join(strings.SplitN(truth.Torch, ".", 3)[:2], ".")
	if written := newestOf(release); written < oldestOf(s.TorchVersion()) || written > VersionOf(s) {
		t.Errorf("written by PyTorch %s, taken for %s", truth.Torch, s.TorchVersion())
	}
	for _, d := range s.Devices() {
		if d.Index == snapshot.Host {
			holdHost(t, ReplayHost(timeline.New(s, d)), truth.Host)
			continue
		}
		x := NewRecording(timeline.New(s, d)).Replay()
		if x.Difference != nil {
			t.Errorf("device %d: %v", d.Index, x.Difference)
			continue
		}
		for name, got := range map[string]int64{
			"reserved_bytes.all.current":  x.Stats.Reserved,
			"allocated_bytes.all.current": x.Stats.Allocated,
			"active_bytes.all.current":    x.Stats.Active,
			"requested_bytes.all.current": x.Stats.Requested,
			"reserved_bytes.all.peak":     x.Stats.ReservedPeak,
			"allocated_bytes.all.peak":    x.Stats.AllocatedPeak,
			"num_alloc_retries":           x.Stats.Retries,
			"num_ooms":                    x.Stats.OOMs,
		} {
			if want, ok := truth.Stats[d.Index][name]; ok && got != want { // the beginning of a late one is not known
				t.Errorf("device %d: %s is %d, PyTorch counts %d", d.Index, name, got, want)
			}
		}
	}
}

// holdHost holds pinned host memory against PyTorch's counters: under its own settings,
// and after a run under the same.
func holdHost(t *testing.T, h *Host, want map[string]int64) {
	run := h.Under(h.Settings.Host)
	if h.Difference != nil || h.CallsMet != h.Calls || h.SegmentsMet != h.Segments || run.ReservedPeak != h.PeakReserved.Bytes || run.DriverCalls != int64(h.Calls) {
		t.Errorf("pinned host memory: %v, %d of %d calls, %d of %d segments, %+v", h.Difference, h.CallsMet, h.Calls, h.SegmentsMet, h.Segments, run)
	}
	for name, got := range map[string]int64{
		"allocated_bytes.current": h.EndReserved,
		"allocated_bytes.peak":    h.PeakReserved.Bytes,
		"active_bytes.current":    h.EndRequested,
	} {
		if got != want[name] {
			t.Errorf("pinned host memory: %s is %d, PyTorch counts %d", name, got, want[name])
		}
	}
	keepsNone := h.Settings.Host
	keepsNone.MaxCachedSize = 0
	if run := h.Under(keepsNone); run.ReservedPeak != h.PeakRequested.Bytes {
		t.Errorf("without a cache the peak is %d, and %d are in use", run.ReservedPeak, h.PeakRequested.Bytes)
	}
}

// A recording of pinned host memory that was changed is not exact, and says where.
func TestHostDiffers(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(e *snapshot.Events)
	}{
		{"another block than the one freed last", func(e *snapshot.Events) { e.Addr[60] ^= 0x1000 }},
		{"a block of another size", func(e *snapshot.Events) { e.Size[3] *= 2 }},
		{"a release of a block in use", func(e *snapshot.Events) { e.Action[4], e.Addr[4] = snapshot.SegmentFree, e.Addr[3] }},
	} {
		s := open(t, "testdata/releases/2.15.pinned.pickle.zst")
		devices := s.Devices()
		d := devices[len(devices)-1]
		c.change(&d.Trace.Events)
		if h := ReplayHost(timeline.New(s, d)); h.Difference == nil {
			t.Error(c.name + " is taken for exact")
		}
	}
}

// oldestOf is the first release of a range such as "2.5–2.7" or "2.14 or later".
func oldestOf(text string) allocator.Version {
	first, _, _ := strings.Cut(text, "–")
	return newestOf(strings.TrimSuffix(first, " or later"))
}
