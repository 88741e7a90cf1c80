package engine

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"time"

	"strandline/face/api/page"
	"strandline/internal/lazyregexp"
	"strandline/torch/snapshot"
	"strandline/torch/tile"
	"strandline/torch/timeline"
	"strandline/units"
)

// patience is how long a question for changes of the session waits.
const patience = 10 * time.Second

func (q *question) session() (any, error) {
	if q.has("since") {
		since, err := q.number("since", 0, 0, 1<<62)
		if err != nil {
			return nil, err
		}
		q.e.mu.Lock()
		version, changed := q.e.version, q.e.changed
		q.e.mu.Unlock()
		if int64(version) == since {
			select {
			case <-changed:
			case <-time.After(patience):
			case <-q.ctx.Done():
			}
		}
	}
	return q.e.Session(), nil
}

// Session returns how far reading and judging the files is.
func (e *Engine) Session() page.Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	doc := page.Session{Version: e.version, Files: []page.File{}, Skipped: e.others, Order: e.order, Findings: e.findingsState, Job: e.ofJob, Live: e.live, Replaced: e.replaced}
	for i, f := range e.files {
		if f.state == skipped {
			continue
		}
		if len(doc.Files) == 0 {
			doc.Title = f.name()
		}
		doc.Files = append(doc.Files, f.session(i))
	}
	if n := len(doc.Files); n > 1 {
		doc.Title += fmt.Sprintf(" and %d more", n-1)
	}
	return doc
}

// Live states whether the files are of a recording that is still written.
func (e *Engine) Live(more bool) { e.change(func() { e.live = more }) }

// Replaced states that a page of more files has taken the place of this one.
func (e *Engine) Replaced() { e.change(func() { e.replaced = true }) }

func (f *file) session(i int) page.File {
	out := page.File{F: i, Name: f.name(), Path: f.Path, State: f.state, Read: f.read, Devices: []int{}, Blocks: f.blocks}
	if process := f.process; process != "" {
		out.Process = &process
	}
	if f.Size > 0 {
		out.Size = &f.Size
	}
	if f.err != nil {
		text := f.err.Error()
		out.Error = &text
	}
	if f.content == nil {
		return out
	}
	out.Fingerprint, out.Read = f.fingerprint, max(f.read, f.Size)
	if p := f.snap.Partial; p != nil {
		text := fmt.Sprintf("reading ended at %s: %v", p.Place(), p.Err)
		out.Partial = &text
	}
	events, peak := 0, int64(-1)
	for _, d := range f.devices {
		h := d.requested.h
		out.Devices = append(out.Devices, h.Device)
		events += h.Events()
		if most := max(h.PeakRequested.Bytes, h.EndRequested); most > peak && (h.Device != snapshot.Host || peak < 0) {
			peak, out.Main = most, &h.Device
		}
	}
	peak = max(peak, 0)
	out.Events, out.Peak = &events, &peak
	return out
}

func (q *question) file() (any, error) {
	f, err := q.content()
	if err != nil {
		return nil, err
	}
	return f.facts, nil
}

func (q *question) device() (any, error) {
	f, d, err := q.dev()
	if err != nil {
		return nil, err
	}
	return f.device(d), nil
}

// device are the facts of a device of the file.
func (c *content) device(d *measured) page.Device {
	h := d.h
	doc := page.Device{
		Device: h.Device, Events: h.Events(), Allocations: len(h.Allocs), Measures: []string{asRequested, asReserved}, Groupings: d.groupings(),
		Start: d.sums(timeline.Never), End: d.sums(h.Events() - 1),
		Peak:         page.Moment{Event: h.Peak().Event, Bytes: h.Peak().Bytes},
		PeakReserved: page.Moment{Event: h.PeakReserved.Event, Bytes: h.PeakReserved.Bytes},
		Coverage:     coverageOf(c.snap, h), Scopes: d.steps(),
	}
	doc.Marks, doc.MarksLeftOut = d.marks().shown, d.marks().left
	doc.Kept, doc.Pending = h.EndsAs(tile.Kept), h.EndsAs(tile.Pending)
	doc.Version = c.snap.TorchVersion()
	if set := c.snap.Settings; set != nil {
		doc.Settings = &set.Conf
		if h.Device >= 0 && h.Device < len(set.TraceMaxEntries) {
			doc.MostEvents = &set.TraceMaxEntries[h.Device]
		}
	}
	doc.Capacity = capacityOf(h)
	switch r := d.replayed.Load(); {
	case r == nil:
	case r.sizes == nil:
		doc.MeasuresWhy = &r.why
	default:
		doc.Measures = append(doc.Measures, asAllocated)
	}
	if axis := d.time(); axis != nil {
		doc.Time = &page.Time{Start: axis.Start, End: axis.End, Span: axis.Span, Folds: append([]tile.Fold{}, axis.Folds...)}
	} else {
		why := "the file has no times: PyTorch records them since 2.2"
		switch {
		case h.Snap.Drawn:
			why = "profiles of JAX do not state when they were taken"
		case h.Events() == 0:
			why = "there are no events"
		}
		doc.TimeWhy = &why
	}
	return doc
}

// capacityOf is what PyTorch could have: what was reserved and what the driver had left when
// it lacked room for a request. It is nil if that never happened.
func capacityOf(h *tile.History) (out *int64) {
	e := &h.Trace.Events
	for k, a := range e.Action {
		if a != snapshot.OOM || !h.Trace.HasDeviceFree(k) || e.DeviceFree(k) >= e.Size[k] {
			continue
		}
		if n := h.Reserved(k) + e.DeviceFree(k); out == nil || n > *out {
			out = &n
		}
	}
	return out
}

// sums are the bytes after event k.
func (d *measured) sums(k int) page.Sums {
	return page.Sums{Live: d.h.Live(k), Requested: d.requested.h.Live(k), Reserved: d.h.Reserved(k)}
}

// coverageOf returns how much of the device's life the file covers.
func coverageOf(s *snapshot.Snapshot, h *tile.History) page.Coverage {
	switch {
	case s.Partial != nil:
		text := fmt.Sprintf("reading ended at %s: %v", s.Partial.Place(), s.Partial.Err)
		if doubt := h.Doubt(); doubt != "" {
			text += "; " + doubt
		}
		return page.Coverage{Kind: "damaged", Text: text}
	case len(h.Faults) > 0:
		return page.Coverage{Kind: "damaged", Text: "the file contradicts itself, so figures may be wrong: " + h.Faults[0]}
	case h.Events() == 0:
		return page.Coverage{Kind: "state", Text: "no events were recorded; only the state is known"}
	case h.Complete():
		return page.Coverage{Kind: "exact", Text: "the history covers the device's whole life"}
	case s.RingFull(h.Device):
		return page.Coverage{Kind: "ring", Text: fmt.Sprintf("the ring of %s events overflowed: earlier events are lost; %s were live when they begin",
			units.Count(int64(h.Events())), units.Bytes(h.StartRequested))}
	}
	return page.Coverage{Kind: "late", Text: fmt.Sprintf("recording began late: %s were already live", units.Bytes(h.StartRequested))}
}

// maxMarks is how many marks a device sends. Releases are marked that return
// a share of the highest reserved memory.
const (
	maxMarks     = 2000
	maxReleases  = 100
	releaseShare = 100
)

// marks are those that are shown, and how many are not.
type marks struct {
	shown []page.Mark
	left  int
}

// A release is a run of events that returned bytes to the driver.
type release struct {
	last  int // event
	bytes int64
}

// marksOf are the events to be marked: where memory ran out, where snapshots were
// taken, and where much was returned to the driver, as by empty_cache().
func marksOf(h *tile.History) marks {
	out := []page.Mark{}
	var releases []release
	for k, a := range h.Trace.Action {
		switch a {
		case snapshot.OOM:
			out = append(out, page.Mark{Event: k, Kind: a.String(), Label: "out of memory: requested " + units.Bytes(h.Trace.Size[k])})
		case snapshot.SnapshotTaken:
			out = append(out, page.Mark{Event: k, Kind: a.String(), Label: "snapshot"})
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			size := h.Trace.Size[k]
			if n := len(releases); n > 0 && releases[n-1].last == k-1 {
				releases[n-1] = release{k, releases[n-1].bytes + size}
				continue
			}
			releases = append(releases, release{k, size})
		}
	}
	sortBy(releases, func(r *release) int64 { return -r.bytes })
	for _, r := range releases[:min(len(releases), maxReleases)] {
		if r.bytes >= h.PeakReserved.Bytes/releaseShare {
			out = append(out, page.Mark{Event: r.last, Kind: "release", Label: "gave " + units.Bytes(r.bytes) + " back to the driver"})
		}
	}
	left := max(len(out)-maxMarks, 0)
	out = out[:len(out)-left]
	sortBy(out, func(m *page.Mark) int { return m.Event })
	return marks{out, left}
}

// maxScopes is how many scopes a device sends.
const maxScopes = 4000

var stepName = lazyregexp.New(`(?i)^(ProfilerStep#|(.*\b)?(step|iter|iteration|batch|request|epoch)\b\D{0,3}\d+$)`)

// scopesOf pairs the annotations of a device, and gives them places among its
// events. One that did not end, as of a step that ran out of memory, lasts to the
// last event.
func scopesOf(h *tile.History) []page.Scope {
	out := []page.Scope{}
	times := h.Trace.Time
	if times == nil {
		return out
	}
	at := func(t int64) int { return sort.Search(len(times), func(k int) bool { return times[k] >= t }) }
	open := map[string][]int64{}
	steps := map[string]bool{} // names, as far as they are known
	add := func(name string, from, to int, open bool) {
		s := page.Scope{Name: name, Lane: "notes", From: from, To: to, Open: open}
		step, known := steps[name]
		if !known {
			step = h.Snap.Drawn || stepName.MatchString(name)
			steps[name] = step
		}
		if step {
			s.Lane = "steps"
		}
		if s.From < s.To && len(out) < maxScopes {
			s.To--
			out = append(out, s)
		}
	}
	for i := range h.Snap.Annotations {
		a := &h.Snap.Annotations[i]
		if a.Device != h.Device {
			continue
		}
		if !a.End {
			open[a.Name] = append(open[a.Name], a.Time)
			continue
		}
		n := len(open[a.Name])
		if n == 0 {
			continue
		}
		from := open[a.Name][n-1]
		open[a.Name] = open[a.Name][:n-1]
		add(a.Name, at(from), at(a.Time), false)
	}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		for _, from := range open[name] {
			add(name, at(from), len(times), true)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].From < out[j].From })
	return out
}

// maxLanes is how many growth lanes are shown.
const maxLanes = 3

func (q *question) bands() (any, error) {
	_, b, err := q.grouped()
	if err != nil {
		return nil, err
	}
	return newBandsDoc(b), nil
}

// newBandsDoc is the groups and bands of a grouping, in their colors.
func newBandsDoc(b *tile.Bands) page.Bands {
	doc := page.Bands{Kept: b.Kept, Groups: []page.Group{}, Bands: []page.Band{}, Lanes: []page.Lane{}}
	keys := make([]tile.Key, len(b.Groups))
	for i := range b.Groups {
		keys[i] = b.Groups[i].Key
	}
	slots := colored(keys)
	for i := range b.Groups {
		doc.Groups = append(doc.Groups, newGroupDoc(&b.Groups[i], slotOf(slots, keys[i])))
	}
	for _, x := range b.Bands {
		doc.Bands = append(doc.Bands, page.Band{Group: x.Group, Fate: x.Fate.String()})
	}
	for i, l := range b.Lanes {
		if i == maxLanes {
			doc.LanesLeftOut = len(b.Lanes) - maxLanes
			break
		}
		doc.Lanes = append(doc.Lanes, page.Lane{Group: b.Bands[l.Band].Group, From: l.From, To: l.To, Points: l.Points})
	}
	return doc
}

func newGroupDoc(g *tile.Group, slot int) page.Group {
	out := page.Group{Key: g.Key.String(), Label: g.Label, Slot: slot, Peak: page.Moment{Event: g.PeakAt, Bytes: g.Peak}, Kept: g.Kept, Allocs: g.Allocs}
	if g.HasSite {
		out.File = &g.Site.File
		if g.Site.Function != "" {
			out.Function = &g.Site.Function
		}
		if g.Site.Line != 0 {
			out.Line = &g.Site.Line
		}
	}
	return out
}

const tileType = "application/octet-stream"

func (q *question) tile() (any, error) {
	r, err := q.tileRequest()
	if err != nil {
		return nil, err
	}
	f, d, err := q.dev()
	if err != nil {
		return nil, err
	}
	switch x := q.text("x", "ev"); x {
	case "ev":
		r.Axis = d.events
	case "us":
		if r.Axis = d.time(); r.Axis == nil {
			return nil, absent("the file has no times")
		}
	default:
		return nil, wrong("x is ev or us, not %q", x)
	}
	var b *tile.Bands
	if q.used["g"] = true; r.Kind != tile.Total || r.Solo != nil {
		if _, b, err = q.grouped(); err != nil {
			return nil, err
		}
	}
	t, err := d.h.Tile(q.ctx, b, r)
	if err != nil {
		return nil, err
	}
	return Answer{Type: tileType, Body: t.Encode(b, f.snap.Partial != nil)}, nil
}

func (q *question) tileRequest() (r tile.Request, err error) {
	kinds := map[string]tile.Kind{"total": tile.Total, "band": tile.Banded, "alloc": tile.Single}
	kind := q.text("kind", "band")
	k, ok := kinds[kind]
	if !ok {
		return r, wrong("kind is total, band or alloc, not %q", kind)
	}
	level, err := q.number("L", missing, 0, tile.MaxLevel)
	if err != nil {
		return r, err
	}
	index, err := q.number("i", missing, 0, 1<<31)
	if err != nil {
		return r, err
	}
	scale, err := q.number("y", missing, 0, tile.MaxScale)
	if err != nil {
		return r, err
	}
	solo, err := q.keys("solo")
	return tile.Request{Kind: k, Level: uint(level), Index: int(index), Scale: uint(scale), Solo: solo}, err
}

func address(a uint64) string { return "0x" + strconv.FormatUint(a, 16) }

func orNull(k int) *int {
	if k == timeline.Never {
		return nil
	}
	return &k
}
