package outside

import (
	"time"

	"strandline/host/calls/event"
	"strandline/host/gpu/cudaalloc"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
)

// write fills the snapshot.
func (s *session) write() {
	w := &writer{Snapshot: s.snapshot, history: s.history, streams: map[uint64]snapshot.StreamID{}, pools: map[uint64]snapshot.PoolID{}}
	w.clock = time.Now().UnixNano() - int64(event.Now())
	if s.result.End != nil {
		s.final = s.history.infer()
	}
	w.traces()
	for i := range s.final {
		w.segment(&s.final[i])
	}
	s.settings()
	w.Extra = append(w.Extra, snapshot.Field{Key: snapshot.OutsideKey, Value: s.describe()})
}

// describe returns what the file states about the recording.
func (s *session) describe() []snapshot.Field {
	r := &s.result
	out := []snapshot.Field{
		{Key: "pid", Value: int64(s.options.PID)},
		{Key: snapshot.OutsideTorch, Value: r.Version},
		{Key: "seconds", Value: r.Took.Seconds()},
		{Key: "complete", Value: r.Complete()},
		{Key: "lost_events", Value: int64(r.Lost)},
		{Key: "lost_stacks", Value: int64(r.LostStacks)},
		{Key: "dropped_events", Value: int64(r.Dropped)},
		{Key: "unknown_releases", Value: int64(r.Unknown)},
		{Key: "failed_requests", Value: int64(r.Failed)},
	}
	if len(r.Gaps) > 0 {
		var gaps []any
		for _, g := range r.Gaps {
			gaps = append(gaps, []snapshot.Field{
				{Key: "from_us", Value: g.From.UnixMicro()}, {Key: "to_us", Value: g.To.UnixMicro()},
				{Key: "lost_events", Value: int64(g.Lost)}, {Key: "mended", Value: g.Closed},
			})
		}
		out = append(out, snapshot.Field{Key: "gaps", Value: gaps})
	}
	for _, why := range []struct {
		key string
		err error
	}{{"start_unknown", r.Start}, {"end_inferred", r.End}} {
		if why.err != nil {
			out = append(out, snapshot.Field{Key: why.key, Value: why.err.Error()})
		}
	}
	return out
}

// settings are those that the process was started with. What its program set itself
// is not known.
func (s *session) settings() {
	env, _ := s.process.Environ()
	conf := env["PYTORCH_CUDA_ALLOC_CONF"]
	if conf == "" {
		conf = env["PYTORCH_ALLOC_CONF"]
	}
	set := s.snapshot.Settings
	set.Conf = conf
	if parsed, err := allocator.ParseSettings(conf, 0); err == nil {
		set.ExpandableSegments, set.GCThreshold = parsed.Expandable, parsed.GCThreshold
		if parsed.MaxSplitSize != allocator.Unlimited {
			set.MaxSplitSize = parsed.MaxSplitSize
		}
		set.SetRoundup(parsed.RoundupDivisions[:])
	}
	for i := range s.snapshot.Segments {
		set.ExpandableSegments = set.ExpandableSegments || s.snapshot.Segments[i].Expandable
	}
}

// A writer puts a history into a snapshot.
type writer struct {
	*snapshot.Snapshot
	history *history
	streams map[uint64]snapshot.StreamID
	pools   map[uint64]snapshot.PoolID
	clock   int64 // ns from the events' clock to that of the day
}

func (w *writer) stream(s uint64) snapshot.StreamID {
	id, ok := w.streams[s]
	if !ok {
		id = snapshot.StreamID(len(w.Streams))
		w.Streams = append(w.Streams, s)
		w.streams[s] = id
	}
	return id
}

// pool numbers private pools in the order in which they are met: their own numbers
// are not known.
func (w *writer) pool(s *cudaalloc.Segment) snapshot.PoolID {
	if !s.Private {
		return w.PoolID(snapshot.Pool{})
	}
	id, ok := w.pools[s.Pool]
	if !ok {
		id = w.PoolID(snapshot.Pool{User: int64(len(w.pools) + 1)})
		w.pools[s.Pool] = id
	}
	return id
}

func (w *writer) traces() {
	for i := range w.history.entries {
		e := &w.history.entries[i]
		for int(e.device) >= len(w.Traces) {
			w.Traces = append(w.Traces, snapshot.Trace{Device: len(w.Traces)})
		}
		t := &w.Traces[e.device]
		t.Action = append(t.Action, e.action)
		t.Addr = append(t.Addr, e.addr)
		t.Size = append(t.Size, int64(e.size))
		t.Stream = append(t.Stream, w.stream(e.stream))
		t.Stack = append(t.Stack, e.stack)
		at := (int64(e.time) + w.clock) / int64(time.Microsecond)
		if n := len(t.Time); n > 0 { // the order of events is by another clock
			at = max(at, t.Time[n-1])
		}
		t.Time = append(t.Time, at)
	}
}

func (w *writer) segment(s *cudaalloc.Segment) {
	kind := "large"
	if s.Small {
		kind = "small"
	}
	out := snapshot.Segment{
		Device: s.Device, Addr: s.Addr, TotalSize: int64(s.Size), Stream: w.stream(s.Stream), Type: w.StringID(kind), Pool: w.pool(s),
		Expandable: s.Expandable || w.history.spanOf(s.Addr) != nil, Stack: w.history.segments[s.Addr].stack,
	}
	for _, b := range s.Blocks {
		block := snapshot.Block{Addr: b.Addr, Size: int64(b.Size), Requested: int64(b.Requested)}
		switch {
		case b.Allocated:
			block.State = snapshot.Allocated
			out.AllocatedSize += block.Size
			if l := w.history.live[b.Addr]; l != nil {
				block.Stack = l.stack
			}
		case b.Pending:
			block.State = snapshot.Pending
		}
		if block.State.Active() {
			out.ActiveSize += block.Size
			out.RequestedSize += block.Requested
		}
		out.Blocks = append(out.Blocks, block)
	}
	w.Segments = append(w.Segments, out)
}
