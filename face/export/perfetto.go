package export

import (
	"bufio"
	"cmp"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"strandline/internal/sorts"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// The fields of Perfetto's messages that are written, as of protos/perfetto/trace
// in its repository.
const (
	tracePacket protowire.Number = 1

	packetClocks    protowire.Number = 6
	packetTimestamp protowire.Number = 8 // ns
	packetSequence  protowire.Number = 10
	packetEvent     protowire.Number = 11
	packetInterned  protowire.Number = 12
	packetFlags     protowire.Number = 13
	packetTrack     protowire.Number = 60

	clocksClock    protowire.Number = 1
	clockID        protowire.Number = 1
	clockTimestamp protowire.Number = 2

	trackUUID    protowire.Number = 1
	trackName    protowire.Number = 2
	trackParent  protowire.Number = 5
	trackCounter protowire.Number = 8
	counterUnit  protowire.Number = 3

	eventArgument protowire.Number = 4
	eventType     protowire.Number = 9
	eventNameID   protowire.Number = 10
	eventTrack    protowire.Number = 11
	eventCounter  protowire.Number = 30

	argumentNameID protowire.Number = 1
	argumentInt    protowire.Number = 4
	argumentText   protowire.Number = 6

	internedEventNames    protowire.Number = 2
	internedArgumentNames protowire.Number = 3
	internedID            protowire.Number = 1
	internedName          protowire.Number = 2
)

// Their values.
const (
	stateCleared, needsState             = 1, 2       // sequence flags
	sliceBegin, sliceEnd, instant, count = 1, 2, 3, 4 // types of events
	unitBytes                            = 3
	clockRealtime, clockBoottime         = 1, 6
)

// Perfetto writes a trace for ui.perfetto.dev and Perfetto's trace processor. A
// device has two counters, the bytes requested and reserved after each event;
// slices of its annotations; and instants where memory ran out or a snapshot was
// taken. Times are those of the history. Where it has none, event k is at
// k microseconds.
func Perfetto(w io.Writer, s *snapshot.Snapshot) error {
	out := bufio.NewWriterSize(w, 1<<16)
	t := &tracer{w: out, s: s, ids: map[internKey]uint64{}}
	for _, d := range s.Devices() {
		t.device(d)
	}
	if t.err != nil {
		return t.err
	}
	return out.Flush()
}

// A tracer writes the packets of one sequence.
type tracer struct {
	w        *bufio.Writer
	s        *snapshot.Snapshot
	tracks   uint64
	packets  int
	ids      map[internKey]uint64 // of interned texts
	interned []byte               // those not yet written
	buffer   []byte
	err      error
}

// An internKey is a text and the field of the interned data that has it.
type internKey struct {
	field protowire.Number
	text  string
}

// intern is the id of a text.
func (t *tracer) intern(field protowire.Number, text string) uint64 {
	key := internKey{field, valid(text)}
	id, ok := t.ids[key]
	if !ok {
		id = uint64(len(t.ids) + 1)
		t.ids[key] = id
		t.interned = appendMessage(t.interned, field, appendText(appendInt(nil, internedID, id), internedName, key.text))
	}
	return id
}

func appendInt(to []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), v)
}

func appendText(to []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), v)
}

func appendMessage(to []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), v)
}

// packet writes a packet with one message in it. at is microseconds, or Never.
func (t *tracer) packet(at int64, field protowire.Number, message []byte) {
	p := t.buffer[:0]
	if at != timeline.Never {
		p = appendInt(p, packetTimestamp, nanoseconds(at))
	}
	p = appendInt(p, packetSequence, 1)
	flags := uint64(needsState)
	if t.packets == 0 {
		flags = stateCleared
	}
	p = appendInt(p, packetFlags, flags)
	if len(t.interned) > 0 {
		p = appendMessage(p, packetInterned, t.interned)
		t.interned = t.interned[:0]
	}
	p = appendMessage(p, field, message)
	t.buffer = p
	t.packets++
	head := protowire.AppendVarint(protowire.AppendTag(nil, tracePacket, protowire.BytesType), uint64(len(p)))
	t.write(head)
	t.write(p)
}

func nanoseconds(us int64) uint64 { return uint64(max(us, 0)) * 1000 }

func (t *tracer) write(p []byte) {
	if t.err == nil {
		_, t.err = t.w.Write(p)
	}
}

// track describes a track, with more fields if any, and returns its id.
func (t *tracer) track(name string, parent uint64, more []byte) uint64 {
	t.tracks++
	m := appendText(appendInt(nil, trackUUID, t.tracks), trackName, name)
	if parent != 0 {
		m = appendInt(m, trackParent, parent)
	}
	t.packet(timeline.Never, packetTrack, append(m, more...))
	return t.tracks
}

// device writes all that is known of a device.
func (t *tracer) device(d snapshot.Device) {
	root := t.track(snapshot.DeviceName(d.Index), 0, nil)
	c := newClock(t.s, d)
	if t.packets == 1 && c.first > 0 {
		t.clocks(c.first)
	}
	t.counters(d, root, c)
	t.instants(d, root, c)
	t.annotations(d, root, c)
}

// clocks states that the clock of the trace shows the time of day.
func (t *tracer) clocks(at int64) {
	var m []byte
	for _, id := range []uint64{clockBoottime, clockRealtime} {
		m = appendMessage(m, clocksClock, appendInt(appendInt(nil, clockID, id), clockTimestamp, nanoseconds(at)))
	}
	t.packet(at, packetClocks, m)
}

// counters writes the bytes requested and reserved, each time they change.
func (t *tracer) counters(d snapshot.Device, root uint64, c *clock) {
	bytes := appendMessage(nil, trackCounter, appendInt(nil, counterUnit, unitBytes))
	tracks := [2]uint64{t.track("requested", root, bytes), t.track("reserved", root, bytes)}
	line := timeline.New(t.s, d)
	last := [2]int64{line.StartRequested, line.StartReserved}
	for i, v := range last {
		t.count(c.first, tracks[i], v)
	}
	line.Walk(func(k int, requested, reserved int64) bool {
		at := c.at(k)
		for i, v := range [2]int64{requested, reserved} {
			if v != last[i] {
				t.count(at, tracks[i], v)
				last[i] = v
			}
		}
		return t.err == nil
	})
}

func (t *tracer) count(at int64, track uint64, v int64) {
	m := appendInt(appendInt(nil, eventType, count), eventTrack, track)
	t.packet(at, packetEvent, appendInt(m, eventCounter, uint64(v)))
}

// instants writes the errors and the marks of a history.
func (t *tracer) instants(d snapshot.Device, root uint64, c *clock) {
	var track uint64
	for k, action := range d.Trace.Action {
		at := c.at(k)
		if action != snapshot.OOM && action != snapshot.SnapshotTaken {
			continue
		}
		if track == 0 {
			track = t.track("allocator", root, nil)
		}
		name, arguments := "snapshot", t.argument("event", int64(k))
		if action == snapshot.OOM {
			name = "out of memory"
			arguments = append(arguments, t.argument("request", d.Trace.Size[k])...)
			arguments = append(arguments, t.argument("device_free", d.Trace.DeviceFree(k))...)
			if site := t.s.Stacks.Site(d.Trace.Stack[k]); site.File != "" {
				arguments = append(arguments, t.argument("site", foldedFrame(site))...)
			}
		}
		t.event(at, instant, track, name, arguments)
	}
}

// argument returns an argument of an event: a number or a text.
func (t *tracer) argument(name string, value any) []byte {
	m := appendInt(nil, argumentNameID, t.intern(internedArgumentNames, name))
	switch v := value.(type) {
	case int64:
		m = appendInt(m, argumentInt, uint64(v))
	case string:
		m = appendText(m, argumentText, v)
	}
	return appendMessage(nil, eventArgument, m)
}

func (t *tracer) event(at int64, kind, track uint64, name string, more []byte) {
	m := appendInt(appendInt(nil, eventType, kind), eventTrack, track)
	if name != "" {
		m = appendInt(m, eventNameID, t.intern(internedEventNames, name))
	}
	t.packet(at, packetEvent, append(m, more...))
}

// A clock gives the time of events, which never goes back.
type clock struct {
	times       []int64 // nil where the history has none
	first, last int64   // the history's, annotations included
	now         int64
}

// newClock is the clock of a device. One without times starts where the history
// of the others starts, if they have one.
func newClock(s *snapshot.Snapshot, d snapshot.Device) *clock {
	c := &clock{times: d.Trace.Time}
	if d.Trace.Len() == 0 {
		c.times = nil
	}
	for i := range s.Traces {
		if c.times == nil || s.Traces[i].Device == d.Index {
			c.span(s.Traces[i].Time...)
		}
	}
	for i := range s.Annotations {
		if c.times == nil || s.Annotations[i].Device == d.Index {
			c.span(s.Annotations[i].Time)
		}
	}
	c.now = c.first
	return c
}

// span widens the clock's time. 0 is unknown.
func (c *clock) span(times ...int64) {
	for _, at := range times {
		if at > 0 && (c.first == 0 || at < c.first) {
			c.first = at
		}
		c.last = max(c.last, at)
	}
}

// at is the time of event k. Events are asked for in order, again from 0.
func (c *clock) at(k int) int64 {
	if c.times == nil {
		return c.first + int64(k)
	}
	if k == 0 {
		c.now = c.first
	}
	c.now = max(c.now, c.times[k])
	return c.now
}

// A scope is an annotation from its start to its end. One that has no start or
// no end in the file reaches to the end of the history there.
type scope struct {
	name       string
	start, end int64
}

// scopes are the annotations of a device, by start, those that hold others first.
func scopes(s *snapshot.Snapshot, device int, c *clock) (out []scope) {
	open := map[string][]int{}
	for _, a := range s.Annotations {
		starts := open[a.Name]
		switch {
		case a.Device != device:
		case !a.End:
			open[a.Name] = append(starts, len(out))
			out = append(out, scope{a.Name, a.Time, c.last})
		case len(starts) == 0:
			out = append(out, scope{a.Name, c.first, a.Time})
		default:
			out[starts[len(starts)-1]].end = a.Time
			open[a.Name] = starts[:len(starts)-1]
		}
	}
	for i := range out {
		out[i].end = max(out[i].start, out[i].end)
	}
	sorts.StableBy(out, func(a, b scope) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	return out
}

// maxLanes is how many tracks the annotations of a device take. Scopes that
// still overlap are cut short.
const maxLanes = 64

// A lane is a track of scopes that nest.
type lane struct {
	track uint64
	open  []int64 // ends, the outermost first
}

// annotations writes the scopes of a device. Those of several threads may
// overlap, and a track can only hold scopes that nest, so there may be several.
func (t *tracer) annotations(d snapshot.Device, root uint64, c *clock) {
	var lanes []*lane
	for _, s := range scopes(t.s, d.Index, c) {
		var to *lane
		for _, l := range lanes {
			t.close(l, s.start)
			if to == nil && (len(l.open) == 0 || s.end <= l.open[len(l.open)-1]) {
				to = l
			}
		}
		switch {
		case to == nil && len(lanes) < maxLanes:
			to = &lane{track: t.track("annotations", root, nil)}
			lanes = append(lanes, to)
		case to == nil:
			to = lanes[len(lanes)-1]
			s.end = to.open[len(to.open)-1]
		}
		t.event(s.start, sliceBegin, to.track, s.name, nil)
		to.open = append(to.open, s.end)
	}
	for _, l := range lanes {
		t.close(l, c.last)
	}
}

// close ends the scopes of a lane that do not reach beyond a time.
func (t *tracer) close(l *lane, at int64) {
	for n := len(l.open); n > 0 && l.open[n-1] <= at; n = len(l.open) {
		t.event(l.open[n-1], sliceEnd, l.track, "", nil)
		l.open = l.open[:n-1]
	}
}
