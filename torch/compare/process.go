// Package compare relates snapshots to each other: those of one process over time,
// of many processes, or of two runs of different code.
//
// It compares digests, of package digest, rather than the files. An allocation is
// the same in two files if it stands at the same address with the same size and was
// made at the same moment, or, where that moment was not recorded, if nothing
// contradicts it: an address alone is no identity.
package compare

import (
	"fmt"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"strandline/judge/trend"
	"strandline/stack"
	"strandline/torch/digest"
)

// A Process is the files of one process, oldest first.
type Process struct {
	Name  string // "" if there is one process only
	Files []*digest.File
}

var (
	rankInName = regexp.MustCompile(`(?i)(?:^|[^a-z])(rank)[-_ =]?(\d+)`)
	pidInName  = regexp.MustCompile(`(?i)(?:^|[^a-z])(pid)[-_ =]?(\d+)`)
)

// ProcessOf is the name of the process that a file is of: rank<N> and pid<N> of
// its name, both where both stand, else its folder. With group, it is what the
// expression matches (its first parenthesis, if it has one).
func ProcessOf(path string, group *regexp.Regexp) string {
	if group != nil {
		m := group.FindStringSubmatch(path)
		if m == nil {
			return ""
		}
		return m[min(1, len(m)-1)]
	}
	var parts []string
	base := filepath.Base(path)
	for _, re := range []*regexp.Regexp{rankInName, pidInName} {
		if m := re.FindStringSubmatch(base); m != nil {
			parts = append(parts, strings.ToLower(m[1])+m[2])
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, " ")
	}
	return filepath.Dir(path)
}

// Group sorts paths by process. Where all are of one, its name is "".
func Group(paths []string, group *regexp.Regexp) (names []string, files map[string][]string) {
	files = map[string][]string{}
	for _, p := range paths {
		name := ProcessOf(p, group)
		if files[name] == nil {
			names = append(names, name)
		}
		files[name] = append(files[name], p)
	}
	sort.Slice(names, func(i, j int) bool { return natural(names[i], names[j]) })
	if len(names) == 1 {
		files = map[string][]string{"": files[names[0]]}
		names = []string{""}
	}
	return names, files
}

// natural compares text with its numbers as numbers: step2 is before step10.
func natural(a, b string) bool {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			na, nb := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if len(na) != len(nb) {
				return len(na) < len(nb)
			}
			if na != nb {
				return na < nb
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) < len(b)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// NewProcess puts the digests in order: by the ends of their histories, else by
// the numbers in their names.
func NewProcess(name string, files []*digest.File) *Process {
	p := &Process{Name: name, Files: append([]*digest.File(nil), files...)}
	sort.SliceStable(p.Files, func(i, j int) bool { return natural(p.Files[i].Name, p.Files[j].Name) })
	// Those with a history take the places that they have, in its order.
	var places []int
	for i, f := range p.Files {
		if f.End() > 0 && f.Partial == nil { // a history that was cut ends too early
			places = append(places, i)
		}
	}
	timed := make([]*digest.File, len(places))
	for k, i := range places {
		timed[k] = p.Files[i]
	}
	sort.SliceStable(timed, func(i, j int) bool {
		if a, b := timed[i].End(), timed[j].End(); a != b {
			return a < b
		}
		return timed[i].Events() < timed[j].Events()
	})
	for k, i := range places {
		p.Files[i] = timed[k]
	}
	if len(places) == 0 { // no times (PyTorch 2.0, 2.1): a history only grows
		sort.SliceStable(p.Files, func(i, j int) bool { return p.Files[i].Events() < p.Files[j].Events() })
	}
	return p
}

// Newest is the last file.
func (p *Process) Newest() *digest.File { return p.Files[len(p.Files)-1] }

// Whole is the process without the files that were read in part: what is
// missing in them would look freed. It is the process itself if no file is whole.
func (p *Process) Whole() *Process {
	out := &Process{Name: p.Name}
	for _, f := range p.Files {
		if f.Partial == nil {
			out.Files = append(out.Files, f)
		}
	}
	if len(out.Files) == 0 {
		return p
	}
	return out
}

// DeviceIndices are the devices of all files.
func (p *Process) DeviceIndices() (out []int) {
	seen := map[int]bool{}
	for _, f := range p.Files {
		for i := range f.Devices {
			if k := f.Devices[i].Index; !seen[k] {
				seen[k] = true
				out = append(out, k)
			}
		}
	}
	sort.Ints(out)
	return out
}

// A Chain is one allocation followed through the files of a process.
type Chain struct {
	Stack stack.ID
	trend.Span
	// Sure is false where no history says that the allocation of the later files
	// is the same.
	Sure bool
}

// Chains follows the allocations of a device through the files.
func (p *Process) Chains(device int) []Chain {
	var out []Chain
	var at []int // of the previous file's live allocations: index into out
	var prev *digest.Device
	for j, f := range p.Files {
		d := f.Device(device)
		here := make([]int, len(d.Live))
		k := 0
		for i, l := range d.Live {
			here[i] = -1
			if prev != nil { // both are sorted by address
				for k < len(prev.Live) && prev.Live[k].Addr < l.Addr {
					k++
				}
				if k < len(prev.Live) && prev.Live[k].Addr == l.Addr {
					if same, sure := sameAlloc(prev, d, prev.Live[k], l); same {
						here[i] = at[k]
						c := &out[at[k]]
						c.Last, c.Sure = j, c.Sure && sure
						if c.Stack <= stack.Empty {
							c.Stack = l.Stack
						}
					}
				}
			}
			if here[i] < 0 {
				here[i] = len(out)
				out = append(out, Chain{l.Stack, trend.Span{First: j, Last: j, Bytes: l.Bytes}, true})
			}
		}
		prev, at = d, here
	}
	return out
}

// Survivors are, of what lived on a device in each file, the bytes that still
// live in a later one: by file, then by later file.
func (p *Process) Survivors(device int) [][]int64 {
	out := make([][]int64, len(p.Files))
	for i := range out {
		out[i] = make([]int64, len(p.Files))
	}
	for _, c := range p.Chains(device) {
		for i := c.First; i <= c.Last; i++ {
			for j := i; j <= c.Last; j++ {
				out[i][j] += c.Bytes
			}
		}
	}
	return out
}

// sameAlloc reports whether two allocations at one address, of consecutive files,
// are one; sure is false where no history covers the time between.
func sameAlloc(old, cur *digest.Device, a, b digest.Live) (same, sure bool) {
	if a.Bytes != b.Bytes || a.Stack > stack.Empty && b.Stack > stack.Empty && a.Stack != b.Stack {
		return false, true
	}
	timed := old.HasTime && cur.HasTime
	switch {
	case a.Born >= 0 && b.Born >= 0 && timed:
		return a.Born == b.Born, true
	case b.Born >= 0 && timed && old.End > 0:
		return b.Born <= old.End, true
	case b.Born < 0 && timed && cur.Events > 0 && old.Events > 0:
		if cur.Start <= old.End { // the history reaches back to the older file
			return true, true
		}
		// A recording that begins with an empty device is of another process.
		return !cur.Complete, false
	case a.Born >= 0 && b.Born >= 0:
		return a.Born == b.Born, false // counted events of one growing history
	}
	return true, false
}

// A Row is what one place holds in each file of a process.
type Row struct {
	Site         stack.Site // zero if no stack is known
	Stack        stack.ID   // the heaviest in the newest file where it is seen
	Bytes, Count []int64    // one a file
	Survivors    int64      // allocations of the oldest file that live in the newest
}

// Growth is the bytes of the newest file less those of the oldest.
func (r *Row) Growth() int64 { return r.Bytes[len(r.Bytes)-1] - r.Bytes[0] }

// PerStep is the growth from one file to the next, on average.
func (r *Row) PerStep() int64 {
	if len(r.Bytes) < 2 {
		return 0
	}
	return r.Growth() / int64(len(r.Bytes)-1)
}

// Rows are the places of a process, most growth first, of all devices together.
func (p *Process) Rows(b *digest.Book) []Row {
	n := len(p.Files)
	rows := map[stack.Site]*Row{}
	heaviest := map[stack.Site]map[stack.ID]int64{}
	for _, device := range p.DeviceIndices() {
		for _, c := range p.Chains(device) {
			site := b.Stacks.Site(c.Stack)
			r := rows[site]
			if r == nil {
				r = &Row{Site: site, Bytes: make([]int64, n), Count: make([]int64, n)}
				rows[site] = r
				heaviest[site] = map[stack.ID]int64{}
			}
			for j := c.First; j <= c.Last; j++ {
				r.Bytes[j] += c.Bytes
				r.Count[j]++
			}
			if c.First == 0 && c.Last == n-1 {
				r.Survivors++
			}
			heaviest[site][c.Stack] += c.Bytes
		}
	}
	out := make([]Row, 0, len(rows))
	for site, r := range rows {
		for id, bytes := range heaviest[site] {
			if best := heaviest[site][r.Stack]; bytes > best || bytes == best && (r.Stack == 0 || id < r.Stack) {
				r.Stack = id
			}
		}
		out = append(out, *r)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		if a.Growth() != b.Growth() {
			return a.Growth() > b.Growth()
		}
		if x, y := a.Bytes[n-1], b.Bytes[n-1]; x != y {
			return x > y
		}
		return SiteName(a.Site) < SiteName(b.Site)
	})
	return out
}

// SiteName is a site as people write it: file:line function.
func SiteName(s stack.Site) string {
	if s == (stack.Site{}) {
		return "(stack unknown)"
	}
	return s.File + ":" + strconv.FormatInt(s.Line, 10) + " " + s.Function
}

// Differs tells, of several processes, how one process's row differs from the
// others' median in the newest files.
type Differs struct {
	Process string
	Row     Row
	Median  int64 // bytes at the same place in the others
}

// Outliers are the places at which one process holds clearly more than the
// median of the others: more than twice as much, and 64 KiB more.
func Outliers(b *digest.Book, processes []*Process) (out []Differs) {
	if len(processes) < 2 {
		return nil
	}
	bytes := map[stack.Site][]int64{}
	rows := make([]map[stack.Site]Row, len(processes))
	for i, p := range processes {
		rows[i] = map[stack.Site]Row{}
		for _, r := range p.Rows(b) {
			rows[i][r.Site] = r
			if bytes[r.Site] == nil {
				bytes[r.Site] = make([]int64, len(processes))
			}
			bytes[r.Site][i] = r.Bytes[len(r.Bytes)-1]
		}
	}
	for site, held := range bytes {
		for i, n := range held {
			others := append(append([]int64(nil), held[:i]...), held[i+1:]...)
			sort.Slice(others, func(a, b int) bool { return others[a] < others[b] })
			m := others[len(others)/2]
			const enough = 64 << 10
			if n > 2*m && n-m >= enough {
				out = append(out, Differs{processes[i].Name, rows[i][site], m})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		x, y := a.Row.Bytes[len(a.Row.Bytes)-1]-a.Median, b.Row.Bytes[len(b.Row.Bytes)-1]-b.Median
		if x != y {
			return x > y
		}
		return fmt.Sprint(a.Process, SiteName(a.Row.Site)) < fmt.Sprint(b.Process, SiteName(b.Row.Site))
	})
	return out
}

// Gaps are the events between each file and the one before, on a device; -1
// where the histories do not tell, as for the first.
func (p *Process) Gaps(device int) []int {
	out := make([]int, len(p.Files))
	out[0] = -1
	for j := 1; j < len(p.Files); j++ {
		old, cur := p.Files[j-1].Device(device), p.Files[j].Device(device)
		out[j] = cur.Events
		if cur.Start <= old.Start { // one history that grows
			out[j] -= old.Events
		}
		if cur.Events == 0 || out[j] < 0 || cur.RingFull {
			out[j] = -1
		}
	}
	return out
}

// Marks are the files at which growth can be judged: those between which the
// program worked. A file is left out if hardly anything happened from it to the
// next.
func (p *Process) Marks(device int) (out []int) {
	gaps := p.Gaps(device)
	typical := p.Interval(device)
	for j := range p.Files {
		if j+1 < len(gaps) && gaps[j+1] >= 0 && 10*gaps[j+1] < typical {
			continue
		}
		out = append(out, j)
	}
	return out
}

// StepsSeen is how many steps of the program end in the files' histories on a
// device, one more where the first file has none of them, as it was taken between
// steps; known is false where no history shows steps by annotations, updates or
// backward passes.
func (p *Process) StepsSeen(device int) (steps int, known bool) {
	covered := int64(-1) // from this time on the histories counted so far tell
	for j := len(p.Files) - 1; j >= 0; j-- {
		d := p.Files[j].Device(device)
		if d.Events == 0 || covered >= 0 && d.End > covered {
			continue
		}
		covered = d.Start
		if n := len(d.Steps.Ends); n > 0 && d.Steps.Known() {
			steps, known = steps+n, true
		}
	}
	if p.Files[0].Device(device).Events == 0 {
		steps++
	}
	return steps, known
}

// Interval is how many events lie between two files on a device, typically; 0
// where the histories do not tell.
func (p *Process) Interval(device int) int {
	var gaps []int
	for _, gap := range p.Gaps(device) {
		if gap >= 0 {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	sort.Ints(gaps)
	return gaps[len(gaps)/2]
}

// Deaths are the lifetimes of what was freed inside the histories, by stack.
// Where the histories overlap, the longest is taken.
func (p *Process) Deaths(device int) map[stack.ID]*digest.Lifetimes {
	out := map[stack.ID]*digest.Lifetimes{}
	covered := int64(-1) // from this time on the histories taken so far tell
	for j := len(p.Files) - 1; j >= 0; j-- {
		d := p.Files[j].Device(device)
		if d.Events == 0 || covered >= 0 && d.End > covered {
			continue
		}
		covered = d.Start
		for id, l := range d.Deaths {
			if out[id] == nil {
				out[id] = new(digest.Lifetimes)
			}
			for i, n := range l {
				out[id][i] += n
			}
		}
	}
	return out
}

// LastOOM is the newest failure that any file of a process records on a
// device, from the file that was dumped closest to it, and that file's part.
func (p *Process) LastOOM(device int) (*digest.OOM, *digest.File) {
	var last *digest.OOM
	var in *digest.File
	for j := len(p.Files) - 1; j >= 0; j-- {
		o := p.Files[j].Device(device).LastOOM
		switch {
		case o == nil:
		case last == nil || o.Exact && !last.Exact && o.Time != 0 && o.Time == last.Time:
			after := 0
			if last != nil {
				after = last.After
			}
			known := *o
			known.After = max(after, o.After)
			last, in = &known, p.Files[j]
		}
	}
	return last, in
}
