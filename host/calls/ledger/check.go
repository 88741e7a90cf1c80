package ledger

import (
	"cmp"
	"slices"

	"strandline/host/proc/procfs"
	"strandline/internal/sorts"
)

// check compares a space with the kernel's list of mappings, which was read after all
// events up to now were entered. The first check finds what was there before. After
// that a difference is corrected only if consecutive checks find it, as the list and
// the events are not from the same instant: two checks for what is in the ledger and
// not mapped, three for what is mapped and not in the ledger.
func (l *Ledger) check(s *Space, maps []procfs.Mapping, at uint64) {
	l.Corrections.Checks++
	s.checked++
	l.measure(s, maps, at)
	missing, extra := s.compare(maps)
	if s.checked == 1 {
		// The list may be older than an event that was entered.
		sorts.By(s.gone, func(a, b addresses) int { return cmp.Compare(a.start, b.start) })
		missing, s.gone = subtract(missing, s.gone), nil
		for _, m := range maps {
			l.adopt(s, m, Before, 0, missing)
		}
		return
	}
	for _, iv := range intersect(extra, s.extra) {
		l.Corrections.Extra += iv.Size()
		l.remove(s, iv.Start, iv.End, at)
	}
	sure := common(common(missing, s.missing[0]), s.missing[1])
	for _, m := range maps {
		l.Corrections.Missing += l.adopt(s, m, Unseen, at, sure)
	}
	s.missing[1], s.missing[0], s.extra = s.missing[0], missing, extra
	s.refine(maps)
}

// refine distinguishes shared memory from files on disks. The call has a descriptor in
// both cases; the kernel's list has the name.
func (s *Space) refine(maps []procfs.Mapping) {
	s.each(func(iv *Interval) {
		for len(maps) > 0 && maps[0].End <= iv.Start {
			maps = maps[1:]
		}
		if iv.kind == FileBacked && len(maps) > 0 && maps[0].Contains(iv.Start) && kindOf(maps[0]) == Shared {
			iv.kind = Shared
		}
	})
}

// adopt enters the parts of a mapping that lie in some ranges.
func (l *Ledger) adopt(s *Space, m procfs.Mapping, cause CauseID, at uint64, ranges []addresses) (bytes int64) {
	kind := kindOf(m)
	if kind == Heap {
		s.brk = max(s.brk, m.End)
	}
	for _, r := range common([]addresses{{m.Start, m.End}}, ranges) {
		iv := Interval{Start: r.start, End: r.end, since: at, Cause: cause, kind: kind, writable: m.Write}
		l.put(s, iv)
		bytes += iv.Size()
	}
	return bytes
}

// compare finds what is mapped and not in the ledger, and vice versa.
func (s *Space) compare(maps []procfs.Mapping) (missing []addresses, extra []Interval) {
	var mapped, own []addresses
	for _, m := range maps {
		mapped = append(mapped, addresses{m.Start, m.End})
	}
	s.each(func(iv *Interval) { own = append(own, addresses{iv.Start, iv.End}) })
	missing = subtract(mapped, own)
	i := 0
	s.each(func(iv *Interval) {
		for i < len(mapped) && mapped[i].end <= iv.Start {
			i++
		}
		for _, gap := range subtract([]addresses{{iv.Start, iv.End}}, mapped[i:min(len(mapped), i+overlapping(mapped[i:], iv.End))]) {
			piece := *iv
			piece.Start, piece.End = gap.start, gap.end
			extra = append(extra, piece)
		}
	})
	return missing, extra
}

// overlapping counts the ranges that begin before an address.
func overlapping(ranges []addresses, end uint64) int {
	n, _ := slices.BinarySearchFunc(ranges, end, func(a addresses, end uint64) int {
		if a.start < end {
			return -1
		}
		return 1
	})
	return n
}

// intersect returns the parts that are in two lists as pieces of the same interval.
func intersect(a, b []Interval) (out []Interval) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		start, end := max(a[i].Start, b[j].Start), min(a[i].End, b[j].End)
		if start < end && a[i].since == b[j].since {
			iv := a[i]
			iv.Start, iv.End = start, end
			out = append(out, iv)
		}
		if a[i].End < b[j].End {
			i++
		} else {
			j++
		}
	}
	return out
}

// common returns the addresses that are in both lists.
func common(a, b []addresses) (out []addresses) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		start, end := max(a[i].start, b[j].start), min(a[i].end, b[j].end)
		if start < end {
			out = append(out, addresses{start, end})
		}
		if a[i].end < b[j].end {
			i++
		} else {
			j++
		}
	}
	return out
}

// subtract returns the addresses in a that are not in b.
func subtract(a, b []addresses) (out []addresses) {
	j := 0
	for _, r := range a {
		for j < len(b) && b[j].end <= r.start {
			j++
		}
		for k := j; r.start < r.end; k++ {
			if k == len(b) || b[k].start >= r.end {
				out = append(out, r)
				break
			}
			if b[k].start > r.start {
				out = append(out, addresses{r.start, b[k].start})
			}
			r.start = max(r.start, b[k].end)
		}
	}
	return out
}
