package tables

import (
	"fmt"
	"slices"

	"strandline/finding"
	"strandline/profiles"
	"strandline/units"
)

// A chain is one anonymous mapping over a series of texts, wherever it moves.
type chain struct {
	levels []int64 // resident bytes by text, 0 where it is not among the largest
	starts map[uint64]bool
	last   profiles.Mapping
	seen   int // the last text that has it
}

// grown is by how many bytes it grew from the first text that has it to the last.
func (c *chain) grown() int64 {
	first := slices.IndexFunc(c.levels, func(n int64) bool { return n > 0 })
	return c.levels[c.seen] - c.levels[first]
}

// chainsOf follows anonymous mappings from text to text: by the address where they begin or
// end, or else by size, since mremap and a second mmap move what they make larger.
func chainsOf(texts [][]profiles.Mapping) (out []*chain) {
	for i, mappings := range texts {
		var fresh []profiles.Mapping
		for _, m := range mappings {
			if m.Path != "" {
				continue
			}
			at := slices.IndexFunc(out, func(c *chain) bool { return c.seen < i && (c.last.Start == m.Start || c.last.End == m.End) })
			if at < 0 {
				fresh = append(fresh, m)
				continue
			}
			out[at].add(i, m)
		}
		for _, m := range fresh {
			var best *chain
			for _, c := range out {
				if c.seen == i-1 && m.RSS >= c.last.RSS && m.RSS <= 2*c.last.RSS && (best == nil || c.last.RSS > best.last.RSS) {
					best = c
				}
			}
			if best == nil {
				best = &chain{levels: make([]int64, len(texts)), starts: map[uint64]bool{}}
				out = append(out, best)
			}
			best.add(i, m)
		}
	}
	return out
}

func (c *chain) add(i int, m profiles.Mapping) {
	c.levels[i], c.last, c.seen, c.starts[m.Start] = m.RSS, m, i, true
}

// growing is the class of the mappings that grow, where the files name those of each text; ok is
// false where none grows.
func growing(files []*profiles.File, hosts []*profiles.Host) (out class, ok bool) {
	var texts [][]profiles.Mapping
	for _, f := range files {
		texts = append(texts, f.Mappings...)
	}
	if len(texts) != len(hosts) {
		return out, false
	}
	var list []*chain
	var most int64
	for _, c := range chainsOf(texts) {
		if c.seen == len(hosts)-1 && c.grown() >= minGrowth {
			list, most = append(list, c), max(most, c.grown())
		}
	}
	const minPart = 10
	list = slices.DeleteFunc(list, func(c *chain) bool { return minPart*c.grown() < most })
	if len(list) == 0 {
		return out, false
	}
	levels := map[*profiles.Host]int64{}
	moves := 0
	for _, c := range list {
		for i, h := range hosts {
			levels[h] += c.levels[i]
		}
		moves = max(moves, len(c.starts)-1)
	}
	out = class{finding.MmapLeak, "one anonymous mapping", func(h *profiles.Host) *int64 { n := levels[h]; return &n }, finding.Problem, trace}
	if len(list) > 1 {
		out.what = units.Plural(int64(len(list)), "anonymous mapping")
	}
	if moves > 0 {
		out.what += fmt.Sprintf(", moved %s (mremap, or mapped anew),", units.Times(int64(moves)))
	} else {
		out.what += fmt.Sprintf(" at %x", list[0].last.Start)
	}
	return out, true
}
