package engine

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"time"

	"strandline/torch/snapshot"
	"strandline/torch/tile"
	"strandline/torch/timeline"
	"strandline/units"
)

// patience is how long a question for news of the session waits.
const patience = 10 * time.Second

type sessionDoc struct {
	Version  int           `json:"version"`
	Title    string        `json:"title"`
	Files    []sessionFile `json:"files"`
	Skipped  []other       `json:"skipped"`
	Order    []int         `json:"order"`
	Findings string        `json:"findings"`
}

type sessionFile struct {
	F           int     `json:"f"`
	Name        string  `json:"name"`
	Path        string  `json:"path"`
	Fingerprint string  `json:"fingerprint,omitempty"`
	Process     *string `json:"process"`
	State       string  `json:"state"`
	Read        int64   `json:"read"`
	Size        *int64  `json:"size"`
	Events      *int    `json:"events"`
	Partial     *string `json:"partial"`
	Error       *string `json:"error"`
	Devices     []int   `json:"devices"`
	Main        *int    `json:"main"` // the device with the highest peak
	Peak        *int64  `json:"peak"`
	Blocks      string  `json:"blocks"`
}

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
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	doc := sessionDoc{Version: q.e.version, Files: []sessionFile{}, Skipped: q.e.others, Order: q.e.order, Findings: q.e.findingsState}
	for i, f := range q.e.files {
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
	return doc, nil
}

func (f *file) session(i int) sessionFile {
	out := sessionFile{F: i, Name: f.name(), Path: f.Path, State: f.state, Read: f.read, Devices: []int{}, Blocks: f.blocks}
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
		if most := max(h.PeakRequested.Bytes, h.EndRequested); most > peak {
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

type moment struct {
	Event int   `json:"event"`
	Bytes int64 `json:"bytes"`
}

type sums struct {
	Live      int64 `json:"live"`
	Requested int64 `json:"requested"`
	Reserved  int64 `json:"reserved"`
}

type coverage struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

type timeDoc struct {
	Start int64       `json:"start_us"`
	End   int64       `json:"end_us"`
	Span  int64       `json:"span"`
	Folds []tile.Fold `json:"folds"`
}

type mark struct {
	Event int    `json:"event"`
	Kind  string `json:"kind"`
	Label string `json:"label"`
	Bytes *int64 `json:"bytes,omitempty"`
}

// A scope is a stretch of events that an annotation names.
type scope struct {
	Name string `json:"name"`
	Lane string `json:"lane"`
	From int    `json:"from"`
	To   int    `json:"to"`
	Open bool   `json:"open"` // it had not ended when the history did
}

type deviceDoc struct {
	Device       int             `json:"device"`
	Events       int             `json:"events"`
	Allocations  int             `json:"allocations"`
	Measures     []string        `json:"measures"`
	MeasuresWhy  *string         `json:"measures_why"`
	Groupings    []tile.Grouping `json:"groupings"`
	Start        sums            `json:"start"`
	End          sums            `json:"end"`
	Peak         moment          `json:"peak"`
	PeakReserved moment          `json:"peak_reserved"`
	Kept         int64           `json:"kept"`
	Pending      int64           `json:"pending"`
	Coverage     coverage        `json:"coverage"`
	Time         *timeDoc        `json:"time"`
	TimeWhy      *string         `json:"time_why"`
	Marks        []mark          `json:"marks"`
	MarksLeftOut int             `json:"marks_left_out"`
	Scopes       []scope         `json:"scopes"`
}

func (q *question) device() (any, error) {
	f, d, err := q.dev()
	if err != nil {
		return nil, err
	}
	h := d.h
	doc := deviceDoc{
		Device: h.Device, Events: h.Events(), Allocations: len(h.Allocs), Measures: []string{asRequested}, Groupings: h.Groupings(),
		Start: d.sums(timeline.Never), End: d.sums(h.Events() - 1),
		Peak:         moment{h.Peak().Event, h.Peak().Bytes},
		PeakReserved: moment{h.PeakReserved.Event, h.PeakReserved.Bytes},
		Coverage:     coverageOf(f, h), Scopes: d.steps(),
	}
	doc.Marks, doc.MarksLeftOut = d.marks().shown, d.marks().left
	doc.Kept, doc.Pending = h.EndsAs(tile.Kept), h.EndsAs(tile.Pending)
	switch r := d.replayed.Load(); {
	case r == nil:
	case r.sizes == nil:
		doc.MeasuresWhy = &r.why
	default:
		doc.Measures = append(doc.Measures, asAllocated)
	}
	if axis := d.time(); axis != nil {
		doc.Time = &timeDoc{axis.Start, axis.End, axis.Span, append([]tile.Fold{}, axis.Folds...)}
	} else {
		why := "the file has no times: PyTorch records them from 2.2 on"
		if h.Events() == 0 {
			why = "there are no events"
		}
		doc.TimeWhy = &why
	}
	return doc, nil
}

// sums are the bytes after event k.
func (d *measured) sums(k int) sums {
	return sums{d.h.Live(k), d.requested.h.Live(k), d.h.Reserved(k)}
}

// coverageOf says how much of the device's life the file tells.
func coverageOf(f *file, h *tile.History) coverage {
	s := f.snap
	switch {
	case s.Partial != nil:
		text := fmt.Sprintf("reading ended at %s: %v", s.Partial.Place(), s.Partial.Err)
		if doubt := h.Doubt(); doubt != "" {
			text += "; " + doubt
		}
		return coverage{"damaged", text}
	case h.Events() == 0:
		return coverage{"state", "no events were recorded; the state alone is known"}
	case h.Complete():
		return coverage{"exact", "the history covers the device's whole life"}
	case s.RingFull(h.Device):
		return coverage{"ring", fmt.Sprintf("the ring of %s events overflowed: earlier events are lost; %s were live when they begin",
			units.Count(int64(h.Events())), units.Bytes(h.StartRequested))}
	}
	return coverage{"late", fmt.Sprintf("recording began late: %s were already live", units.Bytes(h.StartRequested))}
}

// mostMarks is how many marks a device sends. Releases are marked that give back
// a share of the highest reserved memory.
const (
	mostMarks    = 2000
	mostReleases = 100
	releaseShare = 100
)

// marks are those that are shown, and how many are not.
type marks struct {
	shown []mark
	left  int
}

// marksOf are the events to be marked: where memory ran out, where snapshots were
// taken, and where much went back to the driver, as empty_cache() does it.
func marksOf(h *tile.History) marks {
	out := []mark{}
	var releases []mark
	for k, a := range h.Trace.Action {
		switch a {
		case snapshot.OOM:
			size := h.Trace.Size[k]
			out = append(out, mark{k, a.String(), "out of memory: asked for " + units.Bytes(size), &size})
		case snapshot.SnapshotTaken:
			out = append(out, mark{Event: k, Kind: a.String(), Label: "snapshot"})
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			size := h.Trace.Size[k]
			if n := len(releases); n > 0 && releases[n-1].Event == k-1 {
				*releases[n-1].Bytes += size
				releases[n-1].Event = k
				continue
			}
			releases = append(releases, mark{Event: k, Kind: "release", Bytes: &size})
		}
	}
	sortBy(releases, func(m *mark) int64 { return -*m.Bytes })
	for i := range releases[:min(len(releases), mostReleases)] {
		if m := &releases[i]; *m.Bytes >= h.PeakReserved.Bytes/releaseShare {
			m.Label = "gave " + units.Bytes(*m.Bytes) + " back to the driver"
			out = append(out, *m)
		}
	}
	left := max(len(out)-mostMarks, 0)
	out = out[:len(out)-left]
	sortBy(out, func(m *mark) int { return m.Event })
	return marks{out, left}
}

// mostScopes is how many scopes a device sends.
const mostScopes = 4000

var stepName = regexp.MustCompile(`(?i)^(ProfilerStep#|(.*\b)?(step|iter|iteration|batch|request|epoch)\b\D{0,3}\d+$)`)

// scopesOf pairs the annotations of a device, and gives them places among its
// events. One that did not end, as of a step that ran out of memory, lasts to the
// last event.
func scopesOf(h *tile.History) []scope {
	out := []scope{}
	times := h.Trace.Time
	if times == nil {
		return out
	}
	at := func(t int64) int { return sort.Search(len(times), func(k int) bool { return times[k] >= t }) }
	open := map[string][]int64{}
	steps := map[string]bool{} // names, as far as they are known
	add := func(name string, from, to int, open bool) {
		s := scope{Name: name, Lane: "notes", From: from, To: to, Open: open}
		step, known := steps[name]
		if !known {
			step = stepName.MatchString(name)
			steps[name] = step
		}
		if step {
			s.Lane = "steps"
		}
		if s.From < s.To && len(out) < mostScopes {
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

type groupDoc struct {
	Key      string  `json:"key"`
	Label    string  `json:"label"`
	File     *string `json:"file,omitempty"`
	Line     *int64  `json:"line,omitempty"`
	Function *string `json:"function,omitempty"`
	Slot     int     `json:"slot"`
	Peak     moment  `json:"peak"`
	Kept     int64   `json:"kept"`
	Allocs   int     `json:"allocations"`
}

type bandDoc struct {
	Group  int    `json:"group"`
	Fate   string `json:"fate"`
	Before bool   `json:"before"`
	Peak   int64  `json:"peak"`
	Allocs int    `json:"allocations"`
}

type laneDoc struct {
	Group  int     `json:"group"`
	Band   int     `json:"band"`
	From   int64   `json:"from"`
	To     int64   `json:"to"`
	Points []int64 `json:"points"`
}

type bandsDoc struct {
	G            tile.Grouping `json:"g"`
	Kept         int           `json:"kept"`
	Groups       []groupDoc    `json:"groups"`
	Bands        []bandDoc     `json:"bands"`
	Lanes        []laneDoc     `json:"lanes"`
	LanesLeftOut int           `json:"lanes_left_out"`
}

// mostLanes is how many growth lanes are shown.
const mostLanes = 3

func (q *question) bands() (any, error) {
	_, b, err := q.grouped()
	if err != nil {
		return nil, err
	}
	doc := bandsDoc{G: b.Grouping, Kept: b.Kept, Groups: []groupDoc{}, Bands: []bandDoc{}, Lanes: []laneDoc{}}
	slots := q.e.colour(b)
	for i := range b.Groups {
		doc.Groups = append(doc.Groups, newGroupDoc(&b.Groups[i], slots[b.Groups[i].Key]))
	}
	for _, x := range b.Bands {
		doc.Bands = append(doc.Bands, bandDoc{x.Group, x.Fate.String(), x.Before, x.Peak, x.Allocs})
	}
	for i, l := range b.Lanes {
		if i == mostLanes {
			doc.LanesLeftOut = len(b.Lanes) - mostLanes
			break
		}
		doc.Lanes = append(doc.Lanes, laneDoc{b.Bands[l.Band].Group, l.Band, l.From, l.To, l.Points})
	}
	return doc, nil
}

func newGroupDoc(g *tile.Group, slot int) groupDoc {
	out := groupDoc{Key: g.Key.String(), Label: g.Label, Slot: slot, Peak: moment{g.PeakAt, g.Peak}, Kept: g.Kept, Allocs: g.Allocs}
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
