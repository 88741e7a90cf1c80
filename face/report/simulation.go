package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"strandline/torch/allocator"
	"strandline/torch/replay"
	"strandline/units"
)

// Simulation is the document of `strandline simulate`.
type Simulation struct {
	Schema  string      `json:"schema"`
	File    string      `json:"file"`
	Partial bool        `json:"partial"`
	Version string      `json:"torch_version"`
	Devices []Replayed  `json:"devices"`
	Runs    []Simulated `json:"runs"`
	// Best is the outcome of a search, nil where none was asked for.
	Best *Recommendation `json:"recommendation,omitempty"`

	own     string   // the settings of the file
	changes []string // what is different in all runs, in words
	bounded bool     // the changes name the capacity
}

// Replayed is what came of the history of a device under its own settings.
type Replayed struct {
	Device     int                `json:"device"`
	Events     int                `json:"events"`
	Settings   string             `json:"settings"`
	Exact      bool               `json:"exact"`
	Calls      Reproduced         `json:"driver_calls"`
	Segments   Reproduced         `json:"segments"`
	Difference *replay.Difference `json:"first_difference"`
	Reserved   *int64             `json:"peak_reserved_bytes"`
	Allocated  *int64             `json:"peak_allocated_bytes"`
	Retries    *int64             `json:"alloc_retries"`
	OOMs       *int64             `json:"ooms"`
	Stranded   *int64             `json:"peak_stranded_bytes"`
	Samples    []Course           `json:"samples"`
	Assumed    Assumed            `json:"assumed"`

	lost bool  // nothing can be run
	held int64 // bytes reserved when the recording began, which no setting changes
}

// Reproduced counts what is recorded and what of it the replay reproduced.
type Reproduced struct {
	Recorded   int `json:"recorded"`
	Reproduced int `json:"reproduced"`
}

// Assumed is what the file does not hold and the replay settled.
type Assumed struct {
	Limit    *int64   `json:"memory_limit"`
	Capacity *int64   `json:"capacity"`
	Notes    []string `json:"notes"`

	room *int64 // what PyTorch could have: the lesser of the two
}

// Simulated is a run under other settings.
type Simulated struct {
	Settings string            `json:"settings"`
	Notes    []string          `json:"notes"`
	Devices  []SimulatedDevice `json:"devices"`

	untested []string // rules, of which a note tells
}

// SimulatedDevice is such a run on one device.
type SimulatedDevice struct {
	Device    int      `json:"device"`
	Capacity  *int64   `json:"capacity_bytes"`
	Limit     *int64   `json:"memory_limit_bytes"`
	Reserved  int64    `json:"peak_reserved_bytes"`
	Allocated int64    `json:"peak_allocated_bytes"`
	Stranded  int64    `json:"peak_stranded_bytes"`
	OOM       *Refused `json:"oom"`
	OOMs      int64    `json:"ooms"`
	Calls     int64    `json:"driver_calls"`
	CostMS    float64  `json:"driver_ms_estimate"`
	Retries   int64    `json:"alloc_retries"`
	Smallest  *int64   `json:"smallest_capacity_bytes"`
	Samples   []Course `json:"samples"`

	limited bool // no capacity is enough under the limit
}

// Refused is the first request for which there was no memory.
type Refused struct {
	Event    int   `json:"event"`
	Bytes    int64 `json:"bytes"`
	Reserved int64 `json:"reserved_bytes"`
	Active   int64 `json:"active_bytes"`
	Site     Site  `json:"site"`
	Recorded bool  `json:"recorded"`
}

// Course is the memory after an event.
type Course struct {
	Event     int   `json:"event"`
	Reserved  int64 `json:"reserved_bytes"`
	Allocated int64 `json:"allocated_bytes"`
	Stranded  int64 `json:"stranded_bytes"`
}

// Recommendation is the outcome of a search.
type Recommendation struct {
	Settings *string `json:"settings"`    // nil where none is better than the file's
	Saves    int64   `json:"saves_bytes"` // of peak reserved memory, over all devices
	Text     string  `json:"text"`
}

// NewSimulation begins the document of a file.
func NewSimulation(file, version string, partial bool) *Simulation {
	return &Simulation{
		Schema: "strandline.simulate/1", File: file, Version: version, Partial: partial,
		Devices: []Replayed{}, Runs: []Simulated{},
	}
}

// AddReplay adds the replay of a device.
func (d *Simulation) AddReplay(x *replay.Result) {
	r := Replayed{
		Device: x.Device, Events: x.Trace.Len(), Settings: x.Settings.Changed(), Exact: x.Difference == nil,
		Calls: Reproduced{x.Calls, x.CallsMet}, Segments: Reproduced{x.Segments, x.SegmentsMet}, Difference: x.Difference,
	}
	if r.Exact && (r.Events > 0 || r.Segments.Recorded == 0) {
		s := x.Stats
		r.Reserved, r.Allocated, r.Retries, r.OOMs = &s.ReservedPeak, &s.AllocatedPeak, &s.Retries, &s.OOMs
	}
	as := x.Assumed()
	r.lost, r.held = x.Lost, x.StartReserved
	r.Assumed = Assumed{as.Limit, as.Capacity, as.Notes, as.Room()}
	d.Devices = append(d.Devices, r)
}

// AddCourse adds the course of memory in the recorded run, as an exact replay
// has it.
func (d *Simulation) AddCourse(x *replay.Result, o *replay.Outcome) {
	if r := d.device(x.Device); r.Exact {
		r.Samples, r.Stranded = courseOf(o), &o.Stranded
	}
}

func courseOf(o *replay.Outcome) []Course {
	course := []Course{}
	for _, s := range o.Samples {
		course = append(course, Course{s.Event, s.Reserved, s.Allocated, s.Stranded})
	}
	return course
}

// Change says what the settings of the file are, and in words what else is
// different in all runs, the capacity among it if bounded.
func (d *Simulation) Change(own string, changes []string, bounded bool) {
	d.own, d.changes, d.bounded = own, changes, bounded
}

// A Run is what came of a run on a device.
type Run struct {
	On       *replay.Result
	Scenario *replay.Scenario
	Outcome  *replay.Outcome
	// Smallest is the least capacity in which it fits, 0 if the limit alone is too
	// low; nil if it was not looked for.
	Smallest *int64
}

// AddRun adds a run under settings, on each device that has a history.
func (d *Simulation) AddRun(settings string, on []Run, notes []string) {
	run := Simulated{Settings: settings, Notes: append(on[0].Scenario.Idle(), notes...), Devices: []SimulatedDevice{}}
	for _, r := range on {
		run.untested = union(run.untested, r.On.Untested(&r.Scenario.Settings))
		if note := r.On.Held(); note != "" {
			run.Notes = append(run.Notes, note)
		}
		o := r.Outcome
		one := SimulatedDevice{
			Device: r.On.Device, Capacity: bound(r.Scenario.Capacity), Limit: bound(r.Scenario.Limit),
			Reserved: o.ReservedPeak, Allocated: o.AllocatedPeak, OOMs: o.OOMs, Calls: o.DriverCalls(),
			CostMS: replay.Cost(&o.Stats), Retries: o.Retries, Smallest: r.Smallest,
		}
		if one.limited = r.Smallest != nil && *r.Smallest == 0; one.limited {
			one.Smallest = nil
		}
		one.Samples, one.Stranded = courseOf(o), o.Stranded
		if f := o.OOM; f != nil {
			one.OOM = &Refused{f.Event, f.Size, f.Reserved, f.Active, siteOf(r.On.Snap.Stacks.Site(f.Stack)), f.Recorded}
		}
		run.Devices = append(run.Devices, one)
	}
	if len(run.untested) > 0 {
		run.Notes = append(run.Notes, allocator.UntestedNote(run.untested))
	}
	d.Runs = append(d.Runs, run)
}

// union adds what is not there yet.
func union(to, some []string) []string {
	for _, s := range some {
		if !slices.Contains(to, s) {
			to = append(to, s)
		}
	}
	return to
}

func bound(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// Recommend says which of the runs, the best of which stands first, is to be
// used in the place of the file's own settings.
func (d *Simulation) Recommend() {
	best := &d.Runs[0]
	rec := &Recommendation{}
	d.Best = rec
	least, none := best.peak()
	var now int64
	var failed bool
	for i := range d.Runs {
		if d.Runs[i].Settings == d.own {
			now, failed = d.Runs[i].peak()
		}
	}
	switch {
	case none:
		rec.Text = fmt.Sprintf("None of %s fits", count(len(d.Runs), "setting"))
		if c := best.Devices[0].Capacity; c != nil && len(best.Devices) == 1 {
			rec.Text += " in " + units.Bytes(*c)
		}
		rec.Text += "."
		if run, n := d.leastCapacity(); run != nil {
			rec.Text += fmt.Sprintf(" The least that would do is %s, with %s.", units.Bytes(n), settingsName(run.Settings))
		}
	case !failed && now-least <= now/100 && d.held(best) >= now-now/100:
		rec.Text = fmt.Sprintf("The recording does not tell which settings are best: of the peak of %s reserved, %s stood when it began, and stays as it was in all runs. Record from the first allocation.",
			units.Bytes(now), units.Bytes(d.held(best)))
	case !failed && now-least <= now/100:
		rec.Text = fmt.Sprintf("Stay with the settings of the file: none of %s saves more than 1%% of the peak of %s reserved.",
			count(len(d.Runs)-1, "other"), units.Bytes(now))
	default:
		rec.Settings, rec.Saves = &best.Settings, now-least
		if len(best.Devices) == 1 {
			rec.Text = d.sentence(best, d.device(best.Devices[0].Device))
			break
		}
		rec.Text = fmt.Sprintf("With %s this run peaks at %s reserved on its %s together",
			settingsName(best.Settings), units.Bytes(least), count(len(best.Devices), "device"))
		if failed {
			rec.Text += " and does not run out of memory."
		} else {
			rec.Text += fmt.Sprintf(", %s less than with the settings of the file.", units.Bytes(now-least))
		}
	}
}

// held is what the devices of a run had reserved when the recording began.
func (d *Simulation) held(run *Simulated) (bytes int64) {
	for i := range run.Devices {
		bytes += d.device(run.Devices[i].Device).held
	}
	return bytes
}

// peak is the peak of a run over all devices, and whether one ran out.
func (r *Simulated) peak() (reserved int64, fails bool) {
	for i := range r.Devices {
		reserved += r.Devices[i].Reserved
		fails = fails || r.Devices[i].OOM != nil
	}
	return reserved, fails
}

// leastCapacity is the run that fits in the least memory, of those of which
// that is known, and how much a device must have for it; nil if there is none.
func (d *Simulation) leastCapacity() (best *Simulated, least int64) {
	for i := range d.Runs {
		n, known := int64(0), true
		for j := range d.Runs[i].Devices {
			if m := d.Runs[i].Devices[j].Smallest; m != nil {
				n = max(n, *m)
			} else {
				known = false
			}
		}
		if known && (best == nil || n < least) {
			best, least = &d.Runs[i], n
		}
	}
	return best, least
}

func (d *Simulation) device(index int) *Replayed {
	for i := range d.Devices {
		if d.Devices[i].Device == index {
			return &d.Devices[i]
		}
	}
	return nil
}

// on is what came of a run on a device, nil if it was not run there.
func (r *Simulated) on(device int) *SimulatedDevice {
	for i := range r.Devices {
		if r.Devices[i].Device == device {
			return &r.Devices[i]
		}
	}
	return nil
}

func settingsName(settings string) string { return cmp.Or(settings, "the defaults") }

// Text prints the simulation: what would come of it, then the figures, then how
// sure that is.
func (d *Simulation) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s  PyTorch %s\n", s.bold(inputName(d.File)), Line(d.Version))
	if d.Partial {
		fmt.Fprintln(w, s.yellow("only partly readable"))
	}
	if d.Best != nil {
		fmt.Fprintln(w)
		for _, line := range wrap(d.Best.Text, s.columns()) {
			fmt.Fprintln(w, s.bold(line))
		}
		if set := d.Best.Settings; set != nil && *set == "" {
			fmt.Fprintln(w, "  unset PYTORCH_CUDA_ALLOC_CONF")
		} else if set != nil {
			fmt.Fprintln(w, "  export PYTORCH_CUDA_ALLOC_CONF="+Line(*set))
		}
	}
	for i := range d.Devices {
		on := &d.Devices[i]
		fmt.Fprintln(w)
		if len(d.Devices) > 1 {
			fmt.Fprintln(w, s.bold(fmt.Sprintf("device %d", on.Device)))
		}
		if len(d.Runs) > 0 && d.Runs[0].on(on.Device) != nil {
			d.runs(w, s, on)
		}
		on.text(w, s)
	}
	said := map[string]bool{}
	var untested []string // told of all runs in one sentence
	for _, run := range d.Runs {
		if len(run.untested) > 0 {
			said[allocator.UntestedNote(run.untested)] = true
			untested = union(untested, run.untested)
		}
	}
	for _, run := range d.Runs {
		for _, note := range run.Notes {
			if !said[note] {
				said[note] = true
				printWrapped(w, s, "", "note: "+note)
			}
		}
	}
	if len(untested) > 0 {
		printWrapped(w, s, "", "note: "+allocator.UntestedNote(untested))
	}
	if hint := d.hint(); hint != "" {
		fmt.Fprintln(w, "\n"+s.dim("look further: "+hint))
	}
}

// printWrapped prints a text in lines, the second and later ones indented.
func printWrapped(w io.Writer, s Style, indent, text string) {
	for i, line := range wrap(text, s.columns()-len(indent)-2) {
		fmt.Fprintln(w, indent+strings.Repeat("  ", min(i, 1))+line)
	}
}

// hint is the command that tells more.
func (d *Simulation) hint() string {
	file := Line(d.File)
	for i := range d.Devices {
		on := &d.Devices[i]
		switch had := on.Assumed.room; {
		case on.lost:
			return ""
		case on.Events > 0 && len(d.Runs) == 0:
			return fmt.Sprintf("strandline simulate %s --search  ·  --set CONF", file)
		case had != nil && on.ranOut() && len(d.Runs) > 0 && d.Best == nil && !d.bounded:
			return fmt.Sprintf("strandline simulate %s --set CONF --capacity %s", file, units.Typed(*had))
		}
	}
	return ""
}

func (r *Replayed) ranOut() bool { return r.OOMs != nil && *r.OOMs > 0 }

// text says how sure the answers are.
func (r *Replayed) text(w io.Writer, s Style) {
	switch {
	case r.Events == 0:
		fmt.Fprintf(w, "no history is recorded: nothing to replay; the state has %s\n", count(r.Segments.Recorded, "segment"))
		return
	case r.Exact:
		fmt.Fprintf(w, "%s: %s, %s of the driver, %s at the end\n", s.green("replayed exactly"),
			count(r.Events, "event"), count(r.Calls.Recorded, "call"), count(r.Segments.Recorded, "segment"))
		printWrapped(w, s, "  ", "settings: "+settingsName(r.Settings))
		if r.Reserved != nil {
			line := fmt.Sprintf("  peak reserved %s, allocated %s", units.Bytes(*r.Reserved), units.Bytes(*r.Allocated))
			if *r.Retries > 0 {
				line += "; " + counts(*r.Retries, "retry", "retries")
			}
			if *r.OOMs > 0 {
				line += "; " + counts(*r.OOMs, "out-of-memory error", "out-of-memory errors")
				if c := r.Assumed.room; c != nil {
					line += " in " + units.Bytes(*c)
				}
			}
			fmt.Fprintln(w, line)
		}
	default:
		fmt.Fprintf(w, "%s: %s of %s calls of the driver, %s of %s segments\n", s.yellow("not replayed exactly"),
			units.Count(int64(r.Calls.Reproduced)), units.Count(int64(r.Calls.Recorded)),
			units.Count(int64(r.Segments.Reproduced)), units.Count(int64(r.Segments.Recorded)))
		printWrapped(w, s, "  ", "settings: "+settingsName(r.Settings))
		printWrapped(w, s, "  ", r.Difference.String())
		then := "runs under other settings are approximate"
		if r.lost {
			then = "nothing can be run under other settings"
		}
		printWrapped(w, s, "  ", r.Difference.Reason+"; "+then)
	}
	for _, n := range r.Assumed.Notes {
		printWrapped(w, s, "  ", "assumed: "+n)
	}
}

// counts is a number and what it counts.
func counts(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return units.Count(n) + " " + more
}
