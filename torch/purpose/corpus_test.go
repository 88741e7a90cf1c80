package purpose

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/internal/test/live"
	"strandline/internal/test/synth"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// oracle is what a workload states about its own memory, beside its snapshot.
type oracle struct {
	Expect struct {
		Purposes *struct {
			Event  int              `json:"peak_event"`
			AtPeak map[string]int64 `json:"at_peak"`
			AtDump map[string]int64 `json:"at_dump"`
		} `json:"purposes"`
	} `json:"expect"`
}

// TestCorpus checks snapshots of the folder STRANDLINE_CORPUS against the oracles
// beside them, where these state what memory is for: at most 5 % of the bytes may
// be misnamed, and 1 % of the parameters, the optimizer's state and the cache.
func TestCorpus(t *testing.T) {
	dir := live.Given(t, "STRANDLINE_CORPUS")
	held := 0
	files, _ := filepath.Glob(filepath.Join(dir, "torch", "*.pickle"))
	for _, file := range files {
		raw, err := os.ReadFile(strings.TrimSuffix(file, ".pickle") + ".json")
		var o oracle
		if err != nil || json.Unmarshal(raw, &o) != nil || o.Expect.Purposes == nil {
			continue
		}
		s, err := snapshot.Open(file, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := Of(timeline.New(s, s.Devices()[0]))
		held++
		want := o.Expect.Purposes
		if m.Peak.Event != want.Event {
			t.Errorf("%s: peak at event %d, want %d", filepath.Base(file), m.Peak.Event, want.Event)
		}
		compareMoment(t, filepath.Base(file)+" at the peak", &m.Peak, want.AtPeak)
		compareMoment(t, filepath.Base(file)+" at the end", &m.End, want.AtDump)
	}
	if held == 0 {
		t.Fatalf("no oracles of purposes below %s", dir)
	}
}

func compareMoment(t *testing.T, what string, m *Moment, want map[string]int64) {
	t.Helper()
	var total, off int64
	for _, n := range want {
		total += n
	}
	for p := range count {
		d := max(m.By[p]-want[p.String()], want[p.String()]-m.By[p])
		off += d
		if exact := p <= KVCache; exact && d > max(want[p.String()]/100, total/1000) {
			t.Errorf("%s: %s is %d bytes, want %d", what, p, m.By[p], want[p.String()])
		}
	}
	if m.Bytes != total {
		t.Errorf("%s: %d bytes, want %d", what, m.Bytes, total)
	}
	if off/2*20 > total {
		t.Errorf("%s: %.1f %% misnamed: %v, want %v", what, 50*float64(off)/float64(total), m.By.Map(), want)
	}
}

// BenchmarkOf names the memory of histories; it should cost far less than reading
// them (BenchmarkRead of package snapshot).
func BenchmarkOf(b *testing.B) {
	synth.Each(b, func(b *testing.B, file []byte) {
		s := synth.Read(b, file)
		line := timeline.New(s, s.Devices()[0])
		b.ReportAllocs()
		for b.Loop() {
			Of(line)
		}
		synth.PerEvent(b, s)
	})
}
