package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/internal/shell"
	"strandline/torch/allocator"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/units"
)

// Simulation is the document of `strandline simulate`.
type Simulation struct {
	api.Simulation

	own     string   // the settings of the file
	changes []string // what differs in all runs, in words
	bounded bool     // the changes name the capacity
	host    *replay.Host
}

// NewSimulation begins the document of a file.
func NewSimulation(file, version string, partial bool) *Simulation {
	return &Simulation{Simulation: api.Simulation{
		Schema: api.SimulateSchema, File: file, Version: version, Partial: partial,
		Devices: []api.Replayed{}, Runs: []api.Simulated{},
	}}
}

// AddReplay adds the replay of a device.
func (d *Simulation) AddReplay(x *replay.Result) {
	r := api.Replayed{
		Device: x.Device, Events: x.Trace.Len(), Settings: x.Settings.Changed(), Exact: x.Difference == nil,
		Calls: api.Reproduced{Recorded: x.Calls, Reproduced: x.CallsMet}, Segments: api.Reproduced{Recorded: x.Segments, Reproduced: x.SegmentsMet}, Difference: x.Difference,
	}
	if r.Exact && (r.Events > 0 || r.Segments.Recorded == 0) {
		s := x.Stats
		r.Reserved, r.Allocated, r.OOMs = &s.ReservedPeak, &s.AllocatedPeak, &s.OOMs
		if !x.RetriesInDoubt {
			r.Retries = &s.Retries
		}
	}
	as := x.Assumed()
	r.Unverified = append([]string{}, x.Unverified()...)
	r.Lost, r.Held = x.Lost, x.StartReserved
	r.Assumed = api.Assumed{Limit: as.Limit, Capacity: as.Capacity, Notes: as.Notes, Room: as.Room()}
	d.Devices = append(d.Devices, r)
}

// AddHost adds the replay of pinned host memory.
func (d *Simulation) AddHost(h *replay.Host) {
	settings := allocator.DefaultSettings()
	settings.Host = h.Settings.Host
	r := api.Replayed{
		Device: h.Device, Kind: "host", Events: h.Trace.Len(), Settings: settings.Changed(), Exact: h.Difference == nil,
		Calls: api.Reproduced{Recorded: h.Calls, Reproduced: h.CallsMet}, Segments: api.Reproduced{Recorded: h.Segments, Reproduced: h.SegmentsMet},
		Difference: h.Difference, Unverified: append([]string{}, h.Snap.Unknown()...), Samples: []api.Course{},
		Assumed: api.Assumed{Notes: []string{}},
	}
	if r.Exact && r.Events > 0 {
		none := int64(0)
		r.Reserved, r.Allocated, r.OOMs, r.Retries = &h.PeakReserved.Bytes, &h.PeakRequested.Bytes, &none, &none
		d.host = h
	}
	d.Devices = append(d.Devices, r)
}

// runHost is pinned host memory under settings, nil where they do not change it.
func (d *Simulation) runHost(run *api.Simulated, set allocator.Host) *api.SimulatedHost {
	if set == d.host.Settings.Host {
		return nil
	}
	if set.MaxRoundThreshold != d.host.Settings.Host.MaxRoundThreshold {
		run.Notes = append(run.Notes, "the effect of pinned_max_round_threshold_mb is unknown: recorded sizes of pinned host memory are rounded already")
	}
	o := d.host.Under(set)
	return &api.SimulatedHost{Reserved: o.ReservedPeak, Allocated: o.ActivePeak, Calls: o.DriverCalls}
}

// AddCourse adds the memory over time in the recorded run, as an exact replay
// computes it.
func (d *Simulation) AddCourse(x *replay.Result, o *replay.Outcome) {
	if r := d.device(x.Device); r.Exact {
		r.Samples, r.Stranded = courseOf(o), &o.Stranded
	}
}

func courseOf(o *replay.Outcome) []api.Course {
	course := []api.Course{}
	for _, s := range o.Samples {
		course = append(course, api.Course{Event: s.Event, Reserved: s.Reserved, Allocated: s.Allocated, Stranded: s.Stranded})
	}
	return course
}

// Change states what the settings of the file are, and in words what else is
// different in all runs, the capacity among it if bounded.
func (d *Simulation) Change(own string, changes []string, bounded bool) {
	d.own, d.changes, d.bounded = own, changes, bounded
}

// A Run is the result of a run on a device.
type Run struct {
	On       *replay.Result
	Scenario *replay.Scenario
	Outcome  *replay.Outcome
	// Smallest is the least capacity in which it fits, 0 if the limit alone is too
	// low; nil if it was not searched for.
	Smallest *int64
}

// AddRun adds a run under settings, on each device that has a history.
func (d *Simulation) AddRun(under replay.Choice, on []Run, notes []string) {
	run := api.Simulated{Settings: under.Conf, Notes: append(on[0].Scenario.Idle(), notes...), Devices: []api.SimulatedDevice{}}
	for _, r := range on {
		run.Untested = union(run.Untested, r.On.Untested(&r.Scenario.Settings))
		if note := r.On.Held(); note != "" {
			run.Notes = append(run.Notes, note)
		}
		o := r.Outcome
		one := api.SimulatedDevice{
			Device: r.On.Device, Capacity: bound(r.Scenario.Capacity), Limit: bound(r.Scenario.Limit),
			Reserved: o.ReservedPeak, Allocated: o.AllocatedPeak, OOMs: o.OOMs, Calls: o.DriverCalls(),
			CostMS: replay.Cost(&o.Stats), Retries: o.Retries, Smallest: r.Smallest,
		}
		if one.Limited = r.Smallest != nil && *r.Smallest == 0; one.Limited {
			one.Smallest = nil
		}
		one.Samples, one.Stranded = courseOf(o), o.Stranded
		if f := o.OOM; f != nil {
			one.OOM = &api.Refused{Event: f.Event, Bytes: f.Size, Reserved: f.Reserved, Active: f.Active, Site: siteOf(r.On.Snap.Stacks.Site(f.Stack)), Recorded: f.Recorded}
		}
		run.Devices = append(run.Devices, one)
	}
	if d.host != nil {
		run.Host = d.runHost(&run, under.Settings.Host)
	}
	if len(run.Untested) > 0 {
		run.Notes = append(run.Notes, allocator.UntestedNote(run.Untested))
	}
	d.Runs = append(d.Runs, run)
}

// union adds what is not in a list yet.
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

// Recommend states which of the runs, of which the best is first, to use instead of the
// file's own settings.
func (d *Simulation) Recommend() {
	best := &d.Runs[0]
	rec := &api.Recommendation{}
	d.Best = rec
	least, none := peakOfRun(best)
	var now int64
	var failed bool
	for i := range d.Runs {
		if d.Runs[i].Settings == d.own {
			now, failed = peakOfRun(&d.Runs[i])
		}
	}
	switch {
	case none:
		rec.Text = fmt.Sprintf("None of %s fits", count(len(d.Runs), "setting"))
		if c := best.Devices[0].Capacity; c != nil && len(best.Devices) == 1 {
			rec.Text += " in " + units.Bytes(*c)
		}
		rec.Text += "."
		if run, n := d.minCapacity(); run != nil {
			rec.Text += fmt.Sprintf(" The least that suffices is %s, with %s.", units.Bytes(n), settingsName(run.Settings))
		}
	case !failed && now-least <= now/100 && d.held(best) >= now-now/100:
		rec.Text = fmt.Sprintf("The recording does not show which settings are best: of the peak of %s reserved, %s was there when it began, and stays the same in all runs. Record from the first allocation.",
			units.Bytes(now), units.Bytes(d.held(best)))
	case !failed && now-least <= now/100:
		rec.Text = fmt.Sprintf("Keep the file's settings: none of %s saves more than 1%% of the peak of %s reserved.",
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

// held returns what the devices of a run had reserved when the recording began.
func (d *Simulation) held(run *api.Simulated) (bytes int64) {
	for i := range run.Devices {
		bytes += d.device(run.Devices[i].Device).Held
	}
	return bytes
}

// peakOfRun returns the peak of a run over all devices, and whether one ran out.
func peakOfRun(r *api.Simulated) (reserved int64, fails bool) {
	for i := range r.Devices {
		reserved += r.Devices[i].Reserved
		fails = fails || r.Devices[i].OOM != nil
	}
	return reserved, fails
}

// leastCapacity returns the run that fits in the least memory, of those for which
// that is known, and how much a device must have for it; nil if there is none.
func (d *Simulation) minCapacity() (best *api.Simulated, least int64) {
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

func (d *Simulation) device(index int) *api.Replayed {
	for i := range d.Devices {
		if d.Devices[i].Device == index {
			return &d.Devices[i]
		}
	}
	return nil
}

// runOn returns the result of a run on a device, nil if it was not run there.
func runOn(r *api.Simulated, device int) *api.SimulatedDevice {
	for i := range r.Devices {
		if r.Devices[i].Device == device {
			return &r.Devices[i]
		}
	}
	return nil
}

func settingsName(settings string) string { return cmp.Or(settings, "the defaults") }

// Text prints the simulation: what would happen, then the figures, then how
// certain that is.
func (d *Simulation) Text(w io.Writer, s Style) {
	if !s.Verbose {
		d.brief(w, s)
		return
	}
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
	if d.Reclaim != nil {
		d.writeReclaim(w, s)
	}
	for i := range d.Devices {
		on := &d.Devices[i]
		fmt.Fprintln(w)
		if len(d.Devices) > 1 {
			fmt.Fprintln(w, s.bold(snapshot.DeviceName(on.Device)))
		}
		if len(d.Runs) > 0 && runOn(&d.Runs[0], on.Device) != nil {
			d.runs(w, s, on)
		}
		if on.Kind == "host" {
			d.runsOfHost(w)
		}
		writeReplayed(w, s, on)
	}
	for _, note := range d.notes() {
		printWrapped(w, s, "", "note: "+note)
	}
	if hint := d.hint(); hint != "" {
		fmt.Fprintln(w, "\n"+s.dim("look further: "+hint))
	}
}

// runsOfHost prints pinned host memory under the settings that change it.
func (d *Simulation) runsOfHost(w io.Writer) {
	for i := range d.Runs {
		if r := &d.Runs[i]; r.Host != nil {
			fmt.Fprintf(w, "with %s: peak reserved %s, %s\n", settingsName(r.Settings), units.Bytes(r.Host.Reserved), units.Counted(r.Host.Calls, "driver call", "driver calls"))
		}
	}
}

// printWrapped prints a text in lines, the second and later ones indented.
func printWrapped(w io.Writer, s Style, indent, text string) {
	for i, line := range wrap(text, s.columns()-len(indent)-2) {
		fmt.Fprintln(w, indent+strings.Repeat("  ", min(i, 1))+line)
	}
}

// hint returns the command that shows more.
func (d *Simulation) hint() string {
	file := shell.File(Line(d.File))
	for i := range d.Devices {
		on := &d.Devices[i]
		switch had := on.Assumed.Room; {
		case on.Lost:
			return ""
		case on.Events > 0 && on.Kind == "" && len(d.Runs) == 0 && d.Reclaim == nil:
			return fmt.Sprintf("strandline simulate %s --search  ·  --set CONF", file)
		case had != nil && ranOut(on) && len(d.Runs) > 0 && d.Best == nil && !d.bounded:
			return fmt.Sprintf("strandline simulate %s --set CONF --capacity %s", file, units.Typed(*had))
		}
	}
	return ""
}

func ranOut(r *api.Replayed) bool { return r.OOMs != nil && *r.OOMs > 0 }

// writeReplayed states how certain the answers are.
func writeReplayed(w io.Writer, s Style, r *api.Replayed) {
	switch {
	case r.Events == 0:
		fmt.Fprintf(w, "no history was recorded: nothing to replay; the state has %s\n", count(r.Segments.Recorded, "segment"))
		return
	case r.Exact:
		fmt.Fprintf(w, "%s: %s, %s of the driver, %s at the end\n", s.green("replayed exactly"),
			count(r.Events, "event"), count(r.Calls.Recorded, "call"), count(r.Segments.Recorded, "segment"))
		printWrapped(w, s, "  ", "settings: "+settingsName(r.Settings))
		if r.Reserved != nil {
			line := fmt.Sprintf("  peak reserved %s, allocated %s", units.Bytes(*r.Reserved), units.Bytes(*r.Allocated))
			if r.Retries != nil && *r.Retries > 0 {
				line += "; " + units.Counted(*r.Retries, "retry", "retries")
			}
			if *r.OOMs > 0 {
				line += "; " + units.Plural(*r.OOMs, "out-of-memory error")
				if c := r.Assumed.Room; c != nil {
					line += " in " + units.Bytes(*c)
				}
			}
			fmt.Fprintln(w, line)
		}
	default:
		fmt.Fprintf(w, "%s: %s of %s driver calls, %s of %s segments\n", s.yellow("not replayed exactly"),
			units.Count(int64(r.Calls.Reproduced)), units.Count(int64(r.Calls.Recorded)),
			units.Count(int64(r.Segments.Reproduced)), units.Count(int64(r.Segments.Recorded)))
		printWrapped(w, s, "  ", "settings: "+settingsName(r.Settings))
		printWrapped(w, s, "  ", r.Difference.String())
		then := "runs under other settings are approximate"
		if r.Lost {
			then = "nothing can be run under other settings"
		}
		printWrapped(w, s, "  ", r.Difference.Reason+"; "+then)
	}
	for _, n := range r.Assumed.Notes {
		printWrapped(w, s, "  ", "assumed: "+n)
	}
}
