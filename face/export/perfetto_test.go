package export_test

import (
	"bytes"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"strandline/face/export"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A message is the values of a protobuf by field: uint64 or []byte.
type message map[protowire.Number][]any

func decode(t testing.TB, data []byte) message {
	t.Helper()
	m := message{}
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		data = data[n:]
		var v any
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(data)
		default:
			t.Fatalf("field %d is of type %d", field, kind)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		m[field] = append(m[field], v)
		data = data[n:]
	}
	return m
}

func (m message) number(field protowire.Number) int64 {
	if len(m[field]) == 0 {
		return 0
	}
	return int64(m[field][0].(uint64))
}

func (m message) text(field protowire.Number) string {
	if len(m[field]) == 0 {
		return ""
	}
	return string(m[field][0].([]byte))
}

func (m message) message(t testing.TB, field protowire.Number) message {
	t.Helper()
	return decode(t, []byte(m.text(field)))
}

// A track is what a trace has on one track, in order.
type track struct {
	name   string
	parent int64
	unit   int64
	values []int64 // of a counter
	open   []string
	closed []string // names of slices that have ended
	marks  []string // names of instants
	now    int64
}

// tracks reads a trace as Perfetto does: interned names, slices that nest, times
// that do not go back on a track.
func tracks(t testing.TB, s *snapshot.Snapshot) map[int64]*track {
	t.Helper()
	out := map[int64]*track{}
	names := map[int64]string{}
	trace := decode(t, write(t, s, func(w *bytes.Buffer) error { return export.Perfetto(w, s) }).Bytes())
	for i, data := range trace[1] {
		p := decode(t, data.([]byte))
		if p.number(10) != 1 || (p.number(13) == 1) != (i == 0) {
			t.Fatalf("packet %d: sequence %d, flags %d", i, p.number(10), p.number(13))
		}
		for _, n := range p.message(t, 12)[2] {
			name := decode(t, n.([]byte))
			names[name.number(1)] = name.text(2)
		}
		if len(p[60]) > 0 {
			d := p.message(t, 60)
			out[d.number(1)] = &track{name: d.text(2), parent: d.number(5), unit: d.message(t, 8).number(3)}
		}
		if len(p[11]) > 0 {
			e := p.message(t, 11)
			out[e.number(11)].event(t, p.number(8), e, names[e.number(10)])
		}
	}
	return out
}

// event adds an event to the track.
func (tr *track) event(t testing.TB, at int64, e message, name string) {
	t.Helper()
	if at < tr.now {
		t.Errorf("track %s goes back from %d to %d", tr.name, tr.now, at)
	}
	tr.now = at
	switch n := len(tr.open); e.number(9) {
	case 1:
		tr.open = append(tr.open, name)
	case 2:
		tr.closed, tr.open = append(tr.closed, tr.open[n-1]), tr.open[:n-1]
	case 3:
		tr.marks = append(tr.marks, name)
	case 4:
		tr.values = append(tr.values, e.number(30))
	}
}

func TestPerfetto(t *testing.T) {
	eachSnapshot(t, func(t *testing.T, s *snapshot.Snapshot) {
		found := tracks(t, s)
		slices, marks := 0, 0
		last, peak := map[string]int64{}, map[string]int64{}
		for _, tr := range found {
			if len(tr.open) > 0 {
				t.Errorf("slices %q do not end", tr.open)
			}
			slices += len(tr.closed)
			marks += len(tr.marks)
			if tr.parent == 0 {
				continue
			}
			key := found[tr.parent].name + " " + tr.name
			for i, v := range tr.values {
				last[key] = v
				if i == 0 || v > peak[key] {
					peak[key] = v
				}
			}
			if (tr.unit == 3) != (len(tr.values) > 0) {
				t.Errorf("track %s: unit %d, %d values", key, tr.unit, len(tr.values))
			}
		}
		for i, d := range timeline.FactsOf(s).Devices {
			key := "device " + string(rune('0'+d.Device))
			if last[key+" requested"] != d.RequestedBytes || last[key+" reserved"] != d.ReservedBytes {
				t.Errorf("%s ends at %v, facts %+v", key, last, d)
			}
			if d.PeakRequested != nil && (peak[key+" requested"] != *d.PeakRequested || peak[key+" reserved"] != *d.PeakReserved) {
				t.Errorf("%s peaks at %v, facts %+v", key, peak, d)
			}
			for _, a := range timeline.FactsOf(s).Lines[i].Trace.Action {
				if a == snapshot.OOM || a == snapshot.SnapshotTaken {
					marks--
				}
			}
		}
		starts := 0
		for _, a := range s.Annotations {
			if !a.End {
				starts++
			}
		}
		if slices < starts || marks != 0 {
			t.Errorf("%d slices of %d scopes, %d marks too many", slices, starts, marks)
		}
	})
}

// Scopes of two threads overlap, one has no start and one no end.
func TestPerfettoScopes(t *testing.T) {
	s := hostile()
	s.Traces[0].Time = []int64{100, 110, 190}
	s.Annotations = []snapshot.Annotation{
		{Name: "lost", End: true, Time: 105}, {Name: "a", Time: 110}, {Name: "b", Time: 120}, {Name: "b", End: true, Time: 130},
		{Name: "c", Time: 140}, {Name: "a", End: true, Time: 150}, {Name: "c", End: true, Time: 160}, {Name: "open", Time: 165},
		{Name: "empty", Time: 170}, {Name: "empty", End: true, Time: 170}, {Name: "far", Device: 3, Time: 1},
	}
	var got [][]string
	found := tracks(t, s)
	for id := range int64(len(found)) {
		if tr := found[id+1]; tr != nil && tr.name == "annotations" {
			got = append(got, tr.closed)
		}
	}
	want := [][]string{{"lost", "b", "a", "empty", "open"}, {"c"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("slices %q, want %q", got, want)
	}
}

// Without times, events are one microsecond apart; a device without
// events starts where another one does.
func TestPerfettoTimes(t *testing.T) {
	s := hostile()
	found := tracks(t, s)
	if r := found[2]; r.name != "requested" || !reflect.DeepEqual(r.values, []int64{900, 1900}) || r.now != 1000 {
		t.Errorf("track %+v", *r)
	}
	other := s.Segments[0]
	other.Device = 1
	s.Segments = append(s.Segments, other)
	s.Traces[0].Time = []int64{100, 110, 190}
	for _, tr := range tracks(t, s) {
		if tr.values != nil && tr.now < 100_000 {
			t.Errorf("track %+v", *tr)
		}
	}
}
