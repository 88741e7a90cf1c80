package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"strandline/units"
)

// internalMetadata is the key of events by which PyTorch marks what it does for
// reasons of its own, and placed the mark of requests at an address.
const (
	internalMetadata = "internal_metadata"
	placed           = "mallocWithAddress"
)

// knownSettings are the keys of allocator_settings.
var knownSettings = map[string]bool{
	"PYTORCH_CUDA_ALLOC_CONF": true, "max_split_size": true, "garbage_collection_threshold": true,
	"expandable_segments": true, "pinned_num_register_threads": true, "release_lock_on_cudamalloc": true,
	"pinned_use_cuda_host_register": true, "roundup_power2_divisions": true, "graph_capture_record_stream_reuse": true,
	"max_round_threshold": true, "max_cached_size": true, "trace_alloc_max_entries": true, "trace_alloc_overflowed": true,
	"last_allocator_settings": true,
}

// Unknown names, a sentence each, what the file has that this reader does not know,
// so that figures which depend on it cannot be trusted.
func (s *Snapshot) Unknown() (out []string) {
	actions, marks := map[string]int{}, map[string]int{}
	for i := range s.Traces {
		for _, x := range s.Traces[i].extra {
			for _, f := range x.fields {
				text, _ := f.Value.(string)
				switch {
				case f.Key == keyNames[kAction] && s.Traces[i].Action[x.event] == OtherAction:
					actions[text]++
				case f.Key == internalMetadata && text != "" && text != placed:
					marks[text]++
				}
			}
		}
	}
	out = append(out, unknownOf("action", actions)...)
	out = append(out, unknownOf(internalMetadata, marks)...)
	if len(s.UnknownKeys) > 0 {
		out = append(out, "unknown keys: "+strings.Join(s.UnknownKeys, ", "))
	}
	states := 0
	for i := range s.Segments {
		for j := range s.Segments[i].Blocks {
			if s.Segments[i].Blocks[j].State == UnknownState {
				states++
			}
		}
	}
	if states > 0 {
		out = append(out, fmt.Sprintf("unknown block state (%s)", units.Plural(int64(states), "block")))
	}
	if s.Settings != nil {
		for _, f := range s.Settings.fields {
			if key, ok := f.Key.(string); ok && !knownSettings[key] {
				out = append(out, "unknown allocator setting "+strconv.Quote(units.Clip(key, 64)))
			}
		}
	}
	return out
}

// unknownOf are the sentences on unknown values of a key.
func unknownOf(key string, counts map[string]int) (out []string) {
	const maxNamed = 8
	names := slices.Sorted(maps.Keys(counts))
	for _, name := range names[:min(len(names), maxNamed)] {
		out = append(out, fmt.Sprintf("unknown %s %q (%s)", key, units.Clip(name, 64), units.Plural(int64(counts[name]), "event")))
	}
	return out
}

// Placed are the events of requests that PyTorch serves at an address (2.13 on). Up to
// 2.14 their mark stands where the program's own metadata does.
func (s *Snapshot) Placed(t *Trace) map[int]bool {
	out := map[int]bool{}
	for k, id := range t.UserMetadata {
		if t.Action[k] == Alloc && s.String(id) == placed {
			out[k] = true
		}
	}
	for _, x := range t.extra {
		for _, f := range x.fields {
			if f.Key == internalMetadata && f.Value == placed && t.Action[x.event] == Alloc {
				out[x.event] = true
			}
		}
	}
	return out
}
