package snapshot

import (
	"maps"

	"strandline/torch/pickle"
)

// conclusion allows for what is put together when the reading has ended.
func (b *builder) conclusion() {
	b.budget.Allow(finalBytes)
}

// Salvage keeps what was read of a file that ended early.
func (b *builder) Salvage(rest []pickle.Value) {
	// What is unexpected here is unexpected because of the cut.
	defer func(odd map[string]int) { b.odd = odd }(maps.Clone(b.odd))
	b.conclusion()
	salvager{b}.root(rest)
}

// A salvager puts what was on the machine's stack where it was going: items
// into the container below them, a segment's blocks into the segment. What
// follows a dict that is not whole belongs to it.
type salvager struct{ *builder }

func (s salvager) root(rest []pickle.Value) {
	s.salvaged = pickle.Value{Kind: absent}
	if len(rest) == 0 {
		return
	}
	s.salvaged = rest[0]
	switch root := rest[0]; root.Kind {
	case pickle.List:
		s.listOf(root, rest[1:], cSegment)
	case pickle.Dict:
		s.dict(root, rest[1:], func(key uint64, v pickle.Value, inner []pickle.Value) {
			if v.Kind != pickle.List {
				return
			}
			switch key {
			case kSegments, kHostSegments:
				s.listOf(v, inner, cSegment)
			case kDeviceTraces, kHostTraces:
				s.traces(v, inner)
			case kExternalAnnotations:
				s.listOf(v, inner, cAnnotation)
			}
		})
	}
}

// dict adds to a dict the pairs that were read. The last value may be a
// container that was still being filled, with what is behind it.
func (s salvager) dict(dict pickle.Value, rest []pickle.Value, inside func(uint64, pickle.Value, []pickle.Value)) {
	if len(rest) > 0 && rest[0].Kind == pickle.Mark {
		rest = rest[1:]
	}
	var pairs []pickle.Value
	for len(rest) >= 2 && rest[0].Kind == pickle.String {
		key, v := rest[0], rest[1]
		rest = rest[2:]
		pairs = append(pairs, key, v)
		if len(rest) > 0 && rest[0].Kind != pickle.String {
			inside(key.N, v, rest)
			break
		}
	}
	if len(pairs) > 0 {
		s.SetItems(dict.N, pairs)
	}
	s.settled(dict.N)
}

// listOf adds to a list the whole records of one class, and the one
// that was being read.
func (s salvager) listOf(list pickle.Value, rest []pickle.Value, want class) {
	for i, v := range rest {
		if v.Kind == pickle.Mark {
			continue
		}
		if v.Kind != pickle.Dict {
			return
		}
		if s.settled(v.N).class() != want {
			if want == cSegment {
				s.dict(v, rest[i+1:], func(key uint64, v pickle.Value, inner []pickle.Value) {
					if key == kBlocks && v.Kind == pickle.List {
						s.listOf(v, inner, cBlock)
					}
				})
				if s.settled(v.N).class() == want {
					s.Append(list.N, []pickle.Value{v})
				}
			}
			return
		}
		s.Append(list.N, []pickle.Value{v})
	}
}

// traces adds the traces to the list of traces, and to the last of them
// the events that were read of it.
func (s salvager) traces(list pickle.Value, rest []pickle.Value) {
	var traces, events []pickle.Value
	for _, v := range rest {
		if v.Kind == pickle.List && len(events) == 0 {
			traces = append(traces, v)
		} else if v.Kind == pickle.Dict && s.settled(v.N).class() == cEvent {
			events = append(events, v)
		} else if v.Kind != pickle.Mark {
			break
		}
	}
	if len(traces) == 0 {
		return
	}
	for _, v := range events {
		s.Append(traces[len(traces)-1].N, []pickle.Value{v})
	}
	s.Append(list.N, traces)
}
