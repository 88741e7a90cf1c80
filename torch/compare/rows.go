package compare

import (
	"fmt"
	"sort"
	"strconv"

	"strandline/stack"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A Place is a site or, where no line of own code is known, why none is.
type Place struct {
	Site    stack.Site
	Missing timeline.Missing
	Host    bool // of pinned host memory
}

// String returns the printed form of a place.
func (p Place) String() string {
	text := SiteName(p.Site)
	if p.Missing != "" {
		text = "(" + string(p.Missing) + ")"
	}
	if p.Host {
		return text + " (pinned host memory)"
	}
	return text
}

// A Row is what one place holds in each file of a process.
type Row struct {
	Place
	Stack        stack.ID // the heaviest in the newest file where it is seen
	Bytes, Count []int64  // one per file
	Survivors    int64    // allocations of the oldest file that live in the newest
}

// growth is the bytes of the newest file less those of the oldest.
func (r *Row) growth() int64 { return r.Bytes[len(r.Bytes)-1] - r.Bytes[0] }

// PerStep is the growth from one file to the next, on average.
func (r *Row) PerStep() int64 {
	if len(r.Bytes) < 2 {
		return 0
	}
	return r.growth() / int64(len(r.Bytes)-1)
}

// Rows are the places of a process, most growth first, of all devices together.
func (p *Process) Rows(b *digest.Book) []Row {
	n := len(p.Files)
	rows := map[Place]*Row{}
	heaviest := map[Place]map[stack.ID]int64{}
	for _, device := range p.DeviceIndices() {
		for _, c := range p.Chains(device) {
			at := Place{b.Stacks.Site(c.Stack), c.Missing, device == snapshot.Host}
			r := rows[at]
			if r == nil {
				r = &Row{Place: at, Bytes: make([]int64, n), Count: make([]int64, n)}
				rows[at] = r
				heaviest[at] = map[stack.ID]int64{}
			}
			for j := c.First; j <= c.Last; j++ {
				r.Bytes[j] += c.Bytes
				r.Count[j]++
			}
			if c.First == 0 && c.Last == n-1 {
				r.Survivors++
			}
			heaviest[at][c.Stack] += c.Bytes
		}
	}
	out := make([]Row, 0, len(rows))
	for at, r := range rows {
		for id, bytes := range heaviest[at] {
			if best := heaviest[at][r.Stack]; bytes > best || bytes == best && (r.Stack == 0 || id < r.Stack) {
				r.Stack = id
			}
		}
		out = append(out, *r)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		if a.growth() != b.growth() {
			return a.growth() > b.growth()
		}
		if x, y := a.Bytes[n-1], b.Bytes[n-1]; x != y {
			return x > y
		}
		return a.String() < b.String()
	})
	return out
}

// SiteName returns the printed form of a site: file:line function.
func SiteName(s stack.Site) string {
	if s == (stack.Site{}) {
		return "(stack unknown)"
	}
	return s.File + ":" + strconv.FormatInt(s.Line, 10) + " " + s.Function
}

// Differs is how one process's row differs from the median of the others in the
// newest files.
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
	bytes := map[Place][]int64{}
	rows := make([]map[Place]Row, len(processes))
	for i, p := range processes {
		rows[i] = map[Place]Row{}
		for _, r := range p.Rows(b) {
			rows[i][r.Place] = r
			if bytes[r.Place] == nil {
				bytes[r.Place] = make([]int64, len(processes))
			}
			bytes[r.Place][i] = r.Bytes[len(r.Bytes)-1]
		}
	}
	for at, held := range bytes {
		for i, n := range held {
			others := append(append([]int64(nil), held[:i]...), held[i+1:]...)
			sort.Slice(others, func(a, b int) bool { return others[a] < others[b] })
			m := others[len(others)/2]
			const minExcess = 64 << 10
			if n > 2*m && n-m >= minExcess {
				out = append(out, Differs{processes[i].Name, rows[i][at], m})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		x, y := a.Row.Bytes[len(a.Row.Bytes)-1]-a.Median, b.Row.Bytes[len(b.Row.Bytes)-1]-b.Median
		if x != y {
			return x > y
		}
		return fmt.Sprint(a.Process, a.Row.Place) < fmt.Sprint(b.Process, b.Row.Place)
	})
	return out
}
