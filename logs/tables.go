package logs

import (
	"cmp"
	"slices"
	"time"

	"strandline/internal/sorts"
	"strandline/logs/table"
)

// A File is a text that was read, and its origin.
type File struct {
	*Text
	Name    string
	Partial bool // it was read in part
}

// A Process is the texts of one process, oldest first.
type Process struct {
	Name  string // "" if there is one process only
	Files []*File
}

// Tables are the tables of memory_summary() of one device that the texts of a
// process hold, oldest first.
type Tables struct {
	Tag    string // by which the text identifies the process, "" if it does not
	Device *int   // nil if the tables do not state it
	// Count is how many there are, Earlier how many of a process before it; Kept
	// are those that were kept, the first and the last among them.
	Count, Earlier int
	Kept           []Table
}

// A Table is a table and the file in which it is.
type Table struct {
	File string
	*table.Summary
}

// Tables are those of all devices. Files follow each other where what PyTorch
// counts since the process began only rises; otherwise each is judged separately.
func (p *Process) Tables() (out []Tables) {
	type key struct {
		tag    string
		device int
	}
	parts := map[key][]Tables{}
	var order []key
	for _, f := range p.Files {
		for _, s := range f.Series {
			t := Tables{Tag: s.Process, Device: s.Device, Count: s.Count, Earlier: s.Earlier}
			for _, m := range s.Tables {
				t.Kept = append(t.Kept, Table{f.Name, m})
			}
			k := key{s.Process, -1}
			if s.Device != nil {
				k.device = *s.Device
			}
			if parts[k] == nil {
				order = append(order, k)
			}
			parts[k] = append(parts[k], t)
		}
	}
	for _, k := range order {
		out = append(out, joined(parts[k])...)
	}
	return out
}

// joined sorts parts and merges them, if they can be of one process.
func joined(parts []Tables) []Tables {
	sorts.StableBy(parts, func(a, b Tables) int { return cmp.Compare(a.gained(), b.gained()) })
	all := parts[0]
	for _, t := range parts[1:] {
		if !all.Last().Before(t.First().Summary) {
			return parts
		}
		all.Count += t.Count
		all.Earlier += t.Earlier
		all.Kept = append(slices.Clip(all.Kept), t.Kept...)
	}
	return []Tables{all}
}

// gained returns what was allocated since the process began, at the first table; 0 if
// that is unknown.
func (t *Tables) gained() int64 {
	if n := t.First().Allocated.Gained; n != nil {
		return *n
	}
	return 0
}

// First is the oldest table.
func (t *Tables) First() Table { return t.Kept[0] }

// Last is the newest table.
func (t *Tables) Last() Table { return t.Kept[len(t.Kept)-1] }

// Span returns the time from the first table to the last, as far as the text shows.
func (t *Tables) Span() (whole time.Duration, known bool) {
	for j := 1; j < len(t.Kept); j++ {
		d, ok := t.Kept[j-1].Stamp.To(t.Kept[j].Stamp)
		if !ok {
			return 0, false
		}
		whole += d
	}
	return whole, whole > 0
}
