package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/profiles"
)

// NewLevels makes the document of two logs or tables.
func NewLevels(before, after *profiles.File) *Comparison {
	changes, onlyBefore, onlyAfter := profiles.Changes(before, after)
	levels := &api.Levels{Before: before.Name, After: after.Name, Changes: []api.LevelChange{}}
	for _, x := range changes {
		levels.Changes = append(levels.Changes, api.LevelChange(x))
	}
	slices.SortStableFunc(levels.Changes, func(x, y api.LevelChange) int {
		return cmp.Compare(abs(y.PeakAfter-y.PeakBefore), abs(x.PeakAfter-x.PeakBefore))
	})
	c := &Comparison{Comparison: api.Comparison{Schema: api.CompareSchema, Groups: []api.Group{}, Levels: levels}}
	c.noteOnly(levels.Before, onlyBefore)
	c.noteOnly(levels.After, onlyAfter)
	return c
}

// noteOnly notes the levels that only one file has.
func (c *Comparison) noteOnly(file string, levels []string) {
	const maxNamed = 3
	if n := len(levels); n > maxNamed {
		levels = append(slices.Clip(levels[:maxNamed]), fmt.Sprintf("%d more", n-maxNamed))
	}
	if len(levels) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("only %s has %s", file, strings.Join(levels, ", ")))
	}
}

// levelsBrief prints the levels of two files, those that changed most first.
func (c *Comparison) levelsBrief(b *brief) {
	words := func(x *api.LevelChange) string {
		return fmt.Sprintf("%s: peak %s; end %s", Line(x.Level()), step(x.PeakBefore, x.PeakAfter), step(x.EndBefore, x.EndAfter))
	}
	all := c.Levels.Changes
	if len(all) == 0 {
		b.verdict("UNKNOWN", "no level of memory is in both files")
		return
	}
	first := &all[0]
	c.headline(b, cmp.Or(changed(first.PeakBefore, first.PeakAfter), changed(first.EndBefore, first.EndAfter), "SAME"), words(first))
	for i := range all[1:] {
		if x := &all[1+i]; b.s.Verbose || i < maxPlaces {
			b.line("", words(x))
		} else {
			b.left++
		}
	}
	b.moreLine("")
}
