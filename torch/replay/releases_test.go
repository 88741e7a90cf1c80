package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/torch/allocator"
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
			if want := truth.Stats[d.Index][name]; got != want {
				t.Errorf("device %d: %s is %d, PyTorch counts %d", d.Index, name, got, want)
			}
		}
	}
}

// oldestOf is the first release of a range such as "2.5–2.7" or "2.14 or later".
func oldestOf(text string) allocator.Version {
	first, _, _ := strings.Cut(text, "–")
	return newestOf(strings.TrimSuffix(first, " or later"))
}
