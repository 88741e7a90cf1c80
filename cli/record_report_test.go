package cli

import (
	"bytes"
	"strings"
	"testing"

	"strandline/record"
)

// Where a note says why a process was not recorded, no other reason is claimed.
func TestNothingRecorded(t *testing.T) {
	const other = "no process that loads the recorder"
	for _, c := range []struct {
		notes []record.Note
		other bool
	}{
		{nil, true},
		{[]record.Note{{PID: 7, Command: "python train.py", Why: "it could not write to the folder of the recording: no space left on device"}}, false},
	} {
		var stderr bytes.Buffer
		g := &globals{env: &Env{stderr: &stderr}}
		g.recorded(t.Context(), "rec", &record.Manifest{Notes: c.notes, Command: []string{"python", "train.py"}})
		got := stderr.String()
		if next := "strandline check -- python train.py"; strings.Contains(got, next) != c.other {
			t.Errorf("%q: want %q? %t", got, next, c.other)
		}
		if !strings.Contains(got, "nothing was recorded") || strings.Contains(got, other) != c.other {
			t.Errorf("notes %v: %s", c.notes, got)
		}
		for _, n := range c.notes {
			if !strings.Contains(got, n.Why) {
				t.Errorf("does not say %q: %s", n.Why, got)
			}
		}
	}
}
