package jobs

import (
	"cmp"
	"slices"

	"strandline/internal/sorts"
	"strandline/torch/flight"
)

// recorded is what the dumps of flight recorders show together.
type recorded struct {
	dumped   map[int]bool // ranks that have a dump
	waiting  map[int]bool // those that wait in a collective
	laggards []int        // those that did not enqueue it, and wait in no other
	seq      int64        // the collective, of the first group in which a rank is behind; -1
	since    int64        // when the first rank began to wait in it, in ns since 1970 by its clock; 0 if unknown
}

// record compares the dumps of the ranks by group.
func record(dumps []*flight.Dump) recorded {
	out := recorded{dumped: map[int]bool{}, waiting: map[int]bool{}, seq: -1}
	type member struct {
		rank int
		*flight.Group
	}
	type group struct { // those of other ranks may have the same name
		name    string
		members uint64
	}
	groups := map[group][]member{}
	for _, d := range dumps {
		out.dumped[d.Rank] = true
		for name, g := range d.Groups {
			key := group{name, g.Members}
			groups[key] = append(groups[key], member{d.Rank, g})
			if g.Waiting >= 0 {
				out.waiting[d.Rank] = true
			}
		}
	}
	laggards := map[int]int64{}
	since := map[int64]int64{} // by collective
	for _, members := range groups {
		seq := int64(-1)
		for _, m := range members {
			seq = max(seq, m.Waiting)
		}
		for _, m := range members {
			if m.Enqueued < seq && !out.waiting[m.rank] {
				laggards[m.rank] = max(laggards[m.rank], m.Enqueued+1)
			}
			if at := since[m.Waiting]; m.Since > 0 && (at == 0 || m.Since < at) {
				since[m.Waiting] = m.Since
			}
		}
	}
	for n, seq := range laggards {
		out.laggards = append(out.laggards, n)
		out.seq, out.since = seq, since[seq]
	}
	slices.Sort(out.laggards)
	if len(out.laggards) != 1 {
		out.seq = -1
	}
	return out
}

// dumps are those of the job. Of a rank with several, which are of different runs, none is used.
func (j *job) dumps() (out []*flight.Dump) {
	count := map[int]int{}
	for _, d := range j.more.Dumps {
		count[d.Rank]++
	}
	for _, d := range j.more.Dumps {
		if count[d.Rank] == 1 {
			out = append(out, d)
		}
	}
	sorts.By(out, func(a, b *flight.Dump) int { return cmp.Compare(a.Rank, b.Rank) })
	return out
}

// worldOfDumps is the number of ranks that dumps know of.
func worldOfDumps(dumps []*flight.Dump) (world int) {
	for _, d := range dumps {
		world = max(world, d.Rank+1)
		for _, g := range d.Groups {
			world = max(world, g.World)
		}
	}
	return min(world, 1<<16)
}
