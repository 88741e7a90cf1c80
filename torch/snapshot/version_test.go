package snapshot_test

import (
	"strings"
	"testing"

	"strandline/torch/snapshot"
)

func TestTorchVersion(t *testing.T) {
	noFrames := obj{"size": 512, "requested_size": 512, "state": "active_allocated"}
	old := func(block obj) obj {
		return obj{"device": 0, "address": 2 * mib, "total_size": 512, "allocated_size": 512, "active_size": 512,
			"stream": 0, "segment_type": "small", "blocks": []obj{block}}
	}
	history := []obj{{"addr": 2 * mib, "real_size": 500, "frames": []any{}}}
	of := func(f obj, e obj) obj { return with(f, obj{"device_traces": [][]obj{{with(event(1), e)}}}) }
	cut := func(f obj, keys ...string) obj {
		f = with(f, nil)
		for _, k := range keys {
			delete(f, k)
		}
		return f
	}
	const settings, annotations = "allocator_settings", "external_annotations"
	two := cut(file(), settings, annotations)
	timeless := with(two, obj{"device_traces": [][]obj{{cut(event(1), "time_us")}}})
	for _, c := range []struct {
		name string
		file any
		want string
	}{
		{"1.13", []obj{old(obj{"size": 512, "state": "active_allocated", "history": history})}, "1.13"},
		{"empty list", []obj{}, "1.13, or memory_snapshot() of any version"},
		{"list with frames", []obj{segmentAt(0, 64*mib)}, "2.1 or later"},
		{"2.0", obj{"segments": []obj{old(with(noFrames, obj{"history": history}))}, "device_traces": []any{}}, "2.0"},
		{"2.1", timeless, "2.1"},
		{"2.1 without events", cut(two, "device_traces"), "2.1–2.2"},
		{"2.2", two, "2.2"},
		{"2.3", cut(file(), annotations), "2.3–2.4"},
		{"2.5", file(), "2.5–2.7"},
		{"2.5 without events", cut(file(), "device_traces"), "2.5–2.8"},
		{"2.8", of(file(), obj{"compile_context": "N/A"}), "2.8"},
		{"2.10", of(with(file(), obj{settings: obj{"graph_capture_record_stream_reuse": false}}),
			obj{"compile_context": "N/A", "user_metadata": ""}), "2.10–2.11"},
		{"2.12", of(with(file(), obj{settings: obj{"graph_capture_record_stream_reuse": false}}),
			obj{"compile_context": "N/A", "user_metadata": "", "pool_id": []int{0, 0}}), "2.12"},
		{"2.13", of(with(file(), obj{settings: obj{"graph_capture_record_stream_reuse": false, "max_round_threshold": -1}}),
			obj{"compile_context": "N/A", "user_metadata": "", "pool_id": []int{0, 0}}), "2.13"},
		{"2.9", of(with(file(), obj{settings: obj{"graph_capture_record_stream_reuse": false}}),
			obj{"compile_context": "N/A"}), "2.9"},
		{"2.14", of(with(file(), obj{settings: obj{"graph_capture_record_stream_reuse": false, "max_round_threshold": -1}, "host_segments": []any{}}),
			obj{"compile_context": "N/A", "user_metadata": "", "pool_id": []int{0, 0}}), "2.14 or later"},
		{"profiler", of(two, obj{"category": "parameter"}), "profiler"},
		{"no release", of(timeless, obj{"user_metadata": ""}), "unknown"},
	} {
		if got := read(t, c.file).TorchVersion(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestTorchVersionOfCorpus reads files of PyTorch 2.6: only events show that
// it is no later than 2.7.
func TestTorchVersionOfCorpus(t *testing.T) {
	eachOf(t, corpus(t, "torch/*.pickle", "torch/writers/*", "torch/big/*"), func(t *testing.T, s *snapshot.Snapshot) {
		want := "2.5–2.8"
		if s.Format.BareList {
			want = "2.1 or later"
		}
		for i := range s.Traces {
			if s.Traces[i].Len() > 0 {
				want = "2.5–2.7"
			}
		}
		if got := s.TorchVersion(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestTorchVersionOfWildFiles(t *testing.T) {
	want := map[string]string{
		"3keys-full": "2.3–2.4", "v113-history": "2.0", "pyframes-usermeta": "2.10–2.11", "tiny-state": "2.2",
		"3gpu-expandable-oom": "2.8", "segments-list": "2.1 or later", "fixture-edited": "unknown",
	}
	eachOf(t, corpus(t, "wild/*"), func(t *testing.T, s *snapshot.Snapshot) {
		name := strings.Split(t.Name(), "__")[1]
		if w, ok := want[name]; ok && s.TorchVersion() != w {
			t.Errorf("got %q, want %q", s.TorchVersion(), w)
		}
	})
}

// TestTorchVersionOfOutside takes the release that a recording from outside states,
// whatever its keys are, if it is one that is known.
func TestTorchVersionOfOutside(t *testing.T) {
	for stated, want := range map[string]string{"2.12.1+cu130": "2.12", "2.6.0": "2.6", "7.1": "2.5–2.8", "": "2.5–2.8"} {
		text := `{"segments": [], "device_traces": [[]], "allocator_settings": {}, "external_annotations": [], "strandline_outside": {"pid": 1, "torch": "` + stated + `"}}`
		s, err := snapshot.Read(strings.NewReader(text), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.TorchVersion(); got != want {
			t.Errorf("%q: got %q, want %q", stated, got, want)
		}
	}
}
