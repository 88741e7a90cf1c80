package replay

import (
	"testing"

	"strandline/torch/snapshot"
)

// TestTrialNamesWhatIsLeft behind a request that the recording ran out for: less
// than all that is not in use, as partly used pages cannot be unmapped.
func TestTrialNamesWhatIsLeft(t *testing.T) {
	s, err := snapshot.Open("../../examples/out-of-memory/oom.pickle", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trial := TryExpandable(record(t, s).Replay())
	const mib = 1 << 20
	const capacity, active, request = 3696 * mib, 900 * mib, 1536 * mib
	if trial == nil || !trial.Exact || !trial.RanOut || trial.RunsOut || trial.Left == nil {
		t.Fatalf("%+v", trial)
	}
	if left := *trial.Left; left != 1076*mib || left > capacity-active-request {
		t.Errorf("%d bytes are left", left)
	}

	s, err = snapshot.Open("../../examples/varied-lengths/default.pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if trial := TryExpandable(record(t, s).Replay()); trial == nil || trial.RanOut || trial.Left != nil {
		t.Errorf("memory never ran out: %+v", trial)
	}
}
