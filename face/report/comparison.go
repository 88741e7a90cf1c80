package report

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/purpose"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

// Comparison is the document of `strandline compare`.
type Comparison struct {
	api.Comparison
}

// NewComparison makes the document of files compared over time.
func NewComparison(b *digest.Book, processes []*compare.Process) *Comparison {
	c := &Comparison{Comparison: api.Comparison{Schema: api.CompareSchema, Groups: []api.Group{}}}
	for _, p := range processes {
		g := api.Group{Process: named(p.Name), Sites: []api.GroupSite{}}
		for _, f := range p.Files {
			g.Files = append(g.Files, f.Name)
			c.Notes = union(c.Notes, f.Unknown)
			var requested, reserved, highest int64
			var peak *int64
			for i := range f.Devices {
				if f.Devices[i].Index == snapshot.Host {
					continue
				}
				requested += f.Devices[i].Requested
				reserved += f.Devices[i].Reserved
				if highest += f.Devices[i].PeakRequested; f.Devices[i].Events > 0 {
					peak = &highest
				}
			}
			g.Requested, g.Reserved, g.Peak = append(g.Requested, requested), append(g.Reserved, reserved), append(g.Peak, peak)
		}
		if slices.Contains(p.DeviceIndices(), snapshot.Host) {
			for _, f := range p.Files {
				g.Host = append(g.Host, f.Device(snapshot.Host).Requested)
			}
		}
		g.Runs = runsOf(p)
		for _, r := range p.Rows(b) {
			g.Sites = append(g.Sites, api.GroupSite{Site: siteOf(r.Site), Missing: r.Missing, Kind: kindOf(r.Place), Bytes: r.Bytes, Count: r.Count, Survivors: r.Survivors, PerStep: r.PerStep()})
		}
		c.Groups = append(c.Groups, g)
	}
	for _, o := range compare.Outliers(b, processes) {
		c.Outliers = append(c.Outliers, api.Outlier{Site: siteOf(o.Row.Site), Missing: o.Row.Missing, Kind: kindOf(o.Row.Place), Process: o.Process, Bytes: o.Row.Bytes[len(o.Row.Bytes)-1], Median: o.Median})
	}
	return c
}

// runsOf returns the names of a process's files by run, nil where all are of one.
func runsOf(p *compare.Process) (out [][]string) {
	runs := p.Split()
	if len(runs) == 1 {
		return nil
	}
	for _, r := range runs {
		var names []string
		for _, f := range r.Files {
			names = append(names, f.Name)
		}
		out = append(out, names)
	}
	return out
}

// NewRuns makes the document of two runs.
func NewRuns(before, after *compare.Run) *Comparison {
	of := func(r *compare.Run, peak int64) *int64 {
		if r.NoHistory {
			return nil
		}
		return &peak
	}
	r := &api.Runs{Before: before.Name, After: after.Name, PeakBefore: of(before, before.Peak), PeakAfter: of(after, after.Peak),
		EndBefore: before.End, EndAfter: after.End, Purposes: []api.RunSums{}, Sites: []api.RunChange{},
		Reserved: api.RunSums{
			PeakBefore: of(before, before.PeakReserved), PeakAfter: of(after, after.PeakReserved),
			EndBefore: before.EndReserved, EndAfter: after.EndReserved,
		}}
	if before.Host != nil || after.Host != nil {
		a, b := cmp.Or(before.Host, &compare.Pinned{}), cmp.Or(after.Host, &compare.Pinned{})
		r.Host = &api.RunSums{PeakBefore: of(before, a.Peak), PeakAfter: of(after, b.Peak), EndBefore: a.End, EndAfter: b.End}
	}
	all := before.PeakFor
	for _, sums := range []*purpose.Sums{&after.PeakFor, &before.EndFor, &after.EndFor} {
		all.Add(sums)
	}
	for _, p := range all.Sorted() {
		r.Purposes = append(r.Purposes, api.RunSums{
			Purpose: p.String(), PeakBefore: of(before, before.PeakFor[p]), PeakAfter: of(after, after.PeakFor[p]), EndBefore: before.EndFor[p], EndAfter: after.EndFor[p], Words: p.Words(),
		})
	}
	for _, c := range compare.Runs(before, after) {
		r.Sites = append(r.Sites, api.RunChange{Site: siteOf(c.Site), Missing: c.Missing, Kind: kindOf(c.Place), PeakBefore: of(before, c.PeakBefore), PeakAfter: of(after, c.PeakAfter), EndBefore: c.EndBefore, EndAfter: c.EndAfter})
	}
	return &Comparison{Comparison: api.Comparison{Schema: api.CompareSchema, Groups: []api.Group{}, Runs: r, Notes: union(before.Unknown, after.Unknown)}}
}

// kindOf is the kind of memory at a place: "host", or "" for a device's.
func kindOf(p compare.Place) string {
	if p.Host {
		return "host"
	}
	return ""
}

// kindName is what follows the name of a place of a kind of memory.
func kindName(kind string) string {
	if kind == "host" {
		return " (" + snapshot.DeviceName(snapshot.Host) + ")"
	}
	return ""
}

// kindedName returns the printed form of a place of a kind of memory.
func kindedName(s api.Site, missing timeline.Missing, kind string) string {
	return placeName(s, missing) + kindName(kind)
}

// What the text shows at most; JSON has all.
const (
	maxSites  = 15 // places of a table
	maxFiles  = 6  // columns of files
	maxCurve  = 24 // values of a curve in a row
	maxGroups = 4  // processes with a table each; of more, one line each
)

// Text prints the tables.
func (c *Comparison) Text(w io.Writer, s Style) {
	if !s.Verbose || c.Levels != nil {
		c.brief(w, s)
		return
	}
	for _, n := range c.Notes {
		printWrapped(w, s, "", "note: "+Line(n))
	}
	if len(c.Groups) > 1 {
		c.overview(w, s)
	}
	if len(c.Groups) <= maxGroups {
		for i := range c.Groups {
			if i > 0 || len(c.Groups) > 1 {
				fmt.Fprintln(w)
			}
			writeGroup(w, s, &c.Groups[i])
		}
	}
	if len(c.Outliers) > 0 {
		fmt.Fprintf(w, "\n%s\n", s.bold("call sites that differ between processes, newest files"))
		t := table{right: map[int]bool{1: true, 2: true}}
		t.row("process", "holds", "others", "allocated at")
		for i, o := range c.Outliers {
			if i == maxSites {
				t.row("", "", "", moreRows(len(c.Outliers)))
				break
			}
			t.row(o.Process, units.Bytes(o.Bytes), units.Bytes(o.Median), kindedName(o.Site, o.Missing, o.Kind))
		}
		t.write(w, "  ")
	} else if len(c.Groups) > 1 {
		fmt.Fprintln(w, "\nno process holds clearly more than the others at any place")
	}
	if c.Runs != nil {
		writeRuns(w, s, c.Runs)
	}
	if g := c.Gate; g != nil {
		fmt.Fprintln(w)
		for _, u := range g.Unjudged {
			fmt.Fprintln(w, s.yellow("not judged")+": "+Line(u))
		}
		if g.Passed {
			fmt.Fprintln(w, s.green("passed")+": nothing grew by more than "+g.Limit)
		}
		for _, o := range g.Over {
			fmt.Fprintln(w, s.red("failed")+": "+Line(o))
		}
	}
}

// overview prints one line per process.
func (c *Comparison) overview(w io.Writer, s Style) {
	fmt.Fprintln(w, s.bold(count(len(c.Groups), "process")))
	t := table{right: map[int]bool{1: true, 2: true, 3: true, 5: true, 6: true}}
	t.row("process", "files", "requested: oldest", "newest", "", "per file", "reserved: newest")
	for _, g := range c.Groups {
		last := len(g.Files) - 1
		name := ""
		if g.Process != nil {
			name = *g.Process
		}
		t.row(name, units.Count(int64(len(g.Files))), units.Bytes(g.Requested[0]), units.Bytes(g.Requested[last]),
			sparkline(thinned(g.Requested, maxCurve)), perFile(g.Requested), units.Bytes(g.Reserved[last]))
	}
	t.write(w, "  ")
	if len(c.Groups) > maxGroups {
		fmt.Fprintln(w, s.dim("  the places of one process: strandline compare its files, or --json"))
	}
}

func writeGroup(w io.Writer, s Style, g *api.Group) {
	columns := some(len(g.Files))
	title := count(len(g.Files), "file")
	if g.Process != nil {
		title = Line(*g.Process) + ": " + title
	}
	if len(columns) < len(g.Files) {
		title += fmt.Sprintf(", %s of them shown (--json has all)", units.Count(int64(len(columns))))
	}
	fmt.Fprintln(w, s.bold(title))
	if len(g.Runs) > 0 {
		printWrapped(w, s, "", fmt.Sprintf("The files are of %s: a difference between two of them is not growth. Compare each run's files by themselves, or two runs with --runs.", count(len(g.Runs), "run")))
	}
	n := len(columns)
	t := table{right: map[int]bool{n + 1: true}}
	names := labels(g.Files)
	var head []string
	for i, j := range columns {
		t.right[i] = true
		head = append(head, names[j])
	}
	growth := "per file"
	if len(g.Files) < 2 {
		growth = ""
	}
	t.row(append(head, "", growth)...)
	total := func(label string, v []int64) {
		var row []string
		for _, j := range columns {
			row = append(row, units.Bytes(v[j]))
		}
		t.row(append(row, sparkline(thinned(v, maxCurve)), perFile(v), label)...)
	}
	total("requested, total", g.Requested)
	total("reserved, total", g.Reserved)
	if g.Host != nil {
		total("pinned host memory", g.Host)
	}
	t.row("")
	for i, r := range g.Sites {
		if i == maxSites {
			t.row(append(make([]string, n+2), moreRows(len(g.Sites)))...)
			break
		}
		var row []string
		for _, j := range columns {
			row = append(row, fmt.Sprintf("%s ×%s", units.Bytes(r.Bytes[j]), units.Count(r.Count[j])))
		}
		t.row(append(row, sparkline(thinned(r.Bytes, maxCurve)), perFile(r.Bytes), kindedName(r.Site, r.Missing, r.Kind))...)
	}
	t.write(w, "  ")
}

// moreRows states that a list of places is cut off.
func moreRows(n int) string {
	return fmt.Sprintf("… and %s (--json lists all)", count(n-maxSites, "more place"))
}

// some returns the files that have a column: all, or the first, the last and some
// between them.
func some(n int) []int {
	out := make([]int, min(n, maxFiles))
	for i := range out {
		out[i] = i
		if n > maxFiles {
			out[i] = i * (n - 1) / (maxFiles - 1)
		}
	}
	return out
}

// labels returns the names of files as short as they can be and still differ: what all
// have in common up to a folder or a dot, at the front and at the end, is left out.
func labels(paths []string) []string {
	out := make([]string, len(paths))
	if len(paths) < 2 {
		for i, p := range paths {
			out[i] = filepath.Base(inputName(p))
		}
		return out
	}
	front, suffix := len(paths[0]), len(paths[0])
	for _, p := range paths[1:] {
		i := 0
		for i < min(front, len(p)) && p[i] == paths[0][i] {
			i++
		}
		front = i
		i = 0
		for i < min(suffix, len(p)) && p[len(p)-1-i] == paths[0][len(paths[0])-1-i] {
			i++
		}
		suffix = i
	}
	front = strings.LastIndexAny(paths[0][:front], `./\`) + 1
	ending := paths[0][len(paths[0])-suffix:]
	if i := strings.IndexAny(ending, `./\`); i >= 0 {
		ending = ending[i:]
	} else {
		ending = ""
	}
	for i, p := range paths {
		if p = p[front:]; len(p) > len(ending) {
			p = strings.TrimSuffix(p, ending)
		}
		out[i] = inputName(p)
	}
	return out
}

func perFile(v []int64) string {
	if len(v) < 2 {
		return ""
	}
	return units.SignedBytes((v[len(v)-1] - v[0]) / int64(len(v)-1))
}

func writeRuns(w io.Writer, s Style, r *api.Runs) {
	fmt.Fprintf(w, "%s → %s\n", s.bold(inputName(r.Before)), s.bold(inputName(r.After)))
	t := table{right: map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true}}
	t.row("peak before", "after", "change", "end before", "after", "change")
	peak := func(n *int64) string {
		if n == nil {
			return "unknown"
		}
		return units.Bytes(*n)
	}
	row := func(name string, a, b *int64, c, d int64) {
		change := ""
		if a != nil && b != nil {
			change = units.SignedBytes(*b - *a)
		}
		t.row(peak(a), peak(b), change, units.Bytes(c), units.Bytes(d), units.SignedBytes(d-c), name)
	}
	row("requested, total", r.PeakBefore, r.PeakAfter, r.EndBefore, r.EndAfter)
	row("reserved, total", r.Reserved.PeakBefore, r.Reserved.PeakAfter, r.Reserved.EndBefore, r.Reserved.EndAfter)
	if h := r.Host; h != nil {
		row("pinned host memory", h.PeakBefore, h.PeakAfter, h.EndBefore, h.EndAfter)
	}
	t.row("")
	for _, p := range r.Purposes {
		row(p.Words, p.PeakBefore, p.PeakAfter, p.EndBefore, p.EndAfter)
	}
	t.row("")
	for i, c := range r.Sites {
		if i == maxSites {
			t.row("", "", "", "", "", "", moreRows(len(r.Sites)))
			break
		}
		row(kindedName(c.Site, c.Missing, c.Kind), c.PeakBefore, c.PeakAfter, c.EndBefore, c.EndAfter)
	}
	t.write(w, "  ")
}
