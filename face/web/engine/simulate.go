package engine

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"strandline/face/api"
	"strandline/face/api/page"
	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/units"
)

// replayable is the device that is asked for, with its replay.
func (q *question) replayable() (*replay.Result, error) {
	f, err := q.content()
	if err != nil {
		return nil, err
	}
	d, err := q.requestedDevice(f)
	if err != nil {
		return nil, err
	}
	return d.replayable()
}

// replayable is the replay of the device's history.
func (d *device) replayable() (*replay.Result, error) {
	switch r := d.replayed.Load(); {
	case r == nil:
		return nil, &refusal{409, "the history has not been replayed yet"}
	case r.exact == nil:
		return nil, absent("there is nothing to replay: %s", r.why)
	default:
		return r.exact, nil
	}
}

func (q *question) replayed() (any, error) {
	x, err := q.replayable()
	if err != nil {
		return nil, err
	}
	return replayOf(x), nil
}

func replayOf(x *replay.Result) page.Replay {
	as := x.Assumed()
	doc := page.Replay{
		Events: x.Trace.Len(), Settings: x.Settings.Changed(), Exact: x.Difference == nil, Lost: x.Lost,
		Calls: page.Reproduced{Recorded: x.Calls, Reproduced: x.CallsMet}, Segments: page.Reproduced{Recorded: x.Segments, Reproduced: x.SegmentsMet},
		Capacity: as.Room(), Assumed: as.Notes, Try: []string{},
	}
	if x.Difference != nil {
		text := x.Difference.String()
		doc.Difference = &text
	}
	if conf := replay.WithExpandable(doc.Settings); !x.Settings.Expandable {
		if _, err := allocator.ParseSettings(conf, x.Version); err == nil {
			doc.Try = append(doc.Try, conf)
		}
	}
	return doc
}

// scenario returns the requested scenario: settings, which are the file's own if own is
// given, and other differences.
func (q *question) scenario(x *replay.Result) (sc replay.Scenario, notes []string, err error) {
	if x.Lost {
		return sc, nil, absent("%s cannot be simulated: %v", snapshot.DeviceName(x.Device), x.Difference)
	}
	if q.has("recorded") {
		return x.Recorded(), []string{}, nil
	}
	set := x.Settings
	if conf := q.text("set", ""); !q.has("own") {
		if set, err = replay.ParseSettings(conf, x.Version); err != nil {
			return sc, nil, wrong("%s", err)
		}
	}
	if err := q.bounds(x, &sc); err != nil {
		return sc, nil, err
	}
	sc = x.Under(sc, set)
	notes = sc.Idle()
	if held := x.Held(); held != "" {
		notes = append(notes, held)
	}
	if rules := x.Untested(&sc.Settings); len(rules) > 0 {
		notes = append(notes, allocator.UntestedNote(rules))
	}
	without, err := q.without(x, &sc)
	if err != nil {
		return sc, nil, err
	}
	notes = append(notes, without...)
	if policy := q.text("empty", ""); policy != "" {
		what, err := x.Empty(&sc, policy)
		if err != nil {
			return sc, nil, wrong("%s", err)
		}
		if len(sc.Empty) == 0 {
			return sc, nil, wrong("%s is never reached: the history is shorter", policy)
		}
		note := "calls of empty_cache added: " + units.Count(int64(len(sc.Empty)))
		if what != "" {
			note += "; steps are found by: " + what
		}
		notes = append(notes, note)
	}
	return sc, notes, nil
}

// without leaves out the allocations at places, which have line breaks between them.
func (q *question) without(x *replay.Result, sc *replay.Scenario) (notes []string, err error) {
	text := q.text("without", "")
	if text == "" {
		return nil, nil
	}
	places := strings.Split(text, "\n")
	at, counts := x.StacksAt(places...)
	for i, n := range counts {
		if n == 0 {
			return nil, wrong("nothing is allocated at %s", places[i])
		}
		notes = append(notes, replay.LeftOut(places[i], n))
	}
	sc.Without = at
	return notes, nil
}

// bounds are the capacity and the share of it that may be reserved.
func (q *question) bounds(x *replay.Result, sc *replay.Scenario) (err error) {
	if text := q.text("capacity", ""); text != "" {
		if sc.Capacity, err = units.ParseBytes(text); err != nil {
			return wrong("capacity: %s", err)
		}
		if sc.Capacity <= 0 {
			return wrong("capacity: a device has more than 0 bytes")
		}
		if err := x.Fits(sc.Capacity); err != nil {
			return wrong("%s", err)
		}
	}
	text := q.text("fraction", "")
	if text == "" {
		return nil
	}
	share, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(share > 0 && share <= 1):
		return wrong("fraction: %q is not a share above 0 and up to 1", text)
	case sc.Capacity == 0:
		return wrong("the fraction is a share of the capacity: also give the capacity")
	}
	sc.Limit = int64(share * float64(sc.Capacity))
	return nil
}

// maxLooks is the largest number of points of a run's course in one answer.
const maxLooks = 1 << 14

// sampleEvents are n events evenly over those that are asked for.
func (q *question) sampleEvents(events int) ([]int, error) {
	last := int64(events) - 1
	n, err := q.number("n", 0, 0, maxLooks)
	if err != nil {
		return nil, err
	}
	from, err := q.number("from", 0, 0, last)
	if err != nil {
		return nil, err
	}
	to, err := q.number("to", last, from, last)
	if err != nil {
		return nil, err
	}
	var out []int
	for i := range n {
		k := int(from)
		if n > 1 {
			k += int(float64(to-from) * float64(i) / float64(n-1))
		}
		if len(out) == 0 || out[len(out)-1] != k {
			out = append(out, k)
		}
	}
	return out, nil
}

// simulate runs the history under other settings, and returns the course of memory.
func (q *question) simulate() (any, error) {
	x, err := q.replayable()
	if err != nil {
		return nil, err
	}
	sc, notes, err := q.scenario(x)
	if err != nil {
		return nil, err
	}
	sc.Samples, sc.Steps = replay.Samples, true
	if sc.Looks, err = q.sampleEvents(x.Trace.Len()); err != nil {
		return nil, err
	}
	if err := q.turn(); err != nil {
		return nil, err
	}
	defer q.e.rest()
	o, err := x.Run(q.ctx, sc)
	if err != nil {
		return nil, err
	}
	doc := newOutcomeDoc(x, &sc, &o, notes)
	o.Looks = withWorst(o.Looks, o.Worst)
	body, err := encodeRun(&doc, &o)
	return Answer{Type: tileType, Body: body}, err
}

// withWorst adds the moment at which most was stranded to looks around it, that
// their course reaches the figure that is reported for the run.
func withWorst(looks []replay.Sample, worst replay.Sample) []replay.Sample {
	at, there := slices.BinarySearchFunc(looks, worst.Event, func(s replay.Sample, event int) int { return cmp.Compare(s.Event, event) })
	if worst.Stranded == 0 || there || at == 0 || at == len(looks) {
		return looks
	}
	return slices.Insert(looks, at, worst)
}

func newOutcomeDoc(x *replay.Result, sc *replay.Scenario, o *replay.Outcome, notes []string) page.Outcome {
	doc := page.Outcome{
		Settings: sc.Settings.Changed(), Notes: notes, Capacity: bound(sc.Capacity), Limit: bound(sc.Limit),
		Reserved: o.ReservedPeak, Allocated: o.AllocatedPeak, Stranded: o.Stranded,
		OOMs: o.OOMs, Calls: o.DriverCalls(), CostMS: replay.Cost(&o.Stats), Retries: o.Retries,
	}
	if f := o.OOM; f != nil {
		doc.OOM = &page.Refused{Event: f.Event, Bytes: f.Size, Reserved: f.Reserved, Active: f.Active, Site: nil}
		if site := x.Snap.Stacks.Site(f.Stack); site != (stack.Site{}) {
			at := newFrameDoc(site)
			doc.OOM.Site = &at
		}
	}
	return doc
}

// search runs the settings that may help, the file's own among them, and
// returns the results, the best first.
func (q *question) search() (any, error) {
	x, err := q.replayable()
	if err != nil {
		return nil, err
	}
	sc, _, err := q.scenario(x)
	if err != nil {
		return nil, err
	}
	sc = x.Bounded(sc)
	sc.Samples = replay.Samples
	choices := x.Choices(nil, sc.Limit > 0)
	scenarios := make([]replay.Scenario, len(choices))
	for i, c := range choices {
		scenarios[i] = x.Under(sc, c.Settings)
	}
	if err := q.turn(); err != nil {
		return nil, err
	}
	defer q.e.rest()
	outcomes, err := x.All(q.ctx, scenarios, nil)
	if err != nil {
		return nil, err
	}
	runs := []page.Outcome{}
	for _, i := range replay.Rank([][]replay.Outcome{outcomes}) {
		doc := newOutcomeDoc(x, &scenarios[i], &outcomes[i], scenarios[i].Idle())
		doc.Settings = choices[i].Conf
		runs = append(runs, doc)
	}
	return page.Runs{Runs: runs}, nil
}

// reclaim is the policy of empty_cache that keeps reserved memory under a size.
func (q *question) reclaim() (any, error) {
	x, err := q.replayable()
	if err != nil {
		return nil, err
	}
	if x.Lost {
		return nil, absent("%s cannot be simulated: %v", snapshot.DeviceName(x.Device), x.Difference)
	}
	line, err := units.ParseBytes(q.text("under", ""))
	if err != nil || line <= 0 {
		return nil, wrong("under: a size such as 40GiB is missing")
	}
	if err := q.turn(); err != nil {
		return nil, err
	}
	defer q.e.rest()
	on := []*replay.Result{x}
	found, err := replay.KeepUnder(q.ctx, on, line, func(int) {}, func() {})
	if err != nil {
		return nil, wrong("under: %s", err)
	}
	return api.NewReclaim(found, on), nil
}

// fits is the least capacity with which a run does not run out of memory.
func (q *question) fits() (any, error) {
	x, err := q.replayable()
	if err != nil {
		return nil, err
	}
	sc, _, err := q.scenario(x)
	if err != nil {
		return nil, err
	}
	if err := q.turn(); err != nil {
		return nil, err
	}
	defer q.e.rest()
	n, err := x.Smallest(q.ctx, sc, nil)
	return page.Fits{Smallest: bound(n)}, err
}

func bound(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// turn waits until no other run is under way: one at a time leaves the other
// processors to other questions meanwhile. Before that, it refuses what Ask would
// refuse after the run.
func (q *question) turn() error {
	if err := q.unused(); err != nil {
		return err
	}
	select {
	case q.e.running <- struct{}{}:
		return nil
	case <-q.ctx.Done():
		return q.ctx.Err()
	}
}

func (e *Engine) rest() { <-e.running }

// encodeRun writes a run: a header, its arrays, and the rest of it as JSON.
func encodeRun(doc *page.Outcome, o *replay.Outcome) ([]byte, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, 16+12*len(o.Steps)+36*len(o.Looks)+len(text)), "SLC1"...)
	le := binary.LittleEndian
	for _, n := range []int{len(o.Steps), len(o.Looks), len(text)} {
		out = le.AppendUint32(out, uint32(n))
	}
	pad := func() {
		for len(out)%8 != 0 {
			out = append(out, 0)
		}
	}
	for _, s := range o.Steps {
		out = le.AppendUint32(out, uint32(int32(s.Event)))
	}
	pad()
	for _, s := range o.Steps {
		out = le.AppendUint64(out, math.Float64bits(float64(s.Reserved)))
	}
	for _, s := range o.Looks {
		out = le.AppendUint32(out, uint32(int32(s.Event)))
	}
	pad()
	for _, of := range []func(*replay.Sample) int64{
		func(s *replay.Sample) int64 { return s.Reserved },
		func(s *replay.Sample) int64 { return s.Allocated },
		func(s *replay.Sample) int64 { return s.Active },
		func(s *replay.Sample) int64 { return s.Stranded },
	} {
		for i := range o.Looks {
			out = le.AppendUint64(out, math.Float64bits(float64(of(&o.Looks[i]))))
		}
	}
	return append(out, text...), nil
}
