package digest

import (
	"path/filepath"
	"testing"

	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// open reads a file of the repository.
func open(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(filepath.Join("../..", path), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A file that was dumped long after its failure, and holds the whole run, shows
// the state then exactly: the replay knows the sizes of blocks that are gone.
func TestFailureIsReplayed(t *testing.T) {
	s := open(t, "torch/replay/testdata/w11_fuzz.expandable_oom.s1.end.pickle.zst")
	o := NewBook().Digest(s).Devices[0].LastOOM
	if o == nil || !o.Exact || o.After == 0 {
		t.Fatalf("%+v", o)
	}
	x := replay.NewRecording(timeline.New(s, s.Devices()[0])).Replay()
	if _, active := x.At(o.Event); o.Active != active || o.Active+o.Free.Releasable+o.Free.Stranded != o.Reserved {
		t.Errorf("%d bytes active of %d reserved; replayed %d", o.Active, o.Reserved, active)
	}
	s.Traces[0].Events = s.Traces[0].Slice(1500, s.Traces[0].Len()).Events
	if o := NewBook().Digest(s).Devices[0].LastOOM; o == nil || o.Exact {
		t.Errorf("a recording that began late is called exact: %+v", o)
	}
}
