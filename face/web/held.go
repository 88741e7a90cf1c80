package web

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"strandline/face/api/page"
	"strandline/face/web/engine"
	"strandline/internal/sorts"
	"strandline/torch/snapshot"
	"strandline/torch/tile"
	"strandline/units"
)

// How much of a file a saved page holds. The sizes are those of a page of some
// megabytes for a recording of a million events.
const (
	maxColumns   = 5 << 10 // of a picture of the whole file; of other pictures than that by line, half
	maxMoments   = 640     // at which the cursor can be, of all files together
	maxNext      = 100     // peaks, marks and failed requests to go to
	maxAlone     = 16      // groups that can be shown alone
	maxOfFinding = 20      // of a finding, as the page shows them
	maxSingles   = 4000    // allocations
	nearTiles    = 4       // tiles to either side of the peak, at each finer level
	nearEvents   = 16      // events to either side of the peak
	stepsBack    = 10      // segment events before the end
	listed       = 6       // events to either side of a station, beside the allocator
	lastSteps    = 8       // ends of steps

	singlesLevel   = 4   // the coarsest level at which the page draws allocations
	minColumns     = 64  // of the coarsest picture
	minManyColumns = 256 // of pictures of many files, at least
	screenColumns  = 1280
	pictureRows    = 400

	maxRuns    = 6       // under other settings, as the page lays over the picture
	runSamples = 1024    // events at which a run is sampled
	quick      = 500_000 // events of a history of which a dozen runs may be made to find the least capacity
)

// A savedDevice is a device of a file that is being saved.
type savedDevice struct {
	*saver
	view    engine.View
	share   int // by which the room is shared
	doc     page.Device
	where   []page.Where // what findings point to in the device
	held    page.Held
	singles map[int]bool // the allocations that are shown
}

// newDevice is a device to be saved, as one of several that share the room.
func (s *saver) newDevice(v engine.View, share int, all []page.Finding) *savedDevice {
	d := &savedDevice{saver: s, view: v, share: share, doc: v.Device(), singles: map[int]bool{}}
	d.held.Levels = map[string]int{}
	for _, f := range all {
		if w := f.Where; w != nil && w.F == v.F && (w.D == nil || *w.D == v.D) {
			d.where = append(d.where, *w)
		}
	}
	return d
}

// of are the parameters of a question about the device.
func (d *savedDevice) of(more ...any) params {
	return append(params{"f", d.view.F, "d", d.view.D}, more...)
}

// save keeps what is held of the device.
func (d *savedDevice) save() error {
	if err := d.moments(); err != nil {
		return err
	}
	for i, g := range d.doc.Groupings {
		if err := d.grouping(g, i == 0); err != nil {
			return err
		}
	}
	steps := []func() error{d.keepDetail, d.alone, d.stacks, d.allocations, d.runs}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	d.describe()
	d.later = false
	return d.putDoc("device", d.of(), d.doc)
}

// grouping keeps what is seen in a grouping: pictures of the whole history, what
// was live at the moments, the states. The engine groups again each time, so all
// of it is asked for at once.
func (d *savedDevice) grouping(g tile.Grouping, first bool) error {
	if !first {
		d.begin()
	}
	if err := d.keep("bands", d.of("g", g)); err != nil {
		return err
	}
	if d.doc.Events > 0 {
		if err := d.pictures(g); err != nil {
			return err
		}
	}
	d.begin()
	if err := d.keepAt("at", d.held.Events, "g", g); err != nil {
		return err
	}
	d.begin()
	for _, k := range d.held.Stations {
		if err := d.state(g, k, first); err != nil {
			return err
		}
	}
	return nil
}

// keepAt keeps the answers to a question about events.
func (d *savedDevice) keepAt(name string, events []int, more ...any) error {
	for _, k := range events {
		if err := d.keep(name, d.of(append(more, "k", k)...)); err != nil {
			return err
		}
	}
	return nil
}

// pictures keeps the whole history, from a fine level up to the coarsest.
func (d *savedDevice) pictures(g tile.Grouping) error {
	columns := max(maxColumns/2/d.share, minManyColumns)
	most := columns
	if g == tile.ByLine {
		most = max(maxColumns/d.share, screenColumns) // Compare draws each file so
	}
	if err := d.keepPicture("ev", g, "", int64(d.doc.Events), most); err != nil {
		return err
	}
	if d.doc.Time == nil {
		return nil
	}
	d.begin()
	return d.keepPicture("us", g, "", d.doc.Time.Span+1, columns)
}

// keepPicture keeps the picture of a history that is so many places long.
func (d *savedDevice) keepPicture(x string, g tile.Grouping, alone string, places int64, columns int) error {
	level := levelOf(places, columns)
	name := x + " " + string(g)
	if alone != "" {
		name = "alone"
	}
	d.held.Levels[name] = level
	for ; ; level++ {
		buckets := int((places-1)>>level + 1)
		for i := range (buckets + tile.Buckets - 1) / tile.Buckets {
			if err := d.tile(x, g, alone, level, i); err != nil {
				return err
			}
		}
		if buckets <= minColumns {
			return nil
		}
	}
}

// levelOf is the finest level at which places take no more than so many columns.
func levelOf(places int64, columns int) int {
	return max(0, int(math.Ceil(math.Log2(float64(places)/float64(columns)))))
}

// tile keeps a tile, of bands; where the page draws allocations, that of
// allocations too.
func (d *savedDevice) tile(x string, g tile.Grouping, alone string, level, i int) error {
	scale := max(0, int(math.Log2(float64(max(d.doc.Peak.Bytes, d.doc.PeakReserved.Bytes, 1))/pictureRows)))
	of := d.of("g", g, "x", x, "L", level, "i", i, "y", scale)
	if alone != "" {
		of = append(of, "solo", alone)
	}
	if err := d.keep("tile", append(of, "kind", "band")); err != nil {
		return err
	}
	if x != "ev" || g != tile.ByLine || level > singlesLevel || alone != "" {
		return nil
	}
	body, allocs, err := d.view.Allocs(d.ctx, level, i, scale)
	if err != nil {
		return err
	}
	d.put(question("tile", append(of, "kind", "alloc").values()), body)
	for _, a := range allocs {
		d.singles[a] = true
	}
	return nil
}

// keepDetail keeps finer pictures of the events around the peak, and around requests
// that failed.
func (d *savedDevice) keepDetail() error {
	d.begin()
	fails, _ := d.marks()
	for _, k := range last(append([]int{d.doc.Peak.Event}, fails...), 2) {
		if k < 0 {
			continue
		}
		for level := d.held.Levels["ev line"] - 1; level >= 0; level-- {
			long := tile.Buckets << level
			first, end := max(0, k/long-nearTiles), min(k/long+nearTiles+1, (d.doc.Events+long-1)/long)
			for i := first; i < end; i++ {
				if err := d.tile("ev", tile.ByLine, "", level, i); err != nil {
					return err
				}
			}
			d.held.Near = append(d.held.Near, page.Stretch{Level: level, From: first * long, To: end * long})
		}
	}
	return nil
}

// allocations keeps those that tiles and states show, the largest first.
func (d *savedDevice) allocations() error {
	ids := sorts.Collect(maps.Keys(d.singles), func(a, b int) int {
		return cmp.Or(cmp.Compare(d.view.Size(b), d.view.Size(a)), cmp.Compare(a, b))
	})
	ids = ids[:min(len(ids), maxSingles/d.share)]
	slices.Sort(ids) // neighbors are alike, and pack well
	d.begin()
	for _, i := range ids {
		if err := d.keep("alloc", d.of("i", i)); err != nil {
			return err
		}
	}
	return nil
}

// alone keeps pictures of single groups: of the largest, of those that grow, and
// of those that findings name.
func (d *savedDevice) alone() error {
	bands, err := d.view.Bands(tile.ByLine)
	if err != nil {
		return err
	}
	d.held.Alone = []string{}
	add := func(keys string) {
		if keys != "" && !slices.Contains(d.held.Alone, keys) {
			d.held.Alone = append(d.held.Alone, keys)
		}
	}
	for _, w := range d.where {
		if w.G == tile.ByLine {
			add(strings.Join(w.Keys[:min(len(w.Keys), maxOfFinding)], ","))
		}
	}
	for _, l := range bands.Lanes {
		add(bands.Groups[l.Group].Key)
	}
	for _, g := range bands.Groups[:min(len(bands.Groups), max(maxAlone/d.share, 2))] {
		add(g.Key)
	}
	if d.doc.Events == 0 {
		return nil
	}
	d.begin()
	for _, keys := range d.held.Alone {
		if err := d.keepPicture("ev", tile.ByLine, keys, int64(d.doc.Events), max(maxColumns/4/d.share, minManyColumns)); err != nil {
			return err
		}
	}
	return nil
}

// moments chooses the events where the cursor can be, and the stations.
func (d *savedDevice) moments() error {
	peaks, err := d.view.Last("peak", maxNext)
	if err != nil {
		return err
	}
	segments, err := d.view.Last("segment", stepsBack)
	if err != nil {
		return err
	}
	witnesses, err := d.view.Witnesses(d.ctx, levelOf(int64(d.doc.Events), max(maxMoments/d.share, minColumns)))
	if err != nil {
		return err
	}
	fails, marks := d.marks()
	fails, marks = last(fails, maxNext), last(marks, maxNext)
	ends := []int{d.doc.Peak.Event, d.doc.PeakReserved.Event, d.doc.Events - 1}
	for _, w := range d.where {
		if w.Event != nil {
			ends = append(ends, *w.Event)
		}
	}
	d.held.Stations = d.moment(segments, last(marks, lastSteps), d.steps(), ends)
	d.held.Next = map[string][]int{"peak": peaks, "oom": fails, "mark": marks, "segment": d.held.Stations}
	var nearPeak []int
	for k := d.doc.Peak.Event - nearEvents; k <= d.doc.Peak.Event+nearEvents; k++ {
		nearPeak = append(nearPeak, k)
	}
	d.held.Events = d.moment(nearPeak, peaks, marks, d.held.Stations, witnesses)
	return nil
}

// moment are those of the lists that are events of the history, in order; without a
// history the moment before the first.
func (d *savedDevice) moment(lists ...[]int) []int {
	end := d.doc.Events - 1
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(k int) bool { return k < min(0, end) || k > end })
}

// marks are the requests that failed, and they and the snapshots.
func (d *savedDevice) marks() (fails, all []int) {
	for _, m := range d.doc.Marks {
		if m.Kind == "oom" {
			fails = append(fails, m.Event)
		}
		if m.Kind == "oom" || m.Kind == "snapshot" {
			all = append(all, m.Event)
		}
	}
	return fails, all
}

// steps are the events that end the last steps.
func (d *savedDevice) steps() (out []int) {
	for _, s := range d.doc.Scopes {
		if s.Lane == "steps" {
			out = append(out, s.To)
		}
	}
	slices.Sort(out)
	return last(out, lastSteps)
}

// last are the last of a list, up to so many.
func last(list []int, maxLen int) []int { return list[max(0, len(list)-maxLen):] }

// stacks keeps the stacks of single events, and of what lives at the stations.
func (d *savedDevice) stacks() error {
	d.begin()
	if err := d.keepAt("event", d.held.Events); err != nil {
		return err
	}
	d.begin()
	for _, k := range d.held.Stations {
		if err := d.keep("flame", d.of("k", k)); err != nil {
			return err
		}
		if k < 0 {
			continue
		}
		from := max(0, min(k-listed, d.doc.Events-2*listed-1))
		if err := d.keep("events", d.of("from", from, "to", min(d.doc.Events-1, from+2*listed))); err != nil {
			return err
		}
	}
	return d.keep("flame", d.of("kept", 1))
}

// state keeps the allocator's state in two answers, since most of it is the same
// in all groupings: the segments and blocks, and what groups they are of.
func (d *savedDevice) state(g tile.Grouping, k int, first bool) error {
	state, err := d.view.State(g, k)
	if err != nil {
		return err
	}
	for _, a := range state.Blocks.Alloc {
		if a >= 0 {
			d.singles[a] = true
		}
	}
	groups := page.StateGroups{Group: state.Blocks.Group, Strands: state.Strands}
	if err := d.putDoc("state", d.of("g", g, "k", k), groups); err != nil || !first {
		return err
	}
	state.Blocks.Group, state.Strands = nil, nil
	return d.putDoc("state", d.of("k", k), state)
}

// runs keeps the results of the history under the settings that are tried first.
func (d *savedDevice) runs() error {
	if d.doc.Events == 0 || d.doc.Device == snapshot.Host {
		return nil
	}
	d.begin()
	replay, err := d.view.Replay()
	if err != nil {
		return err
	}
	if err := d.putDoc("replay", d.of(), replay); err != nil || replay.Lost {
		return err
	}
	if replay.Exact {
		if err := d.keep("simulate", d.of("recorded", 1, "n", runSamples)); err != nil {
			return err
		}
	}
	for _, w := range d.where[:min(len(d.where), maxPointed)] {
		if len(w.Places) == 0 || !replay.Exact {
			continue
		}
		if err := d.keep("simulate", d.of("own", 1, "without", strings.Join(w.Places, "\n"))); err != nil {
			return err
		}
	}
	for _, set := range replay.Try[:min(len(replay.Try), maxRuns)] {
		run := d.of()
		if set != "" {
			run = append(run, "set", set)
		}
		if replay.Capacity != nil {
			run = append(run, "capacity", units.Typed(*replay.Capacity))
		}
		if err := d.keep("simulate", append(slices.Clip(run), "n", runSamples)); err != nil {
			return err
		}
		if d.doc.Events > quick {
			continue
		}
		if err := d.keep("fits", run); err != nil {
			return err
		}
	}
	return nil
}

// describe states in the facts of the device what is held and what is not.
func (d *savedDevice) describe() {
	n := func(k int) string { return units.Count(int64(k)) }
	text := "This page was saved by strandline view --html and holds a part of the data. "
	if level := d.held.Levels["ev line"]; level > 0 {
		text += "The picture goes down to " + n(1<<level) + " events a column, and to single events near the peak and near a failed request. "
	}
	if len(d.held.Events) < d.doc.Events {
		text += "The cursor goes to " + n(len(d.held.Events)) + " of " + n(d.doc.Events) + " events. "
	}
	if d.leftOut > 0 {
		text += "Pictures of " + n(d.leftOut) + " other devices of files are left out: those with lower peaks to which none of the first findings points. "
	}
	d.held.Text = text + "The allocator and stacks are here for " + n(len(d.held.Stations)) + " of them: the keys , and . step through them. " +
		"Single allocations are here where the picture shows them individually, and for the allocator's blocks, the largest of them. " +
		"Bytes are those that the program requested. Differences between events, sums over them, other settings than the suggested ones, and tables to save are not here. Open the snapshot with strandline view for these."
	why := "This saved page has requested bytes only."
	d.doc.Held, d.doc.Measures, d.doc.MeasuresWhy = &d.held, []string{"requested"}, &why
}
