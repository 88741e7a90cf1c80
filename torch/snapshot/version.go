package snapshot

import (
	"fmt"
	"slices"
	"strings"
)

// releases are PyTorch's that write snapshots, oldest first, as far as they
// can be distinguished.
var releases = []string{
	"1.13", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13", "2.14", "2.15",
}

// OutsideKey is the key of the top level under which a recording from outside describes
// itself, and OutsideTorch that of PyTorch's version in it, such as "2.12.1+cu130".
// PyTorch's tools do not look at them.
const (
	OutsideKey   = "strandline_outside"
	OutsideTorch = "torch"
)

// stated is the release that a recording from outside states, "" elsewhere.
func (s *Snapshot) stated() string {
	for _, f := range s.Extra {
		own, ok := f.Value.([]Field)
		if !ok || f.Key != OutsideKey {
			continue
		}
		for _, x := range own {
			text, _ := x.Value.(string)
			major, rest, _ := strings.Cut(text, ".")
			minor, _, _ := strings.Cut(rest, ".")
			if release := major + "." + minor; x.Key == OutsideTorch && slices.Contains(releases, release) {
				return release
			}
		}
	}
	return ""
}

// TorchVersion is the range of PyTorch releases that write such a file: "2.2",
// "2.5–2.7", "2.12 or later", inferred from the keys that it has and that it
// lacks. It is "profiler" for files that torch.cuda._memory_viz makes of a
// profile, "with torch_npu" for those of Ascend devices, whose keys show nothing
// of the release, "unknown" where no release writes these keys together, and empty for
// one that is drawn from another tool's profiles.
func (s *Snapshot) TorchVersion() string {
	if s.Drawn {
		return ""
	}
	if s.present.category {
		return "profiler"
	}
	if s.Ascend() {
		return "with torch_npu"
	}
	if release := s.stated(); release != "" {
		return release
	}
	first, last := 0, len(releases)-1
	if !s.Format.BareList {
		first = 1
	}
	for _, sign := range s.signs() {
		if sign.has {
			first = max(first, sign.index())
		} else if sign.visible {
			last = min(last, sign.index()-1)
		}
	}
	if s.present.history {
		last = min(last, slices.Index(releases, "2.0"))
	}
	return s.versionRange(first, last)
}

func (s *Snapshot) versionRange(first, last int) string {
	open := last == len(releases)-1
	switch {
	case first > last:
		return "unknown"
	case s.Format.BareList && first == 0 && open: // no block in it
		return "1.13, or memory_snapshot() of any version"
	case open:
		return releases[first] + " or later"
	case first == last:
		return releases[first]
	}
	return releases[first] + "–" + releases[last]
}

// A sign is a key that PyTorch writes since a release. That a file lacks it
// shows something only where it would be visible.
type sign struct {
	key, since   string
	has, visible bool
}

// signs are those of the whole file. Keys of the top level can be missing
// because the file was cut.
func (s *Snapshot) signs() []sign {
	p := &s.present
	events := slices.ContainsFunc(s.Traces, func(t Trace) bool { return t.Len() > 0 })
	blocks := slices.ContainsFunc(s.Segments, func(g Segment) bool { return len(g.Blocks) > 0 })
	top := !s.Format.BareList && s.Partial == nil
	const optional = false // written in some files only
	return []sign{
		{"requested_size", "2.0", p.requested, blocks},
		{"frames of blocks", "2.1", p.blockFrames, blocks},
		{"segment_pool_id", "2.1", p.segmentPools || p.expandable, len(s.Segments) > 0},
		{"time_us", "2.2", p.time, events},
		{"allocator_settings", "2.3", p.settings, top},
		{"external_annotations", "2.5", p.annotations, top},
		{"compile_context", "2.8", p.compile, events},
		s.setting("graph_capture_record_stream_reuse", "2.9", s.Settings != nil),
		{"user_metadata", "2.10", p.metadata, events},
		{"pool_id", "2.12", p.poolInEvents, events},
		s.setting("trace_alloc_overflowed", "2.12", optional),
		s.setting("trace_alloc_max_entries", "2.12", optional),
		s.setting("max_round_threshold", "2.13", s.Settings != nil),
		{"annotate", "2.14", p.annotate, optional},
		{"host_segments", "2.14", p.host || p.host2, top},
	}
}

// setting is the sign that a key of allocator_settings is.
func (s *Snapshot) setting(key, since string, visible bool) sign {
	has := s.Settings != nil && slices.ContainsFunc(s.Settings.fields, func(f Field) bool { return f.Key == key })
	return sign{key, since, has, visible}
}

// mixture states, of a file whose keys are not those of one release, which two
// do not go together; otherwise it is "".
func (s *Snapshot) mixture() string {
	if s.Ascend() {
		return ""
	}
	var newest, missing *sign
	signs := s.signs()
	for i := range signs {
		if signs[i].has {
			newest = &signs[i]
		} else if signs[i].visible && missing == nil {
			missing = &signs[i]
		}
	}
	if newest == nil || missing == nil || newest.index() <= missing.index() {
		return ""
	}
	return fmt.Sprintf("the file has %s, which PyTorch writes since %s, but not %s, which it writes since %s: it was edited or written by something else",
		newest.key, newest.since, missing.key, missing.since)
}

// index is the place of the sign's release among the releases.
func (g *sign) index() int { return slices.Index(releases, g.since) }
