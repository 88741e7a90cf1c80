package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/judge/tables"
	"strandline/profiles"
	"strandline/profiles/jax"
	"strandline/profiles/sites"
	"strandline/stack"
	"strandline/units"
)

// Profile is the document of `strandline inspect` of another program's file.
type Profile struct {
	api.Profile
}

// NewProfile makes the document.
func NewProfile(f *profiles.File) *Profile {
	d := &Profile{Profile: api.Profile{Schema: api.InspectSchema, File: f.Name, Partial: f.Partial != nil, Format: f.Format, Writer: f.Writer, Notes: append([]string{}, f.Notes...)}}
	for _, l := range f.Levels {
		d.Devices = append(d.Devices, api.ProfileLevel{Device: named(l.Device), Kind: l.Kind, Live: l.Live, Count: l.Count, Peak: l.Peak})
	}
	for _, c := range f.Failed {
		d.Failed = append(d.Failed, api.ProfileCall{Name: c.Name, Status: c.Status, Count: c.Count})
	}
	for _, m := range f.Checkpoints {
		d.Steps = append(d.Steps, m.Name)
	}
	if h := f.Host; h != nil {
		host := api.ProfileHost(*h)
		d.ProfileHost = &host
	}
	for i := range f.Columns {
		d.Columns = append(d.Columns, levelColumn(&f.Columns[i]))
	}
	d.Sites = profilePlaces(f.Uses)
	return d
}

// levelColumn sums up a column of levels.
func levelColumn(c *profiles.Column) api.LevelColumn {
	out := api.LevelColumn{Process: named(c.Process), Name: c.Name}
	if c.Unit == "" {
		var last float64
		for _, at := range c.Times {
			last = max(last, at)
		}
		out.Seconds = &last
	}
	var lowest, highest, last float64
	for _, x := range c.Bytes {
		if !(x >= 0 && x < 1<<62) { // NaN is missing
			continue
		}
		if out.Samples++; out.Samples == 1 {
			lowest, highest = x, x
		}
		lowest, highest, last = min(lowest, x), max(highest, x), x
	}
	switch {
	case out.Samples == 0:
	case c.Percent:
		out.Percent = &[3]float64{lowest, highest, last}
	default:
		out.Lowest, out.Highest, out.Last = finding.Int(int64(lowest)), finding.Int(int64(highest)), finding.Int(int64(last))
	}
	if !c.Percent {
		out.Limit = c.Limit
	}
	return out
}

// profilePlaces sums arrays by line and device, the heaviest first.
func profilePlaces(uses []profiles.Use) (out []api.ProfilePlace) {
	type key struct {
		site   stack.Frame
		device string
	}
	at := map[key]int{}
	for _, u := range uses {
		if u.Kind == jax.Executable {
			continue
		}
		k := key{jax.Site(u.Stack), u.Device}
		if k.site == (stack.Frame{}) && len(u.Stack) > 0 { // operators or addresses, without lines of Python
			k.site = u.Stack[0]
		}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, api.ProfilePlace{Site: allocatedAt(k.site), Device: named(u.Device)})
		}
		out[i].Bytes = units.Sum(out[i].Bytes, u.Size*u.Count)
		out[i].Count = units.Sum(out[i].Count, u.Count)
	}
	sorts.StableBy(out, func(a, b api.ProfilePlace) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// allocatedAt is a line of code, or an operator that has none.
func allocatedAt(s stack.Frame) api.Site {
	if s.File == "" && s.Function != "" {
		return api.Site{Function: &s.Function}
	}
	return siteOf(s)
}

// Text prints the facts.
func (d *Profile) Text(w io.Writer, s Style) {
	title := d.Format
	if d.Writer != "" {
		title += ", " + d.Writer
	}
	fmt.Fprintf(w, "%s  %s\n", s.bold(inputName(d.File)), Line(title))
	if d.Partial {
		fmt.Fprintln(w, s.yellow("only partly readable"))
	}
	if len(d.Devices) > 0 {
		fmt.Fprintln(w)
		d.levels().write(w, "  ")
	}
	if len(d.Columns) > 0 {
		fmt.Fprintln(w)
		d.columns().write(w, "  ")
	}
	d.writeHost(w)
	d.writePlaces(w, s)
	for _, c := range d.Failed {
		fmt.Fprintf(w, "\n%s %s returned %d %s\n", s.red("failed"), Line(c.Name), c.Status, units.Times(c.Count))
	}
	if len(d.Steps) > 0 {
		fmt.Fprintf(w, "\n%s\n", count(len(d.Steps), "step"))
	}
	for i, n := range d.Notes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, s.yellow("note")+"  "+Line(n))
	}
}

func (d *Profile) levels() *table {
	t := &table{right: map[int]bool{2: true, 3: true, 4: true}}
	t.row("device", "kind", "live", "pieces", "peak")
	for _, l := range d.Devices {
		device := "not stated"
		if l.Device != nil {
			device = *l.Device
		}
		pieces := "?"
		if l.Count != nil {
			pieces = units.Count(*l.Count)
		}
		t.row(device, l.Kind, sizeOrUnknown(l.Live), pieces, sizeOrUnknown(l.Peak))
	}
	return t
}

func (d *Profile) columns() *table {
	t := &table{right: map[int]bool{2: true, 3: true, 4: true, 5: true}}
	t.row("column", "of", "samples", "lowest", "highest", "last")
	for _, c := range d.Columns {
		process := ""
		if c.Process != nil {
			process = *c.Process
		}
		cells := []string{sizeOrUnknown(c.Lowest), sizeOrUnknown(c.Highest), sizeOrUnknown(c.Last)}
		if c.Percent != nil {
			for i, x := range c.Percent {
				cells[i] = units.Percent(x / 100)
			}
		}
		t.row(append([]string{c.Name, process, units.Count(int64(c.Samples))}, cells...)...)
	}
	return t
}

func sizeOrUnknown(n *int64) string {
	if n == nil {
		return "?"
	}
	return units.Bytes(*n)
}

func (d *Profile) writePlaces(w io.Writer, s Style) {
	const maxPlaces = 20
	t := &table{right: map[int]bool{0: true, 1: true}}
	for i, p := range d.Sites {
		if i == maxPlaces {
			break
		}
		device := ""
		if p.Device != nil {
			device = *p.Device
		}
		t.row(units.Bytes(p.Bytes), units.Count(p.Count), device, siteName(p.Site))
	}
	if len(t.rows) > 0 {
		fmt.Fprintln(w)
		t.write(w, "  ")
	}
	if n := len(d.Sites) - maxPlaces; n > 0 {
		fmt.Fprintln(w, s.dim("  … and "+count(n, "more place")))
	}
}

func (d *Profile) writeHost(w io.Writer) {
	h := d.ProfileHost
	if h == nil {
		return
	}
	t := &table{right: map[int]bool{1: true}}
	for _, x := range []struct {
		name string
		n    *int64
	}{
		{"resident", h.RSS}, {"peak resident", h.Peak}, {"anonymous", h.Anonymous}, {"of it malloc's heap", h.Heap}, {"of it huge pages", h.HugePages},
		{"thread stacks", h.Stacks}, {"file", h.File}, {"shared", h.Shared}, {"of it memfd", h.Memfd}, {"locked", h.Pinned}, {"kernel", h.Kernel},
		{"swapped out", h.Swap},
		{"total", h.Total}, {"available", h.Available},
	} {
		if x.n != nil {
			t.row(x.name, units.Bytes(*x.n))
		}
	}
	fmt.Fprintln(w)
	t.write(w, "  ")
}

// NewProfiles makes the document of `strandline diagnose` of other programs' files.
func NewProfiles(a tables.Answer, all []tables.Series) *Diagnosis {
	d := &Diagnosis{Diagnosis: api.Diagnosis{Schema: api.DiagnoseSchema, Verdict: a.Verdict, Findings: a.Findings}}
	if d.Findings == nil {
		d.Findings = []finding.Finding{}
	}
	for _, s := range all {
		p := api.Process{Process: named(s.Process), Basis: []string{profilesBasis(s)}}
		for _, f := range s.Files {
			p.Files = append(p.Files, f.Name)
			p.Texts = append(p.Texts, f.Name)
			if f.Format == profiles.Levels {
				d.Notes = append(d.Notes, f.Notes...)
			}
			if f.Partial != nil {
				p.Partial = append(p.Partial, f.Name)
			}
		}
		d.Processes = append(d.Processes, p)
		d.record = toRecord(s.Files[0])
		if s.Files[0].Format == "prometheus" {
			d.source = "query result"
		}
	}
	d.record = cmp.Or(d.record, "give three or more files of one process, in the order in which they were written")
	return d
}

// toRecord is how to make what can be judged, where a file is not enough.
func toRecord(f *profiles.File) string {
	watch := "strandline watch --pid " + tables.ProcessOf(f) + " --out run.strandline --duration 10m   # of the running process"
	switch {
	case f.Host != nil:
		return watch
	case f.Format != profiles.Levels:
		return record[f.Format]
	}
	device, missing := true, true
	for i := range f.Columns {
		c := &f.Columns[i]
		device = device && tables.OfDevice(c)
		missing = missing && !slices.ContainsFunc(c.Bytes, func(x float64) bool { return !math.IsNaN(x) })
	}
	switch {
	case !device:
		return watch
	case missing:
		return "strandline watch --out run.strandline --duration 10m   # asks the processes where the driver does not answer"
	}
	return record[f.Format]
}

// record states how to make three files or more of a kind.
var record = map[string]string{
	"jax": `for step in range(4):
    ...                                                          # your step
    jax.profiler.save_device_memory_profile(f"step-{step}.prof")`,
	sites.Operators: "strandline record -- python TRAIN.py",
	sites.Lines:     "strandline trace -- python PROGRAM.py",
	sites.Objects:   "strandline trace -- python PROGRAM.py",
	sites.Totals:    "memray flamegraph --leaks FILE.bin",
	"prometheus":    "strandline diagnose --prometheus URL --query PROMQL --since 1d   # more of the past",
	profiles.Levels: "nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv -l 5 > memory.csv   # some minutes of it",
}

func profilesBasis(s tables.Series) string {
	text := fmt.Sprintf("%s of %s", count(len(s.Files), "file"), s.Files[0].Format)
	switch n := len(s.Files[0].Columns); {
	case n > 0:
		text = "a table of " + count(n, "level") + " over time"
		if w := s.Files[0].Writer; w != "" {
			text = count(n, "level") + " over time, as " + w + " printed them"
		}
	case s.Files[0].Host != nil && len(s.Files[0].Earlier) > 0:
		text = tables.HostBasis(s)
	}
	if len(s.Files) > 1 {
		text += ", in the order of " + s.By
	}
	return text
}
