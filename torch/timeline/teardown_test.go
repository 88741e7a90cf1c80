package timeline

import (
	"fmt"
	"strings"
	"testing"

	"strandline/torch/snapshot"
)

// TestBeforeTeardown takes back what a function that returns frees at the end, but for what
// the last step made.
func TestBeforeTeardown(t *testing.T) {
	const (
		load   = `{"filename":"train.py","name":"main","line":3}`
		keep   = `{"filename":"train.py","name":"main","line":7}`
		update = `{"filename":"torch/optim/adam.py","name":"step","line":1},{"filename":"train.py","name":"main","line":9}`
	)
	var events []string
	at := 0
	add := func(action string, addr int, frames string) {
		at++
		events = append(events, fmt.Sprintf(`{"action":%q,"addr":%d,"size":512,"stream":0,"time_us":%d,"frames":[%s]}`, action, 1<<20+512*addr, at, frames))
	}
	free := func(addr int) { add("free_requested", addr, ""); add("free_completed", addr, "") }
	add("segment_alloc", 0, "")
	for step := range 5 {
		add("alloc", 100, load) // the batch
		add("alloc", step, keep)
		add("alloc", 200, update)
		free(200)
		if step < 4 {
			free(100)
		}
	}
	free(100)
	kept := len(events)
	end := func(rest ...string) *snapshot.Snapshot {
		t.Helper()
		text := fmt.Sprintf(`{"segments":[{"device":0,"address":%d,"total_size":1048576,"allocated_size":0,"active_size":0,"requested_size":0,"stream":0,"segment_type":"small","segment_pool_id":[0,0],"is_expandable":false,"frames":[],`+
			`"blocks":[{"address":%[1]d,"size":1048576,"requested_size":0,"state":"inactive","frames":[]}]}],"device_traces":[[%s]]}`, 1<<20, strings.Join(append(events[:len(events):len(events)], rest...), ","))
		text = strings.Replace(text, `"segment_alloc","addr":1048576,"size":512`, `"segment_alloc","addr":1048576,"size":1048576`, 1)
		s, err := snapshot.Read(strings.NewReader(text), snapshot.Options{Name: "end.json"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for addr := range 5 {
		free(addr)
	}
	s := end()
	cut := BeforeTeardown(s)
	d := cut.Devices()[0]
	if d.Trace.Len() != kept || len(cut.Faults) > 0 {
		t.Errorf("%d events, want %d; faults %q", d.Trace.Len(), kept, cut.Faults)
	}
	if line := New(cut, d); len(line.LiveAt(kept-1)) != 5 || line.EndRequested != 5*512 {
		t.Errorf("%d allocations of %d bytes are kept, want 5 of 2560", len(line.LiveAt(kept-1)), line.EndRequested)
	}
	if got := BeforeTeardown(cut); got != cut {
		t.Error("there is nothing to take back, and the snapshot changed")
	}
	events = nil
	for addr := range 5 {
		free(addr)
	}
	cut = BeforeTeardown(end()) // the ring lost all else
	if d = cut.Devices()[0]; d.Trace.Len() != 0 {
		t.Errorf("%d events are left of releases alone", d.Trace.Len())
	}
	if line := New(cut, d); len(line.LiveAt(-1)) != 5 {
		t.Errorf("%d allocations were live before they were released, want 5", len(line.LiveAt(-1)))
	}
}
