package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"strandline/replay"
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
	// Best is the settings that a search recommends, null where none was asked
	// for.
	Best *Recommendation `json:"recommendation,omitempty"`

	change string // what is different in all runs, in words
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
	Assumed    Assumed            `json:"assumed"`
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
}

// Simulated is a run under other settings.
type Simulated struct {
	Settings string            `json:"settings"`
	Devices  []SimulatedDevice `json:"devices"`
}

// SimulatedDevice is such a run on one device.
type SimulatedDevice struct {
	Device    int      `json:"device"`
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
	Settings string `json:"settings"`
	Saves    int64  `json:"saves_bytes"` // of peak reserved memory, over all devices
	Text     string `json:"text"`
}

// NewSimulation begins the document of a file. Change says what is different in
// all runs beside the settings.
func NewSimulation(file, version string, partial bool, change string) *Simulation {
	return &Simulation{
		Schema: "strandline.simulate/1", File: file, Version: version, Partial: partial,
		Devices: []Replayed{}, Runs: []Simulated{}, change: change,
	}
}

// AddReplay adds the replay of a device.
func (d *Simulation) AddReplay(x *replay.Exact) {
	r := Replayed{
		Device: x.Device, Events: x.Trace.Len(), Settings: x.Settings.Changed(), Exact: x.Difference == nil,
		Calls: Reproduced{x.Calls, x.CallsMet}, Segments: Reproduced{x.Segments, x.SegmentsMet}, Difference: x.Difference,
	}
	if r.Exact {
		s := x.Stats
		r.Reserved, r.Allocated, r.Retries, r.OOMs = &s.ReservedPeak, &s.AllocatedPeak, &s.Retries, &s.OOMs
	}
	as := x.Assumed()
	r.Assumed = Assumed{as.Limit, as.Capacity, as.Notes}
	d.Devices = append(d.Devices, r)
}

// AddRun adds a run under settings, with an outcome for each device that was
// replayed.
func (d *Simulation) AddRun(settings string, on []*replay.Exact, outcomes []replay.Outcome, smallest []*int64) {
	run := Simulated{Settings: settings, Devices: []SimulatedDevice{}}
	for i, x := range on {
		o := &outcomes[i]
		one := SimulatedDevice{
			Device: x.Device, Reserved: o.ReservedPeak, Allocated: o.AllocatedPeak, OOMs: o.OOMs, Calls: o.DriverCalls(),
			CostMS: replay.Cost(&o.Stats), Retries: o.Retries, Smallest: smallest[i], Samples: []Course{},
		}
		for _, s := range o.Samples {
			one.Stranded = max(one.Stranded, s.Stranded)
			one.Samples = append(one.Samples, Course{s.Event, s.Reserved, s.Allocated, s.Stranded})
		}
		if f := o.OOM; f != nil {
			one.OOM = &Refused{f.Event, f.Size, f.Reserved, f.Active, siteOf(x.Snap.Stacks.Site(f.Stack)), f.Recorded}
		}
		run.Devices = append(run.Devices, one)
	}
	d.Runs = append(d.Runs, run)
}

// Recommend says which of the runs, the best of which stands first, is to be
// used in the place of own, the file's.
func (d *Simulation) Recommend(own string) {
	best := &d.Runs[0]
	peak := func(r *Simulated) (n int64, fails bool) {
		for i := range r.Devices {
			n += r.Devices[i].Reserved
			fails = fails || r.Devices[i].OOM != nil
		}
		return n, fails
	}
	least, none := peak(best)
	var now int64
	var failed bool
	for i := range d.Runs {
		if d.Runs[i].Settings == own {
			now, failed = peak(&d.Runs[i])
		}
	}
	rec := &Recommendation{Settings: best.Settings, Saves: now - least}
	switch {
	case none:
		rec.Settings, rec.Saves = "", 0
		rec.Text = "None of these settings fits."
		if n := best.smallest(); n > 0 {
			rec.Text += fmt.Sprintf(" The least that would do is %s, with %s.", units.Bytes(n), cmp.Or(best.Settings, "the defaults"))
		}
	case !failed && now-least <= now/100:
		rec.Settings, rec.Saves = "", 0
		rec.Text = "No setting saves more than 1 % of the peak: stay with the settings of the file."
	case failed:
		rec.Text = fmt.Sprintf("%s fits, at a peak of %s reserved; the settings of the file do not.", cmp.Or(best.Settings, "The default"), units.Bytes(least))
	default:
		rec.Text = fmt.Sprintf("%s peaks at %s reserved, %s less than the settings of the file.",
			cmp.Or(best.Settings, "The default"), units.Bytes(least), units.Bytes(now-least))
	}
	d.Best = rec
}

// smallest is the least capacity of a run on any device, 0 where it is unknown.
func (r *Simulated) smallest() (n int64) {
	for i := range r.Devices {
		if m := r.Devices[i].Smallest; m != nil {
			n = max(n, *m)
		}
	}
	return n
}

// Text prints the simulation.
func (d *Simulation) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s  PyTorch %s\n", s.bold(inputName(d.File)), Line(d.Version))
	if d.Partial {
		fmt.Fprintln(w, s.yellow("only partly readable"))
	}
	for i := range d.Devices {
		d.Devices[i].text(w, s)
	}
	if len(d.Runs) == 0 {
		return
	}
	for i := range d.Devices {
		fmt.Fprintln(w)
		d.runs(w, s, i)
	}
	if d.Best != nil {
		fmt.Fprintln(w)
		for _, line := range wrap(d.Best.Text, s.columns()) {
			fmt.Fprintln(w, line)
		}
		if d.Best.Settings != "" {
			fmt.Fprintln(w, "  "+s.bold("export PYTORCH_CUDA_ALLOC_CONF="+d.Best.Settings))
		}
	}
}

func (r *Replayed) text(w io.Writer, s Style) {
	fmt.Fprintf(w, "\ndevice %d  %s, settings: %s\n", r.Device, count(r.Events, "event"), cmp.Or(r.Settings, "the defaults"))
	say := func(format string, args ...any) {
		for i, line := range wrap(fmt.Sprintf(format, args...), s.columns()-2) {
			fmt.Fprintln(w, strings.Repeat(" ", min(i, 1))+" "+line)
		}
	}
	if r.Exact {
		fmt.Fprintf(w, "  %s: all %s and all %s are reproduced\n", s.green("replayed exactly"),
			count(r.Calls.Recorded, "call")+" of the driver", count(r.Segments.Recorded, "segment"))
		fmt.Fprintf(w, "  peak reserved %s, peak allocated %s; %s, %s\n", units.Bytes(*r.Reserved), units.Bytes(*r.Allocated),
			counts(*r.Retries, "retry", "retries"), counts(*r.OOMs, "out-of-memory error", "out-of-memory errors"))
	} else {
		fmt.Fprintf(w, "  %s: %s of %s calls of the driver, %s of %s segments\n", s.yellow("not replayed exactly"),
			units.Count(int64(r.Calls.Reproduced)), units.Count(int64(r.Calls.Recorded)),
			units.Count(int64(r.Segments.Reproduced)), units.Count(int64(r.Segments.Recorded)))
		say("%v", r.Difference)
		say("runs under other settings are approximate from there on")
	}
	for _, n := range r.Assumed.Notes {
		say("assumed: %s", n)
	}
}

// counts is a number and what it counts.
func counts(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return units.Count(n) + " " + more
}

// runs prints a table of the runs on a device.
func (d *Simulation) runs(w io.Writer, s Style, i int) {
	on := &d.Devices[i]
	if d.change != "" {
		fmt.Fprintln(w, Line(d.change))
	}
	title := "with"
	if len(d.Devices) > 1 {
		title = fmt.Sprintf("device %d with", on.Device)
	}
	t := table{right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true}}
	t.row(title, "peak reserved", "stranded", "driver calls", "est. ms", "fits in", "")
	if on.Reserved != nil {
		t.row("(as recorded)", units.Bytes(*on.Reserved), "", units.Count(int64(on.Calls.Recorded)), "", "", ending(*on.OOMs > 0, *on.Retries))
	}
	for _, run := range d.Runs {
		if i >= len(run.Devices) {
			continue
		}
		r := &run.Devices[i]
		fits := ""
		if r.Smallest != nil {
			fits = units.Bytes(*r.Smallest)
		}
		stranded := ""
		if len(r.Samples) > 0 {
			stranded = units.Bytes(r.Stranded)
		}
		t.row(cmp.Or(run.Settings, "(defaults)"), units.Bytes(r.Reserved), stranded, units.Count(r.Calls),
			fmt.Sprintf("%.0f", r.CostMS), fits, ending(r.OOM != nil, r.Retries))
	}
	t.write(w, "  ")
	told := 0
	for _, run := range d.Runs {
		if i >= len(run.Devices) || run.Devices[i].OOM == nil || told == mostFailures {
			continue
		}
		f := run.Devices[i].OOM
		line := fmt.Sprintf("%s: %s asked for at event %s, %s of %s reserved in use", cmp.Or(run.Settings, "(defaults)"),
			units.Bytes(f.Bytes), units.Count(int64(f.Event)), units.Bytes(f.Active), units.Bytes(f.Reserved))
		if f.Site.File != nil {
			line += fmt.Sprintf(", by %s:%d %s", *f.Site.File, *f.Site.Line, *f.Site.Function)
		}
		fmt.Fprintln(w, "  "+s.dim(Line(line)))
		told++
	}
}

// mostFailures are those of which the text tells the request; --json has all.
const mostFailures = 3

func ending(oom bool, retries int64) string {
	switch {
	case oom:
		return "runs out of memory"
	case retries > 0:
		return counts(retries, "retry", "retries")
	}
	return ""
}
