package proc

import (
	"cmp"

	"strandline/host/proc/procfs"
	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
	"strandline/profiles"
)

// rowForm is the mappings of pmap -x without its heading, as in a loop of
// `pmap -x PID | tail -n +3 | sort -k3 -nr | head`.
const rowForm = "pmap rows"

// mappingRow is a mapping of pmap -x, and sumRow the last line, which sort puts anywhere.
var (
	mappingRow = lazyregexp.New(`^ *[0-9a-f]{8,16} +\d+ +\d+ +\d+ [r-][w-][x-][sp-][R-]? `)
	sumRow     = lazyregexp.New(`^ *total kB +\d+ +\d+ +\d+`)
)

// rowNames are the columns of pmap -x.
var rowNames = []string{"Address", "Kbytes", "RSS", "Dirty", "Mode", "Mapping"}

// rowBlock tells where a block of rows begins that has no heading: rows are sorted by size, so
// a larger one is of the next block, as is a mapping that the block already has.
type rowBlock struct {
	last uint64 // resident bytes of the last row
	seen map[uint64]bool
	sum  bool
}

// begins takes a row, and reports whether it is the first of a block.
func (b *rowBlock) begins(line string) bool {
	if sumRow.MatchString(line) {
		again := b.sum || b.seen == nil
		if again {
			*b = rowBlock{}
		}
		b.sum, b.seen = true, orEmpty(b.seen)
		b.last = cmp.Or(b.last, ^uint64(0))
		return again
	}
	u, ok := pmapRow(rowNames, line)
	if !ok {
		return false
	}
	first := b.seen == nil || u.RSS > b.last || b.seen[u.Start]
	if first {
		*b = rowBlock{}
	}
	b.seen = orEmpty(b.seen)
	b.last, b.seen[u.Start] = u.RSS, true
	return first
}

func orEmpty(seen map[uint64]bool) map[uint64]bool {
	if seen == nil {
		return map[uint64]bool{}
	}
	return seen
}

// rows reads the sum of a block of rows, where it is there.
func rows(lines []string) (*profiles.Host, error) {
	h := &profiles.Host{}
	for _, line := range lines {
		if m := totals.FindStringSubmatch(line); m != nil {
			h.RSS = kilobytesOf(m[2])
		}
	}
	return h, nil
}

// mappingsOf are the mappings of a block of pmap -x that hold most, the largest first.
func mappingsOf(form string, lines []string) (out []profiles.Mapping) {
	const maxKept = 32
	if form != "pmap" && form != rowForm {
		return nil
	}
	var list []procfs.Usage
	for _, line := range lines {
		if !mappingRow.MatchString(line) {
			continue
		}
		if u, ok := pmapRow(rowNames, line); ok {
			list = append(list, u)
		}
	}
	sorts.StableBy(list, func(a, b procfs.Usage) int { return cmp.Compare(b.RSS, a.RSS) })
	for _, u := range list[:min(len(list), maxKept)] {
		out = append(out, profiles.Mapping{Start: u.Start, End: u.End, RSS: *bytes(u.RSS), Path: u.Path})
	}
	return out
}
