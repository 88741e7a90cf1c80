package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/internal/test/live"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A truth is what PyTorch itself reported at the moment of a snapshot, which the rig
// writes beside it.
type truth struct {
	Conf   string           `json:"allocator_conf"`
	Stats  []map[string]any `json:"memory_stats"`
	Record struct {
		Enabled   string `json:"enabled"`
		Allocated int64  `json:"allocated_before"`
		Reserved  int64  `json:"reserved_before"`
		Most      int    `json:"max_entries"`
		Fraction  string `json:"fraction"`
		Cleared   bool   `json:"cleared"`
		Stopped   bool   `json:"stopped"`
	} `json:"record"`
}

// truthOf reads the file beside a snapshot; nil if there is none.
func truthOf(t *testing.T, snapshot string) *truth {
	t.Helper()
	text, err := os.ReadFile(strings.TrimSuffix(strings.TrimSuffix(snapshot, ".zst"), ".pickle") + ".json")
	if os.IsNotExist(err) || strings.HasSuffix(snapshot, ".json") {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	out := &truth{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// whole reports whether the history has all that the program ever asked for.
func (o *truth) whole(events int) bool {
	r := &o.Record
	return r.Enabled == "all" && r.Allocated == 0 && r.Reserved == 0 && !r.Cleared && !r.Stopped && events < r.Most
}

// hold replays every device of a snapshot and holds it against the truth. It
// returns how many there are and how many were exact.
func hold(t *testing.T, file string) (devices, exact int) {
	t.Helper()
	s, err := snapshot.Open(file, snapshot.Options{})
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return 0, 0
	}
	o := truthOf(t, file)
	for _, d := range s.Devices() {
		r := NewRecording(timeline.New(s, d))
		devices++
		x := r.Replay()
		if x.Difference != nil {
			t.Errorf("%s device %d of %d events: %v; %d of %d calls, %d of %d segments", filepath.Base(file), d.Index,
				r.Trace.Len(), x.Difference, x.CallsMet, x.Calls, x.SegmentsMet, x.Segments)
			continue
		}
		exact++
		if x.CallsMet != x.Calls || x.SegmentsMet != x.Segments || x.events != r.Trace.Len() {
			t.Errorf("%s device %d: exact with %d of %d calls, %d of %d segments, %d of %d events", filepath.Base(file),
				d.Index, x.CallsMet, x.Calls, x.SegmentsMet, x.Segments, x.events, r.Trace.Len())
		}
		if o == nil || d.Index >= len(o.Stats) || len(o.Stats[d.Index]) == 0 || r.Trace.Len() == 0 {
			continue
		}
		got := map[string]int64{"inactive_split_bytes.all.current": x.inactiveSplit}
		if o.whole(r.Trace.Len()) {
			got["reserved_bytes.all.peak"] = x.Stats.ReservedPeak
			got["allocated_bytes.all.peak"] = x.Stats.AllocatedPeak
			got["num_ooms"] = x.Stats.OOMs
			if len(r.pools) == 0 { // otherwise a history can be read in several ways
				got["num_alloc_retries"] = x.Stats.Retries
			}
		}
		for name, n := range got {
			want, _ := o.Stats[d.Index][name].(float64)
			if n != int64(want) {
				t.Errorf("%s device %d: %s is %d, want %.0f", filepath.Base(file), d.Index, name, n, want)
			}
		}
	}
	return devices, exact
}

// Histories that no allocator made.
func invented(file string) bool {
	for _, word := range []string{"edited", "truncated", "synth", "profiler"} {
		if strings.Contains(filepath.Base(file), word) {
			return true
		}
	}
	return false
}

func TestCorpusReplaysExactly(t *testing.T) {
	live.Sequential(t)
	dir := live.Given(t, "STRANDLINE_CORPUS")
	var files []string
	for _, pattern := range []string{"*.pickle", "torch/*.pickle", "wild/*__*", "torch/big/*.pickle*"} {
		some, _ := filepath.Glob(filepath.Join(dir, pattern))
		files = append(files, some...)
	}
	devices, exact := 0, 0
	for _, file := range files {
		if !invented(file) {
			n, ok := hold(t, file)
			devices += n
			exact += ok
		}
	}
	t.Logf("%d of %d exact", exact, devices)
}
