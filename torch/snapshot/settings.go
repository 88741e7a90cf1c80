package snapshot

import (
	"fmt"
	"strandline/torch/pickle"
)

func (b *builder) settings(v pickle.Value) *Settings {
	fields, _ := b.value(v).([]Field)
	return NewSettings(fields)
}

// NewSettings are the settings that fields as PyTorch writes them give.
func NewSettings(fields []Field) *Settings {
	s := &Settings{fields: fields}
	for _, f := range fields {
		switch f.Key {
		case "PYTORCH_CUDA_ALLOC_CONF":
			s.Conf, _ = f.Value.(string)
			s.Conf = clipName(s.Conf)
		case "max_split_size":
			s.MaxSplitSize, _ = f.Value.(int64)
		case "garbage_collection_threshold":
			s.GCThreshold, _ = f.Value.(float64)
		case "expandable_segments":
			s.ExpandableSegments, _ = f.Value.(bool)
		case "roundup_power2_divisions":
			s.Roundup, _ = f.Value.([]Field)
		case "trace_alloc_max_entries":
			for _, x := range listOrOne(f.Value) {
				n, _ := x.(int64)
				s.TraceMaxEntries = append(s.TraceMaxEntries, n)
			}
		case "trace_alloc_overflowed":
			for _, x := range listOrOne(f.Value) {
				on, _ := x.(bool)
				s.TraceOverflowed = append(s.TraceOverflowed, on)
			}
		}
	}
	return s
}

func listOrOne(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

// SetRoundup sets the divisions of each class of sizes, of 1 MiB, 2 MiB and so on.
func (s *Settings) SetRoundup(divisions []int64) {
	s.Roundup = nil
	for i, n := range divisions {
		s.Roundup = append(s.Roundup, Field{fmt.Sprint(1 << i), n})
	}
}

// Fields are the settings as they were read, otherwise as PyTorch 2.6 writes them.
func (s *Settings) Fields() []Field {
	if s.fields != nil {
		return s.fields
	}
	roundup := s.Roundup
	if roundup == nil {
		for size := 1; size <= 1<<15; size *= 2 {
			roundup = append(roundup, Field{fmt.Sprint(size), int64(0)})
		}
	}
	return []Field{
		{"PYTORCH_CUDA_ALLOC_CONF", s.Conf},
		{"max_split_size", s.MaxSplitSize},
		{"garbage_collection_threshold", s.GCThreshold},
		{"expandable_segments", s.ExpandableSegments},
		{"pinned_num_register_threads", int64(1)},
		{"release_lock_on_cudamalloc", false},
		{"pinned_use_cuda_host_register", false},
		{"roundup_power2_divisions", roundup},
	}
}
