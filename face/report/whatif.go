package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"strandline/face/api"
	"strandline/units"
)

const (
	maxSentences = 3 // of runs that are described in sentences
	maxRows      = 8 // of a search; --json has all
	maxCurves    = 4
	longestName  = 36 // of settings, in a column
)

// runs prints the results of the runs on a device: in sentences, as a table, and the
// stranded memory over time.
func (d *Simulation) runs(w io.Writer, s Style, on *api.Replayed) {
	if d.Best == nil {
		for i := range d.Runs[:min(len(d.Runs), maxSentences)] {
			for _, line := range wrap(d.sentence(&d.Runs[i], on), s.columns()) {
				fmt.Fprintln(w, s.bold(line))
			}
		}
		fmt.Fprintln(w)
	}
	d.table(w, on)
	if d.Best == nil && len(d.Runs) <= maxCurves {
		d.curves(w, on)
	}
	fmt.Fprintln(w)
}

// name returns the name of a run in a column: what differs in it.
func (d *Simulation) name(run *api.Simulated) string {
	if run.Settings == d.own && len(d.Runs) == 1 && len(d.changes) > 0 {
		return strings.Join(d.changes, ", ")
	}
	return settingsName(run.Settings)
}

// sentence describes the result of a run on a device.
func (d *Simulation) sentence(run *api.Simulated, on *api.Replayed) string {
	var with []string
	if run.Settings != d.own || len(d.changes) == 0 || len(d.Runs) > 1 {
		with = append(with, "with "+settingsName(run.Settings))
	}
	with = append(with, d.changes...)
	r := runOn(run, on.Device)
	if r.Capacity != nil && !d.bounded {
		with = append(with, "in the recorded "+units.Bytes(*r.Capacity))
	}
	begin := strings.Join(with, ", ")
	begin = strings.ToUpper(begin[:1]) + begin[1:]
	if len(with) > 1 {
		begin += ","
	}
	return begin + " this run " + verdictOf(r, on) + "."
}

// verdictOf describes the result of a run, compared with what is recorded.
func verdictOf(r *api.SimulatedDevice, on *api.Replayed) string {
	had := on.Assumed.Room
	switch {
	case r.OOM != nil:
		line := fmt.Sprintf("runs out of memory at event %s: %s is requested", units.Count(int64(r.OOM.Event)), units.Bytes(r.OOM.Bytes))
		if f := r.OOM.Site; f.File != nil {
			line += fmt.Sprintf(" by %s:%d %s", *f.File, *f.Line, *f.Function)
		}
		line += fmt.Sprintf(" while %s of %s reserved is active", units.Bytes(r.OOM.Active), units.Bytes(r.OOM.Reserved))
		switch {
		case r.Smallest != nil:
			line += "; it needs " + units.Bytes(*r.Smallest)
		case r.Limited && r.Limit != nil:
			line += fmt.Sprintf("; the limit of %s is too low, whatever the capacity", units.Bytes(*r.Limit))
		}
		return line
	case r.Capacity == nil && ranOut(on) && had != nil && r.Smallest != nil:
		if *r.Smallest > *had {
			return fmt.Sprintf("needs %s; the recorded one ran out of memory with %s", units.Bytes(*r.Smallest), units.Bytes(*had))
		}
		return fmt.Sprintf("fits in %s; the recorded one ran out of memory with %s", units.Bytes(*r.Smallest), units.Bytes(*had))
	}
	line := "peaks at " + units.Bytes(r.Reserved) + " reserved"
	if on.Held > 0 && r.Reserved <= on.Held {
		line = fmt.Sprintf("keeps the %s reserved when the recording began and takes no more", units.Bytes(r.Reserved))
	} else if was := on.Reserved; was != nil {
		switch same := units.Bytes(*was) == units.Bytes(r.Reserved); {
		case !same:
			line += " instead of " + units.Bytes(*was)
		case !ranOut(on):
			line += ", as recorded,"
		}
		if was := *on.Allocated; abs(r.Allocated-was) > was/20 {
			line += fmt.Sprintf(" (%s allocated instead of %s)", units.Bytes(r.Allocated), units.Bytes(was))
		}
	}
	if r.Capacity == nil {
		return strings.TrimSuffix(line, ",")
	}
	return line + " and does not run out of memory"
}

func abs(n int64) int64 { return max(n, -n) }

// table prints a row for each run; the rows of a search are the best, and that
// of the file's own settings.
func (d *Simulation) table(w io.Writer, on *api.Replayed) {
	t := table{right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true}}
	t.row("settings", "peak reserved", "stranded", "fits in", "driver calls", "est. cost")
	if d.Best == nil && on.Reserved != nil {
		peak := units.Bytes(*on.Reserved)
		if ranOut(on) {
			peak = "runs out"
		}
		stranded := ""
		if on.Stranded != nil {
			stranded = units.Bytes(*on.Stranded)
		}
		t.row("as recorded", peak, stranded, "", units.Count(int64(on.Calls.Recorded)), "")
	}
	_, none := peakOfRun(&d.Runs[0])
	shown, same, failing, left := map[string]bool{}, 0, 0, 0
	for i := range d.Runs {
		run := &d.Runs[i]
		r := runOn(run, on.Device)
		name := d.name(run)
		if d.Best != nil {
			result := fmt.Sprint(r.Reserved, r.Stranded, r.Calls, r.OOM != nil)
			switch {
			case run.Settings == d.own:
				name += " (the file's)"
			case r.OOM != nil && !none:
				failing++
				continue
			case shown[result]:
				same++
				continue
			case len(shown) >= maxRows:
				left++
				continue
			}
			shown[result] = true
		}
		t.run(name, r)
	}
	t.write(w, "  ")
	var rest []string
	for _, part := range []struct {
		n    int
		what string
	}{{same, "with the result of one above"}, {left, "worse"}, {failing, "that run out of memory"}} {
		if part.n > 0 {
			rest = append(rest, units.Count(int64(part.n))+" "+part.what)
		}
	}
	if len(rest) > 0 {
		fmt.Fprintf(w, "  others tried: %s\n", strings.Join(rest, ", "))
	}
}

// run adds the row of a run. A long name has a row of its own.
func (t *table) run(name string, r *api.SimulatedDevice) {
	options := strings.SplitAfter(name, ",")
	for len(options) > 1 && utf8.RuneCountInString(name) > longestName {
		t.row(options[0])
		options = options[1:]
		name = "  " + strings.TrimSpace(strings.Join(options, ""))
	}
	peak, stranded, fits := units.Bytes(r.Reserved), "", ""
	if r.OOM != nil {
		peak = "runs out"
	}
	if len(r.Samples) > 0 {
		stranded = units.Bytes(r.Stranded)
	}
	switch {
	case r.Smallest != nil:
		fits = units.Bytes(*r.Smallest)
	case r.Limited:
		fits = "limit too low"
	}
	cost := "0 ms"
	if r.CostMS > 0 {
		cost = units.Duration(time.Duration(r.CostMS * float64(time.Millisecond)))
	}
	t.row(name, peak, stranded, fits, units.Count(r.Calls), cost)
}

// curves draws the stranded bytes over the events, all on one scale.
func (d *Simulation) curves(w io.Writer, on *api.Replayed) {
	type run struct {
		name   string
		course []api.Course
	}
	runs, most := []run{}, int64(0)
	add := func(name string, course []api.Course) {
		runs = append(runs, run{name, course})
		for _, c := range course {
			most = max(most, c.Stranded)
		}
	}
	if on.Stranded != nil {
		add("as recorded", on.Samples)
	}
	for i := range d.Runs {
		add(d.name(&d.Runs[i]), runOn(&d.Runs[i], on.Device).Samples)
	}
	if most == 0 {
		return
	}
	const points = 48
	fmt.Fprintf(w, "\n  stranded at %d moments, up to %s\n", points, units.Bytes(most))
	var t table
	for _, r := range runs {
		values := make([]int64, min(points, len(r.course)))
		for i := range values {
			values[i] = r.course[i*len(r.course)/len(values)].Stranded
		}
		t.row(cut(r.name, longestName), curve(values, 0, most))
	}
	t.write(w, "    ")
}
