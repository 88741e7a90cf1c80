package profiles

import (
	"math"
	"slices"
)

// A Change is a level that two files state, in bytes: the highest and the last one of each.
type Change struct {
	Name                  string
	Process               string // "" where each file has one process or device of that level
	PeakBefore, PeakAfter int64
	EndBefore, EndAfter   int64
}

// Changes pairs the levels of two files by name, and by process where a file has the level
// of several. Levels in percent of an unknown size, and those that may not be memory, have no
// bytes to compare. Then come the names of the levels that only one of the files has.
func Changes(before, after *File) (changes []Change, onlyBefore, onlyAfter []string) {
	was, is := byName(before), byName(after)
	for _, c := range slices.Concat(before.Columns, after.Columns) {
		a, b := was[c.Name], is[c.Name]
		delete(was, c.Name)
		delete(is, c.Name)
		if len(a) == 1 && len(b) == 1 {
			changes = append(changes, change("", a[0], b[0]))
			continue
		}
		pairs := map[string]*Column{}
		for _, x := range a {
			pairs[x.Process] = x
		}
		for _, y := range b {
			if x := pairs[y.Process]; x != nil {
				changes = append(changes, change(x.Process, x, y))
				delete(pairs, y.Process)
			} else {
				onlyAfter = append(onlyAfter, y.of())
			}
		}
		for _, x := range a {
			if pairs[x.Process] == x {
				onlyBefore = append(onlyBefore, x.of())
			}
		}
	}
	return changes, onlyBefore, onlyAfter
}

// byName are the columns of a file that have bytes, by name.
func byName(f *File) map[string][]*Column {
	out := map[string][]*Column{}
	for i := range f.Columns {
		c := &f.Columns[i]
		measured := slices.ContainsFunc(c.Bytes, func(n float64) bool { return !math.IsNaN(n) })
		if measured && !c.Percent && !c.Unstated {
			out[c.Name] = append(out[c.Name], c)
		}
	}
	return out
}

// of is the name of a column, and of its process.
func (c *Column) of() string {
	if c.Process == "" {
		return c.Name
	}
	return c.Name + " of " + c.Process
}

func change(process string, a, b *Column) Change {
	c := Change{Name: a.Name, Process: process}
	c.PeakBefore, c.EndBefore = a.ends()
	c.PeakAfter, c.EndAfter = b.ends()
	return c
}

// ends are the highest and the last level.
func (c *Column) ends() (peak, end int64) {
	levels := slices.DeleteFunc(slices.Clone(c.Bytes), math.IsNaN)
	return int64(slices.Max(levels)), int64(levels[len(levels)-1])
}
