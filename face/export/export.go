// Package export writes snapshots in the formats of other tools: pprof profiles,
// folded stacks, CSV, SQLite and Perfetto traces. [Redact] takes out of a snapshot
// what should not be shared.
//
// Sums are those of [timeline.FactsOf]: live are the requested bytes of active
// blocks. Pinned host memory is device -1. An absent value is left out, never
// written as zero.
package export

import (
	"cmp"
	"strings"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// unknown is the frame of a stack that was not recorded, of a file that is not a snapshot.
const unknown = "(stack unknown)"

// frameFor is the frame of a stack that a snapshot lacks.
func frameFor(why timeline.Missing) stack.Frame {
	return stack.Frame{Function: "(" + string(why) + ")"}
}

// missing returns why active blocks of a device have no stack, by their addresses.
func missing(s *snapshot.Snapshot, d snapshot.Device) map[uint64]timeline.Missing {
	bare := map[uint64]stack.ID{}
	eachActive(s, d, func(_ *snapshot.Segment, b *snapshot.Block) {
		if len(s.Stacks.Short(b.Stack)) == 0 {
			bare[b.Addr] = b.Stack
		}
	})
	if len(bare) == 0 {
		return nil
	}
	t, out := timeline.New(s, d), make(map[uint64]timeline.Missing, len(bare))
	for addr, id := range bare {
		out[addr] = t.MissingOf(id, false)
	}
	for i := range t.Allocs {
		if id, ok := bare[t.Addr(i)]; ok && t.Death(i) == timeline.Never {
			out[t.Addr(i)] = t.MissingIn(i, id)
		}
	}
	return out
}

// frameName is the name of a frame's function, otherwise of its file.
func frameName(f stack.Frame) string { return cmp.Or(valid(f.Function), valid(f.File), "??") }

// valid is s in UTF-8: names come from files of any bytes.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// actionName is the action of event k as the file has it.
func actionName(t *snapshot.Trace, k int) string {
	if t.Action[k] == snapshot.OtherAction {
		for _, f := range t.Extra(k) {
			if text, ok := f.Value.(string); ok && f.Key == "action" {
				return short(text)
			}
		}
	}
	return t.Action[k].String()
}

// eachActive calls f with the active blocks of a device and their segments.
func eachActive(s *snapshot.Snapshot, d snapshot.Device, f func(*snapshot.Segment, *snapshot.Block)) {
	for _, i := range d.Segments {
		g := &s.Segments[i]
		for j := range g.Blocks {
			if b := &g.Blocks[j]; b.State.Active() {
				f(g, b)
			}
		}
	}
}
