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
	number int
	levels []holding // of the texts that have it among the largest
	starts map[uint64]bool
	last   profiles.Mapping
	seen   int // the last text that has it
}

// A holding is the resident bytes of a mapping in a text.
type holding struct {
	text  int
	bytes int64
}

// grown is by how many bytes it grew from the first text in which it holds any to the last.
func (c *chain) grown() int64 {
	first := slices.IndexFunc(c.levels, func(h holding) bool { return h.bytes > 0 })
	if first < 0 {
		return 0
	}
	return c.last.RSS - c.levels[first].bytes
}

func (c *chain) add(i int, m profiles.Mapping) {
	c.levels = append(c.levels, holding{i, m.RSS})
	c.last, c.seen, c.starts[m.Start] = m, i, true
}

// An edge is where a mapping begins or ends.
type edge struct {
	at  uint64
	end bool
}

func edges(m *profiles.Mapping) [2]edge { return [2]edge{{m.Start, false}, {m.End, true}} }

// chains are those of a series of texts, by their edges.
type chains struct {
	all    []*chain
	byEdge map[edge][]*chain
	before []*chain // that the text before has
}

// at is the first chain that has an edge of a mapping and is not in text i yet, nil if there is none.
func (cs *chains) at(m *profiles.Mapping, i int) (found *chain) {
	for _, e := range edges(m) {
		list := slices.DeleteFunc(cs.byEdge[e], func(c *chain) bool { return !c.has(e) })
		cs.byEdge[e] = list
		for _, c := range list {
			if c.seen < i && (found == nil || c.number < found.number) {
				found = c
			}
		}
	}
	return found
}

func (c *chain) has(e edge) bool { return edges(&c.last)[0] == e || edges(&c.last)[1] == e }

func (cs *chains) add(c *chain, i int, m profiles.Mapping) {
	c.add(i, m)
	for _, e := range edges(&m) {
		if !slices.Contains(cs.byEdge[e], c) {
			cs.byEdge[e] = append(cs.byEdge[e], c)
		}
	}
}

// chainsOf follows anonymous mappings from text to text: by the address where they begin or
// end, or else by size, since mremap and a second mmap move what they make larger.
func chainsOf(texts [][]profiles.Mapping) []*chain {
	cs := chains{byEdge: map[edge][]*chain{}}
	for i, mappings := range texts {
		var fresh []profiles.Mapping
		var now []*chain
		for _, m := range mappings {
			if m.Path != "" {
				continue
			}
			c := cs.at(&m, i)
			if c == nil {
				fresh = append(fresh, m)
				continue
			}
			cs.add(c, i, m)
			now = append(now, c)
		}
		for _, m := range fresh {
			var best *chain
			for _, c := range cs.before {
				if c.seen == i-1 && m.RSS >= c.last.RSS && m.RSS <= 2*c.last.RSS && (best == nil || c.last.RSS > best.last.RSS || c.last.RSS == best.last.RSS && c.number < best.number) {
					best = c
				}
			}
			if best == nil {
				best = &chain{number: len(cs.all), starts: map[uint64]bool{}}
				cs.all = append(cs.all, best)
			}
			cs.add(best, i, m)
			now = append(now, best)
		}
		cs.before = now
	}
	return cs.all
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
		for _, l := range c.levels {
			levels[hosts[l.text]] += l.bytes
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
