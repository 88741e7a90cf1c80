package snapshot_test

import (
	"slices"
	"strings"
	"testing"

	"strandline/torch/snapshot"
)

// What no release writes is named.
func TestUnknown(t *testing.T) {
	const settings = "allocator_settings"
	of := func(e obj) obj { return with(file(), obj{"device_traces": [][]obj{{with(event(1), e)}}}) }
	for _, c := range []struct {
		name string
		file any
		want []string
	}{
		{"nothing", file(), nil},
		{"an action", of(obj{"action": "segment_merge"}), []string{`unknown action "segment_merge" (1 event)`}},
		{"a mark", of(obj{"internal_metadata": "mallocTwice"}), []string{`unknown internal_metadata "mallocTwice" (1 event)`}},
		{"a known mark", of(obj{"internal_metadata": "mallocWithAddress"}), nil},
		{"a key", of(obj{"priority": 1}), []string{"unknown keys: trace entry.priority"}},
		{"a setting", with(file(), obj{settings: obj{"max_split_size": -1, "merge_segments": true}}), []string{`unknown allocator setting "merge_segments"`}},
	} {
		if got := read(t, c.file).Unknown(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Pinned host memory is one list of events and segments, the last of the devices.
func TestHostMemory(t *testing.T) {
	host := with(segmentAt(0, 64*mib), obj{"device": -1})
	s := read(t, with(file(), obj{"host_segments": []obj{host}, "host_traces": []obj{event(1), event(2)}}))
	for _, s := range []*snapshot.Snapshot{s, reread(t, written(t, s))} {
		d := s.Devices()
		last := d[len(d)-1]
		if strings.Contains(strings.Join(s.Faults, " "), "devices") || last.Index != snapshot.Host || len(last.Segments) != 1 || last.Trace.Len() != 2 {
			t.Errorf("%+v, with faults %q", last, s.Faults)
		}
	}
}
