package web

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"strandline/torch/tile"
	"strandline/units"
)

// How much of a file a saved page holds. The sizes are those of a page of some
// megabytes for a recording of a million events.
const (
	mostColumns   = 5 << 10 // of a picture of the whole file; of other pictures than that by line, half
	mostMoments   = 640     // at which the cursor can stand, of all files together
	mostNext      = 100     // peaks, marks and failed requests to go to
	mostAlone     = 16      // groups that can be shown alone
	mostOfFinding = 20      // of a finding, as the page shows them
	mostSingles   = 4000    // allocations
	nearTiles     = 4       // tiles to either side of the peak, at each finer level
	nearEvents    = 16      // events to either side of the peak
	stepsBack     = 10      // segment events before the end
	listed        = 6       // events to either side of a station, beside the allocator
	lastSteps     = 8       // ends of steps

	singlesLevel  = 4   // the coarsest level at which the page draws allocations
	leastColumns  = 64  // of the coarsest picture
	fewColumns    = 256 // of pictures of many files, at least
	screenColumns = 1280
	pictureRows   = 400

	mostRuns = 6       // under other settings, as the page lays over the picture
	looks    = 1024    // events at which it is told of a run
	quick    = 500_000 // events of a history of which a dozen runs may be made to find the least capacity
)

// held is what a saved page holds of a device. The page reads it.
type held struct {
	Events   []int          `json:"events"`   // at which the cursor can stand
	Stations []int          `json:"stations"` // those of them with the allocator's state and stacks
	Next     map[string]all `json:"next"`     // events to go to, by sort
	Levels   map[string]int `json:"levels"`   // finest level, by axis and grouping
	Near     []stretch      `json:"near"`     // finer ones, by line over events
	Alone    []string       `json:"alone"`    // what can be shown alone, by line over events
	Text     string         `json:"text"`
}

type all []int

// A stretch is where a finer level is held: events From to To-1.
type stretch struct {
	Level int `json:"level"`
	From  int `json:"from"`
	To    int `json:"to"`
}

// A savedDevice is a device of a file that is being saved.
type savedDevice struct {
	*saver
	f, d  int
	share int // by which the room is shared
	doc   struct {
		Events       int
		Groupings    []string
		Time         *struct{ Span float64 }
		Peak         event
		PeakReserved event `json:"peak_reserved"`
		Marks        []struct {
			Event int
			Kind  string
		}
		Scopes []struct {
			Lane string
			To   int
		}
	}
	where   []where // what findings point to in the device
	held    held
	singles map[int]float64 // bytes of the allocations that are shown
}

type event struct {
	Event int
	Bytes int64
}

// where is what a finding points to.
type where struct {
	F     int
	D     *int
	G     string
	Keys  []string
	Event *int
}

// point takes the places of the findings.
func (s *saver) point(findings []byte) error {
	var doc struct{ Findings []struct{ Where where } }
	err := json.Unmarshal(findings, &doc)
	for _, f := range doc.Findings {
		s.where = append(s.where, f.Where)
	}
	return err
}

// findings are what the findings in the device point to.
func (d *savedDevice) findings() (out []where) {
	for _, w := range d.saver.where {
		if w.F == d.f && (w.D == nil || *w.D == d.d) {
			out = append(out, w)
		}
	}
	return out
}

// of are the parameters of a question about the device.
func (d *savedDevice) of(more ...any) params {
	return append(params{"f", d.f, "d", d.d}, more...)
}

// save keeps what is held of the device.
func (d *savedDevice) save() error {
	answer, err := d.ask("device", d.of().values())
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, &d.doc); err != nil {
		return err
	}
	d.where = d.findings()
	d.held.Levels, d.held.Next, d.singles = map[string]int{}, map[string]all{}, map[int]float64{}
	if err := d.moments(); err != nil {
		return err
	}
	for i, g := range d.doc.Groupings {
		if err := d.grouping(g, i == 0); err != nil {
			return err
		}
	}
	steps := []func() error{d.near, d.alone, d.stacks, d.allocations, d.runs}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return d.describe(answer)
}

// grouping keeps what is seen in a grouping: pictures of the whole history, what
// was live at the moments, the states. The engine groups anew each time, so all
// of it is asked for at once.
func (d *savedDevice) grouping(g string, first bool) error {
	if !first {
		d.begin()
	}
	if _, err := d.keep("bands", d.of("g", g)); err != nil {
		return err
	}
	if d.doc.Events > 0 {
		if err := d.pictures(g); err != nil {
			return err
		}
	}
	d.begin()
	for _, k := range d.held.Events {
		if _, err := d.keep("at", d.of("g", g, "k", k)); err != nil {
			return err
		}
	}
	d.begin()
	for _, k := range d.held.Stations {
		if err := d.state(g, k, first); err != nil {
			return err
		}
	}
	return nil
}

// pictures keeps the whole history, from a fine level up to the coarsest.
func (d *savedDevice) pictures(g string) error {
	columns := max(mostColumns/2/d.share, fewColumns)
	most := columns
	if g == string(tile.ByLine) {
		most = max(mostColumns/d.share, screenColumns) // Compare draws each file so
	}
	if err := d.whole("ev", g, "", float64(d.doc.Events), most); err != nil {
		return err
	}
	if d.doc.Time == nil {
		return nil
	}
	d.begin()
	return d.whole("us", g, "", math.Ceil(d.doc.Time.Span)+1, columns)
}

// whole keeps the picture of a history that is so many places long.
func (d *savedDevice) whole(x, g, alone string, places float64, columns int) error {
	level := levelOf(places, columns)
	name := x + " " + g
	if alone != "" {
		name = "alone"
	}
	d.held.Levels[name] = level
	for ; ; level++ {
		buckets := int(math.Ceil(places / math.Exp2(float64(level))))
		for i := range (buckets + tile.Buckets - 1) / tile.Buckets {
			if err := d.tile(x, g, alone, level, i); err != nil {
				return err
			}
		}
		if buckets <= leastColumns {
			return nil
		}
	}
}

// levelOf is the finest level at which places take no more than so many columns.
func levelOf(places float64, columns int) int {
	return max(0, int(math.Ceil(math.Log2(places/float64(columns)))))
}

// tile keeps a tile, of bands; where the page draws allocations, that of
// allocations too.
func (d *savedDevice) tile(x, g, alone string, level, i int) error {
	scale := max(0, int(math.Log2(float64(max(d.doc.Peak.Bytes, d.doc.PeakReserved.Bytes, 1))/pictureRows)))
	of := d.of("g", g, "x", x, "L", level, "i", i, "y", scale)
	if alone != "" {
		of = append(of, "solo", alone)
	}
	_, err := d.keep("tile", append(of, "kind", "band"))
	if err == nil && x == "ev" && g == string(tile.ByLine) && level <= singlesLevel && alone == "" {
		singles, err := d.keep("tile", append(of, "kind", "alloc"))
		if err == nil {
			d.note(singles)
		}
		return err
	}
	return err
}

// near keeps finer pictures of the events around the peak, and around requests
// that failed.
func (d *savedDevice) near() error {
	d.begin()
	at := []int{d.doc.Peak.Event}
	for _, m := range d.doc.Marks {
		if m.Kind == "oom" {
			at = append(at, m.Event)
		}
	}
	at = at[max(0, len(at)-2):] // the last of the failed ones
	for _, k := range at {
		if k < 0 {
			continue
		}
		for level := d.held.Levels["ev line"] - 1; level >= 0; level-- {
			long := tile.Buckets << level
			first, end := max(0, k/long-nearTiles), min(k/long+nearTiles+1, (d.doc.Events+long-1)/long)
			for i := first; i < end; i++ {
				if err := d.tile("ev", "line", "", level, i); err != nil {
					return err
				}
			}
			d.held.Near = append(d.held.Near, stretch{level, first * long, end * long})
		}
	}
	return nil
}

// note notes the allocations of a tile.
func (d *savedDevice) note(t []byte) {
	if t[4] != byte(tile.Single) {
		return // there were too many
	}
	n, m := int(binary.LittleEndian.Uint32(t[8:])), int(binary.LittleEndian.Uint32(t[12:]))
	at := 64
	next := func(count, size int) []byte {
		from := at
		at = (at + count*size + 7) &^ 7
		return t[from:]
	}
	for _, size := range []int{4, 4} {
		next(n, size)
	}
	next(1, 4)
	for range 4 {
		next(n, 8)
	}
	next(m, 2)
	next(m, 2)
	next(m, 8)
	heights, allocs := next(m, 4), next(m, 4)
	for i := range m {
		if a := binary.LittleEndian.Uint32(allocs[4*i:]); a != math.MaxUint32 {
			d.singles[int(a)] = float64(math.Float32frombits(binary.LittleEndian.Uint32(heights[4*i:])))
		}
	}
}

// allocations keeps those that tiles and states show, the largest first.
func (d *savedDevice) allocations() error {
	ids := slices.SortedFunc(maps.Keys(d.singles), func(a, b int) int {
		return cmp.Or(cmp.Compare(d.singles[b], d.singles[a]), cmp.Compare(a, b))
	})
	ids = ids[:min(len(ids), mostSingles/d.share)]
	slices.Sort(ids) // neighbours are alike, and pack well
	d.begin()
	for _, i := range ids {
		if _, err := d.keep("alloc", d.of("i", i)); err != nil {
			return err
		}
	}
	return nil
}

// alone keeps pictures of single groups: of the largest, of those that grow, and
// of those that findings name.
func (d *savedDevice) alone() error {
	var bands struct {
		Groups []struct{ Key string }
		Lanes  []struct{ Group int }
	}
	answer, err := d.ask("bands", d.of("g", tile.ByLine).values())
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, &bands); err != nil {
		return err
	}
	d.held.Alone = []string{}
	add := func(keys string) {
		if keys != "" && !slices.Contains(d.held.Alone, keys) {
			d.held.Alone = append(d.held.Alone, keys)
		}
	}
	for _, w := range d.where {
		if w.G == string(tile.ByLine) {
			add(strings.Join(w.Keys[:min(len(w.Keys), mostOfFinding)], ","))
		}
	}
	for _, l := range bands.Lanes {
		add(bands.Groups[l.Group].Key)
	}
	for _, g := range bands.Groups[:min(len(bands.Groups), max(mostAlone/d.share, 2))] {
		add(g.Key)
	}
	if d.doc.Events == 0 {
		return nil
	}
	d.begin()
	for _, keys := range d.held.Alone {
		if err := d.whole("ev", string(tile.ByLine), keys, float64(d.doc.Events), max(mostColumns/4/d.share, fewColumns)); err != nil {
			return err
		}
	}
	return nil
}

// moments chooses the events where the cursor can stand, and the stations.
func (d *savedDevice) moments() error {
	last := d.doc.Events - 1
	at := map[int]bool{last: true} // -1 where there are no events
	add := func(list ...int) {
		for _, k := range list {
			if k >= 0 && k <= last {
				at[k] = true
			}
		}
	}
	add(d.doc.Peak.Event, d.doc.PeakReserved.Event)
	for k := d.doc.Peak.Event - nearEvents; k <= d.doc.Peak.Event+nearEvents; k++ {
		add(k)
	}
	var fails, marks all
	for _, m := range d.doc.Marks {
		switch m.Kind {
		case "oom":
			fails = append(fails, m.Event)
			marks = append(marks, m.Event)
		case "snapshot":
			marks = append(marks, m.Event)
		}
	}
	fails, marks = fails[max(0, len(fails)-mostNext):], marks[max(0, len(marks)-mostNext):]
	peaks, err := d.before("peak", mostNext)
	if err != nil {
		return err
	}
	segments, err := d.before("segment", stepsBack)
	if err != nil {
		return err
	}
	stations := slices.Concat(segments, marks[max(0, len(marks)-lastSteps):], all{d.doc.Peak.Event, d.doc.PeakReserved.Event, last}, d.steps())
	for _, w := range d.where {
		if w.Event != nil {
			stations = append(stations, *w.Event)
		}
	}
	slices.Sort(stations)
	d.held.Stations = slices.DeleteFunc(slices.Compact(stations), func(k int) bool { return k < min(0, last) })
	d.held.Next = map[string]all{"peak": peaks, "oom": fails, "mark": marks, "segment": d.held.Stations}
	add(slices.Concat(peaks, marks, d.held.Stations)...)
	witnesses, err := d.witnesses()
	if err != nil {
		return err
	}
	add(witnesses...)
	d.held.Events = slices.Sorted(maps.Keys(at))
	return nil
}

// steps are the events that end the last steps.
func (d *savedDevice) steps() (out all) {
	for _, s := range d.doc.Scopes {
		if s.Lane == "steps" {
			out = append(out, s.To)
		}
	}
	slices.Sort(out)
	return out[max(0, len(out)-lastSteps):]
}

// before are the last events of a sort.
func (d *savedDevice) before(sort string, most int) (out all, err error) {
	k := d.doc.Events - 1
	for len(out) < most && k >= 0 {
		answer, err := d.ask("next", d.of("k", k, "to", sort, "back", 1).values())
		if err != nil {
			return nil, err
		}
		var next struct{ Event *int }
		if err := json.Unmarshal(answer, &next); err != nil {
			return nil, err
		}
		if next.Event == nil {
			break
		}
		k = *next.Event
		out = append(out, k)
	}
	slices.Reverse(out)
	return out, nil
}

// witnesses are the events that the columns of the whole history show.
func (d *savedDevice) witnesses() (out all, err error) {
	level := levelOf(float64(d.doc.Events), max(mostMoments/d.share, leastColumns))
	for i := 0; i<<level*tile.Buckets < d.doc.Events; i++ {
		t, err := d.ask("tile", d.of("L", level, "i", i, "y", 0, "kind", "total").values())
		if err != nil {
			return nil, err
		}
		for c := range binary.LittleEndian.Uint32(t[8:]) {
			out = append(out, int(int32(binary.LittleEndian.Uint32(t[64+4*c:]))))
		}
	}
	return out, nil
}

// stacks keeps the stacks of single events, and of what lives at the stations.
func (d *savedDevice) stacks() error {
	d.begin()
	for _, k := range d.held.Events {
		if _, err := d.keep("event", d.of("k", k)); err != nil {
			return err
		}
	}
	d.begin()
	for _, k := range d.held.Stations {
		if _, err := d.keep("flame", d.of("k", k)); err != nil {
			return err
		}
		if k < 0 {
			continue
		}
		from := max(0, min(k-listed, d.doc.Events-2*listed-1))
		if _, err := d.keep("events", d.of("from", from, "to", min(d.doc.Events-1, from+2*listed))); err != nil {
			return err
		}
	}
	_, err := d.keep("flame", d.of("kept", 1))
	return err
}

// state keeps the allocator's state in two answers, since most of it is the same
// in all groupings: the segments and blocks, and what groups they are of.
func (d *savedDevice) state(g string, k int, first bool) error {
	q := d.of("g", g, "k", k).values()
	answer, err := d.ask("state", q)
	if err != nil {
		return err
	}
	var doc, blocks map[string]json.RawMessage
	if err := json.Unmarshal(answer, &doc); err != nil {
		return err
	}
	if err := json.Unmarshal(doc["blocks"], &blocks); err != nil {
		return err
	}
	var shown struct {
		Alloc     []int
		Requested []float64
	}
	if err := json.Unmarshal(doc["blocks"], &shown); err != nil {
		return err
	}
	for i, a := range shown.Alloc {
		if a >= 0 {
			d.singles[a] = shown.Requested[i]
		}
	}
	groups := map[string]json.RawMessage{"group": blocks["group"], "strands": doc["strands"]}
	delete(blocks, "group")
	delete(doc, "strands")
	if doc["blocks"], err = json.Marshal(blocks); err != nil {
		return err
	}
	if answer, err = json.Marshal(groups); err != nil {
		return err
	}
	d.put(question("state", q), answer)
	if !first {
		return nil
	}
	if answer, err = json.Marshal(doc); err != nil {
		return err
	}
	q.Del("g")
	d.put(question("state", q), answer)
	return nil
}

// runs keeps what comes of the history under the settings that are tried first.
func (d *savedDevice) runs() error {
	if d.doc.Events == 0 {
		return nil
	}
	d.begin()
	answer, err := d.keep("replay", d.of())
	if err != nil {
		return err
	}
	var replay struct {
		Exact, Lost bool
		Capacity    *int64
		Try         []string
	}
	if err := json.Unmarshal(answer, &replay); err != nil || replay.Lost {
		return err
	}
	if replay.Exact {
		if _, err := d.keep("simulate", d.of("recorded", 1, "n", looks)); err != nil {
			return err
		}
	}
	for _, set := range replay.Try[:min(len(replay.Try), mostRuns)] {
		run := d.of()
		if set != "" {
			run = append(run, "set", set)
		}
		if replay.Capacity != nil {
			run = append(run, "capacity", units.Typed(*replay.Capacity))
		}
		if _, err := d.keep("simulate", append(slices.Clip(run), "n", looks)); err != nil {
			return err
		}
		if d.doc.Events > quick {
			continue
		}
		if _, err := d.keep("fits", run); err != nil {
			return err
		}
	}
	return nil
}

// describe keeps the facts of the device, with what is held and what is not.
func (d *savedDevice) describe(answer []byte) error {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(answer, &doc); err != nil {
		return err
	}
	n := func(k int) string { return units.Count(int64(k)) }
	text := "This page was saved by strandline view --html, with a part of what the program knows. "
	if level := d.held.Levels["ev line"]; level > 0 {
		text += "The picture goes down to " + n(1<<level) + " events a column, and to single events near the peak and near a failed request. "
	}
	if len(d.held.Events) < d.doc.Events {
		text += "The cursor goes to " + n(len(d.held.Events)) + " of " + n(d.doc.Events) + " events. "
	}
	d.held.Text = text + "The allocator and stacks are here for " + n(len(d.held.Stations)) + " of them: the keys , and . lead from one to the next. " +
		"Single allocations are here where the picture shows them one by one, and for the blocks of the allocator, the largest of them. " +
		"Bytes are those that the program asked for. Differences between events, sums over them, runs under other settings than those to try first and tables to be saved are not here: open the snapshot by strandline view for these."
	why := "This saved page has the bytes that were asked for only."
	for name, v := range map[string]any{"held": d.held, "measures": []string{"requested"}, "measures_why": why} {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		doc[name] = text
	}
	facts, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	d.part = 0
	d.put(question("device", d.of().values()), facts)
	return nil
}
