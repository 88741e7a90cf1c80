package timeline

import (
	"strings"
	"testing"

	"strandline/torch/snapshot"
)

// TestLackingEvents doubts the heights of a history whose recorder left actions out, but
// for the completion of frees, which their requests show.
func TestLackingEvents(t *testing.T) {
	const alloc, requested, completed = "alloc", "free_requested", "free_completed"
	for _, c := range []struct {
		name    string
		actions []string // at one address
		peak    int64
		doubt   bool
	}{
		{"all", []string{alloc, requested, completed, alloc, requested, completed}, 512, false},
		{"no completion", []string{alloc, requested, alloc, requested}, 512, false},
		{"no request", []string{alloc, completed, alloc, completed}, 512, false},
		{"no free", []string{alloc, alloc}, 1024, true},
		{"no allocation", []string{requested, completed, requested, completed}, 1024, true},
	} {
		var events []string
		for _, a := range c.actions {
			events = append(events, `{"action": "`+a+`", "addr": 4096, "size": 512, "stream": 0, "frames": []}`)
		}
		s, err := snapshot.Read(strings.NewReader(`{"segments": [{"device": 0, "address": 4096, "total_size": 2097152, "allocated_size": 0, "active_size": 0, "requested_size": 0, "stream": 0, "segment_type": "small", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [], "blocks": [{"address": 4096, "size": 2097152, "requested_size": 0, "state": "inactive", "frames": []}]}], "device_traces": [[`+strings.Join(events, ",")+`]]}`), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		x := New(s, s.Devices()[0])
		if x.PeakRequested.Bytes != c.peak || (x.Doubt() != "") != c.doubt {
			t.Errorf("%s: peak %d, doubt %q, want %d, %t", c.name, x.PeakRequested.Bytes, x.Doubt(), c.peak, c.doubt)
		}
	}
}
