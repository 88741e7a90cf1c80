package snapshot

import (
	"slices"

	"strandline/stack"
)

// Measured returns a snapshot of what s has columns for, with other stacks and
// texts: nothing else of s is in it, neither its name, nor keys that PyTorch does
// not write, nor values of the wrong type. Stacks has the ids of s.Stacks. Text
// returns the replacement of a text of a given column; an empty text is
// not replaced. Settings and the keys of the top level are left out.
// The measured columns are shared with s.
func (s *Snapshot) Measured(stacks *stack.Table, text func(column, value string) string) *Snapshot {
	out := newBuilder().snap
	out.Format, out.Partial, out.present = s.Format, s.Partial, s.present
	out.Stacks, out.Streams, out.Pools = stacks, s.Streams, s.Pools
	m := measurer{from: s, to: out, text: text}
	out.details = make([]detail, 1, max(1, len(s.details)))
	out.Segments, out.Traces = m.segments(s.Segments), m.traces(s.Traces)
	for _, a := range s.Annotations {
		out.Annotations = append(out.Annotations, Annotation{
			Name: m.textOf("annotation", a.Name), End: a.End, Device: a.Device, Time: a.Time, lacks: a.lacks | keysOf(a.Extra),
		})
	}
	out.check()
	return out
}

type measurer struct {
	from, to *Snapshot
	text     func(column, value string) string
}

func (m *measurer) textOf(column, value string) string {
	if value == "" {
		return ""
	}
	return m.text(column, value)
}

func (m *measurer) segments(list []Segment) []Segment {
	out := slices.Clone(list)
	for i := range out {
		g := &out[i]
		g.lacks |= keysOf(g.Extra)
		g.Extra, g.Type = nil, m.column("segment_type", []StringID{g.Type})[0]
		g.Blocks = slices.Clone(g.Blocks)
		for j := range g.Blocks {
			g.Blocks[j] = m.block(g.Blocks[j])
		}
	}
	return out
}

func (m *measurer) block(b Block) Block {
	var d detail
	if m.from.details != nil {
		for _, h := range m.from.details[b.detail].history {
			d.history = append(d.history, historyEntry{addr: h.addr, size: h.size, stack: h.stack, lacks: h.lacks | keysOf(h.extra)})
		}
	}
	if b.State == UnknownState { // without a state it would not be a block
		d.extra = []Field{{keyNames[kState], UnknownState.String()}}
	}
	b.detail = 0
	if d.history != nil || d.extra != nil {
		b.detail = uint32(len(m.to.details))
		m.to.details = append(m.to.details, d)
	}
	return b
}

func (m *measurer) traces(list []Trace) []Trace {
	var out []Trace
	for i := range list {
		from := &list[i]
		t := Trace{Device: from.Device, Events: from.Events}
		t.CompileContext = m.column("compile_context", t.CompileContext)
		t.UserMetadata = m.column("user_metadata", t.UserMetadata)
		t.Category = m.column("category", t.Category)
		for _, x := range from.extra {
			x.lacks |= keysOf(x.fields)
			x.fields = nil
			if t.Action[x.event] == OtherAction {
				x.fields = []Field{{keyNames[kAction], OtherAction.String()}}
			}
			t.extra = append(t.extra, x)
		}
		out = append(out, t)
	}
	return out
}

// column returns a column with the replacements of its texts.
func (m *measurer) column(name string, ids []StringID) []StringID {
	if ids == nil {
		return nil
	}
	fresh := map[StringID]StringID{0: 0}
	out := make([]StringID, len(ids))
	for k, id := range ids {
		to, ok := fresh[id]
		if !ok {
			to = m.to.StringID(m.textOf(name, m.from.String(id)))
			fresh[id] = to
		}
		out[k] = to
	}
	return out
}
