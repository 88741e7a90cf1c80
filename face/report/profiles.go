package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"strandline/finding"
	judgeprofiles "strandline/judge/profiles"
	"strandline/profiles"
	"strandline/profiles/jax"
	"strandline/stack"
	"strandline/units"
)

// Profile is the document of `strandline inspect` of another program's file.
type Profile struct {
	Schema  string         `json:"schema"`
	File    string         `json:"file"`
	Partial bool           `json:"partial"`
	Format  string         `json:"format"`
	Writer  string         `json:"writer,omitempty"`
	Notes   []string       `json:"notes"`
	Devices []ProfileLevel `json:"devices,omitempty"`
	Sites   []ProfilePlace `json:"sites,omitempty"`
	Failed  []ProfileCall  `json:"failed_calls,omitempty"`
	Steps   []string       `json:"steps,omitempty"`
	*ProfileHost
}

// ProfileLevel is memory of one kind on one device; null is what the file does not
// state.
type ProfileLevel struct {
	Device *string `json:"device"`
	Kind   string  `json:"kind"`
	Live   *int64  `json:"live_bytes"`
	Count  *int64  `json:"live_count"`
	Peak   *int64  `json:"peak_bytes"`
}

// ProfilePlace is what one line holds.
type ProfilePlace struct {
	Site
	Device *string `json:"device"`
	Bytes  int64   `json:"bytes"`
	Count  int64   `json:"count"`
	name   string
}

// ProfileCall is a call that failed.
type ProfileCall struct {
	Name   string `json:"name"`
	Status int64  `json:"status"`
	Count  int64  `json:"count"`
}

// ProfileHost is memory on the host.
type ProfileHost struct {
	RSS       *int64 `json:"rss_bytes,omitempty"`
	Peak      *int64 `json:"peak_rss_bytes,omitempty"`
	Anonymous *int64 `json:"anonymous_bytes,omitempty"`
	Heap      *int64 `json:"heap_bytes,omitempty"`
	File      *int64 `json:"file_bytes,omitempty"`
	Shared    *int64 `json:"shared_bytes,omitempty"`
	HugePages *int64 `json:"huge_page_bytes,omitempty"`
	Kernel    *int64 `json:"kernel_bytes,omitempty"`
	Stacks    *int64 `json:"thread_stack_bytes,omitempty"`
	Swap      *int64 `json:"swap_bytes,omitempty"`
	Total     *int64 `json:"total_bytes,omitempty"`
	Available *int64 `json:"available_bytes,omitempty"`
}

// NewProfile makes the document.
func NewProfile(f *profiles.File) *Profile {
	d := &Profile{Schema: "strandline.inspect/1", File: f.Name, Partial: f.Partial != nil, Format: f.Format, Writer: f.Writer, Notes: append([]string{}, f.Notes...)}
	for _, l := range f.Levels {
		d.Devices = append(d.Devices, ProfileLevel{named(l.Device), l.Kind, l.Live, l.Count, l.Peak})
	}
	for _, c := range f.Failed {
		d.Failed = append(d.Failed, ProfileCall{c.Name, c.Status, c.Count})
	}
	for _, m := range f.Marks {
		d.Steps = append(d.Steps, m.Name)
	}
	if h := f.Host; h != nil {
		host := ProfileHost(*h)
		d.ProfileHost = &host
	}
	d.Sites = profilePlaces(f.Uses)
	return d
}

// profilePlaces sums arrays by line and device, the heaviest first.
func profilePlaces(uses []profiles.Use) (out []ProfilePlace) {
	type key struct {
		site   stack.Frame
		device string
	}
	at := map[key]int{}
	for _, u := range uses {
		if u.Kind != jax.Buffer {
			continue
		}
		k := key{jax.Site(u.Stack), u.Device}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, ProfilePlace{Site: siteOf(k.site), Device: named(u.Device), name: siteName(k.site)})
		}
		out[i].Bytes = units.Sum(out[i].Bytes, u.Size*u.Count)
		out[i].Count = units.Sum(out[i].Count, u.Count)
	}
	slices.SortStableFunc(out, func(a, b ProfilePlace) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
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
	d.writeHost(w)
	d.writePlaces(w, s)
	for _, c := range d.Failed {
		fmt.Fprintf(w, "\n%s %s returned %d %s\n", s.red("failed"), Line(c.Name), c.Status, times(c.Count))
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

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return units.Count(n) + " times"
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

func sizeOrUnknown(n *int64) string {
	if n == nil {
		return "?"
	}
	return units.Bytes(*n)
}

func (d *Profile) writePlaces(w io.Writer, s Style) {
	const most = 20
	t := &table{right: map[int]bool{0: true, 1: true}}
	for i, p := range d.Sites {
		if i == most {
			break
		}
		device := ""
		if p.Device != nil {
			device = *p.Device
		}
		t.row(units.Bytes(p.Bytes), units.Count(p.Count), device, p.name)
	}
	if len(t.rows) > 0 {
		fmt.Fprintln(w)
		t.write(w, "  ")
	}
	if n := len(d.Sites) - most; n > 0 {
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
		{"resident", h.RSS}, {"peak resident", h.Peak}, {"private, no file", h.Anonymous}, {"of it malloc's heap", h.Heap}, {"of it huge pages", h.HugePages},
		{"pages of files", h.File}, {"shared memory", h.Shared}, {"kernel", h.Kernel}, {"thread stacks", h.Stacks}, {"swapped out", h.Swap},
		{"in all", h.Total}, {"available", h.Available},
	} {
		if x.n != nil {
			t.row(x.name, units.Bytes(*x.n))
		}
	}
	fmt.Fprintln(w)
	t.write(w, "  ")
}

// NewProfiles makes the document of `strandline diagnose` of other programs' files.
func NewProfiles(a judgeprofiles.Answer, all []judgeprofiles.Series) *Diagnosis {
	d := &Diagnosis{Schema: "strandline.diagnose/1", Verdict: a.Verdict, Findings: a.Findings}
	if d.Findings == nil {
		d.Findings = []finding.Finding{}
	}
	for _, s := range all {
		p := Process{Process: named(s.Process), Basis: []string{profilesBasis(s)}}
		for _, f := range s.Files {
			p.Files = append(p.Files, f.Name)
			p.Texts = append(p.Texts, f.Name)
			if f.Partial != nil {
				p.Partial = append(p.Partial, f.Name)
			}
		}
		d.Processes = append(d.Processes, p)
		d.record = record[s.Files[0].Format]
	}
	d.record = cmp.Or(d.record, "give three files or more of one process, in the order in which they were made")
	return d
}

// record is how three files or more of a kind are made.
var record = map[string]string{
	"jax": `for step in range(4):
    ...                                                          # your step
    jax.profiler.save_device_memory_profile(f"step-{step}.prof")`,
}

func profilesBasis(s judgeprofiles.Series) string {
	text := fmt.Sprintf("%s of %s", count(len(s.Files), "file"), s.Files[0].Format)
	if len(s.Files) > 1 {
		text += ", in the order of " + s.By
	}
	return text
}
