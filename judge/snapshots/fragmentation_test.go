package snapshots

import (
	"path/filepath"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// fragmentationOf is the finding for a file of the snapshot package's test data.
func fragmentationOf(t *testing.T, file string) *finding.Finding {
	t.Helper()
	a := judge(t, filepath.Join("../../torch/snapshot/testdata", file))
	for i := range a.Findings {
		if a.Findings[i].Kind == finding.Fragmentation {
			return &a.Findings[i]
		}
	}
	return nil
}

func TestFragmentation(t *testing.T) {
	f := fragmentationOf(t, "w06b_oom_fragmented.default.oom.pickle")
	if f == nil {
		t.Fatal("2.6 GiB of 3.5 GiB are free in pieces, and nothing says so")
	}
	const mib = 1 << 20
	if e := f.Evidence.(*finding.FragmentationEvidence); e.ReleasableBytes != 0 || e.StrandedBytes != 2700*mib {
		t.Errorf("releasable %v, stranded %v", e.ReleasableBytes, e.StrandedBytes)
	}
	if len(f.Remedies) == 0 || f.Remedies[0].Setting == "" {
		t.Errorf("no setting is named: %v", f.Remedies)
	}
	if f := fragmentationOf(t, "w04_graph_leak.default.iter20.pickle"); f != nil {
		t.Errorf("a file with little free memory: %s", f.Title)
	}
}

// device has so many bytes reserved, now and at its peak.
func device(reserved, peak int64) digest.Device {
	return digest.Device{Totals: digest.Totals{Reserved: reserved, PeakReserved: peak}}
}

// alone is a device of a process of one file.
func alone(d digest.Device) *subject {
	p := compare.NewProcess("", []*digest.File{{Name: "a.pickle", Devices: []digest.Device{d}}})
	return deviceSubject(digest.NewBook(), p, d.Index)
}

// TestNothingIsFree looks for no remedy that returns what is not there.
func TestNothingIsFree(t *testing.T) {
	if f := fragmentation(alone(digest.Device{})); f != nil {
		t.Errorf("nothing is reserved: %s", f[0].Title)
	}
	const gib = 1 << 30
	d := device(1, 4*gib)
	d.Space = timeline.Space{Overhead: 3 * gib, Taken: 3 * gib}
	f := fragmentation(alone(d))
	if len(f) != 1 || f[0].Severity != finding.Problem || !strings.Contains(f[0].Detail[0], "none of it is free") {
		t.Fatalf("three quarters of the peak were fragmentation: %+v", f)
	}
	for _, r := range f[0].Remedies {
		if strings.Contains(r.Text, "empty_cache") {
			t.Errorf("nothing is free: %s", r.Text)
		}
	}
}

// TestGap looks for a word where the setting that is advised leaves most of what
// is stated.
func TestGap(t *testing.T) {
	const gib = int64(1) << 30
	for _, c := range []struct {
		trial *replay.Trial
		shown bool
	}{
		{nil, false},
		{&replay.Trial{Own: 8 * gib, Peak: 5 * gib}, false},
		{&replay.Trial{Own: 8 * gib, Peak: 7 * gib}, true},
		{&replay.Trial{Own: 8 * gib, Peak: 9 * gib}, true},
		{&replay.Trial{Own: 8 * gib, Peak: 8 * gib, RanOut: true}, false}, // what failed is met then
	} {
		d := device(8*gib, 8*gib)
		d.Space, d.Trial = timeline.Space{Overhead: 4 * gib, Taken: 4 * gib}, c.trial
		if text := strings.Join(fragmentation(alone(d))[0].Detail, "\n"); strings.Contains(text, "off the peak") != c.shown {
			t.Errorf("%+v: %s", c.trial, text)
		}
	}
}

// A setting that takes a quarter off the peak of a run that did not fail is a note that names it.
func TestSavedBySetting(t *testing.T) {
	const gib = int64(1) << 30
	for _, c := range []struct {
		trial replay.Trial
		saves int64
	}{
		{replay.Trial{Own: 8 * gib, Peak: 5 * gib, Exact: true}, 3 * gib},
		{replay.Trial{Own: 8 * gib, Peak: 5 * gib}, 0},
		{replay.Trial{Own: 8 * gib, Peak: 7 * gib, Exact: true}, 0},
		{replay.Trial{Own: 8 * gib, Peak: 5 * gib, Exact: true, RanOut: true}, 0},
	} {
		d := device(8*gib, 8*gib)
		d.Trial = &c.trial
		found := fragmentation(alone(d))
		if c.saves == 0 {
			if found != nil {
				t.Errorf("%+v: %s", c.trial, found[0].Title)
			}
			continue
		}
		if len(found) != 1 {
			t.Fatalf("%+v: nothing is found", c.trial)
		}
		f := found[0]
		if e := f.Evidence.(*finding.FragmentationEvidence); f.Severity != finding.Info || e.SavedBytes != c.saves || !strings.Contains(f.Brief.Title, "from 8 GiB to 5 GiB") ||
			f.Remedies[0].Setting != "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" {
			t.Errorf("%+v: %+v", c.trial, f)
		}
	}
}

// Unused memory is to be returned where that gives something, and an engine is to leave room
// where others hold the device.
func TestReturning(t *testing.T) {
	const gib = int64(1) << 30
	beside := &compare.About{Beside: map[int]compare.Beside{0: {Others: []compare.Holding{{Process: "engine", Bytes: 40 * gib}}}}}
	for _, c := range []struct {
		reclaim *replay.Reclaim
		about   *compare.About
		want    []string // parts of each remedy
	}{
		{nil, nil, nil},
		{&replay.Reclaim{Policy: "every=2steps", Exact: true, Own: 8 * gib, Peak: 5 * gib, Returned: gib}, nil, []string{"simulated on this history, the run peaks at 5 GiB reserved instead of 8 GiB, and a call returns 1 GiB"}},
		{&replay.Reclaim{Policy: "every=2steps", Own: 8 * gib, Peak: 9 * gib, Returned: gib}, nil, []string{"simulated approximately, a call returns 1 GiB"}},
		{&replay.Reclaim{Policy: "every=2steps", Own: 8 * gib, Peak: 8 * gib}, beside, []string{"lower by 4 GiB"}},
	} {
		d := device(8*gib, 8*gib)
		d.Space, d.Reclaim = timeline.Space{Overhead: 4 * gib, Taken: 4 * gib}, c.reclaim
		s := alone(d)
		s.process.About = c.about
		found := returning(s)
		if len(found) != len(c.want) {
			t.Fatalf("%+v: %+v", c.reclaim, found)
		}
		for i, r := range found {
			if !strings.Contains(r.Text, c.want[i]) {
				t.Errorf("%q, want %q", r.Text, c.want[i])
			}
		}
	}
}

// TestPrivateRemedies holds advice against the kind of pool that has much free.
func TestPrivateRemedies(t *testing.T) {
	const gib = int64(1) << 30
	graph, pool := snapshot.Pool{Graph: 1}, snapshot.Pool{User: 1}
	for _, c := range []struct {
		pools []timeline.PrivatePool
		want  []string // a word of each
	}{
		{[]timeline.PrivatePool{{Pool: graph, Reserved: 4 * gib, Free: 2 * gib}}, []string{"graph's pool"}},
		{[]timeline.PrivatePool{{Pool: pool, Reserved: 4 * gib, Free: 2 * gib}}, []string{"MemPool"}},
		{[]timeline.PrivatePool{{Pool: graph, Reserved: 4 * gib, Free: 1 << 20}, {Pool: pool, Reserved: 4 * gib}}, nil},
	} {
		d := device(10*gib, 0)
		d.Private = c.pools
		f := private(alone(d))
		if len(f) != 1 || len(f[0].Remedies) != len(c.want) {
			t.Errorf("%+v: %+v", c.pools, f)
			continue
		}
		for i, word := range c.want {
			if !strings.Contains(f[0].Remedies[i].Detail, word) {
				t.Errorf("%+v: %s", c.pools, f[0].Remedies[i].Detail)
			}
		}
	}
}
