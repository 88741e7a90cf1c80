package purpose

import (
	"slices"
	"sort"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A graph is what a forward pass with gradients on keeps for a backward pass that
// never comes. Nothing marks it in a recording: it is recognized by its end, for all of it
// goes at once, when the program releases the output.
type graph struct {
	allocs []int // by birth
	bytes  int64
	begin  int  // the event that made the first of them, timeline.Never for before the history
	end    int  // the event from which they are freed, or the end of the history
	before bool // it was made before the history
}

// minGraph is how many tensors have to go at once: the locals of a function do too.
const minGraph = 8

// findGraphs finds the graphs that no backward pass consumes: a quarter at least of
// what forward passes made meanwhile, of the tensors and of their bytes, which goes
// while nothing is made, and outside of the forward pass.
func (j *judge) findGraphs() {
	j.inGraph = map[int]bool{}
	if len(j.forwards) == 0 {
		return
	}
	made := j.madeForward()
	var run []int // allocations that end without one being made between
	from := 0
	for k, a := range j.t.Trace.Action[:j.events] {
		switch i := int(j.ends[k]) - 1; {
		case a == snapshot.Alloc:
			j.addGraph(run, from, made)
			run = run[:0]
		case i >= 0 && j.releases(j.t.Trace.Stack[k]):
			if len(run) == 0 {
				from = k
			}
			run = append(run, i)
		}
	}
	j.addGraph(run, from, made)
	j.addLiving(made)
	for _, g := range j.graphs {
		for _, i := range g.allocs {
			j.inGraph[i] = !g.before
		}
	}
}

// releases reports whether a stack can release a graph: not that of a backward
// pass, nor of a forward pass, whose functions release their locals.
func (j *judge) releases(id stack.ID) bool {
	x := j.trait(id)
	return x.phase == own || x.phase == unrecorded || x.phase == clearing
}

// A sum counts tensors and their bytes.
type sum struct {
	count int
	bytes int64
}

// sumsEvery is how many allocations are between two sums that are kept.
const sumsEvery = 64

// madeForward sums what forward passes made before every sumsEvery-th allocation.
func (j *judge) madeForward() []sum {
	sums := make([]sum, 0, j.allocs/sumsEvery+1)
	var s sum
	for i := range j.allocs + 1 {
		if i%sumsEvery == 0 {
			sums = append(sums, s)
		}
		if i < j.allocs {
			s.add(j, i)
		}
	}
	return sums
}

// add counts allocation i if a forward pass with gradients on made it.
func (s *sum) add(j *judge, i int) {
	if j.keepsGraph(i) {
		s.count++
		s.bytes += j.t.Size(i)
	}
}

// madeBefore sums what forward passes made before allocation i.
func (j *judge) madeBefore(i int, sums []sum) sum {
	s := sums[i/sumsEvery]
	for k := i / sumsEvery * sumsEvery; k < i; k++ {
		s.add(j, k)
	}
	return s
}

// keepsGraph reports whether a forward pass with gradients on made allocation i.
func (j *judge) keepsGraph(i int) bool {
	if j.t.Before(i) {
		return false
	}
	x := j.trait(j.t.Stack(i))
	return x.phase == forward && !x.noGrad && (x.named == count || x.named == Parameters)
}

// addGraph notes what goes at once from event from on, if that is a graph.
func (j *judge) addGraph(run []int, from int, made []sum) {
	if len(run) < minGraph {
		return
	}
	g := graph{end: from, begin: timeline.Never}
	var older graph
	for _, i := range run {
		switch {
		case j.t.Before(i) && j.t.Stack(i) <= stack.Empty:
			older.add(j, i)
		case j.keepsGraph(i):
			g.add(j, i)
		}
	}
	if g.isGraph(j, made) && !j.consumed(g.begin, from) && !j.failed(g.begin, from) {
		j.graphs = append(j.graphs, g)
	}
	if len(older.allocs) >= minGraph {
		older.begin, older.end, older.before = timeline.Never, from, true
		j.older = append(j.older, older)
	}
}

func (g *graph) add(j *judge, i int) {
	g.allocs = append(g.allocs, i)
	g.bytes += j.t.Size(i)
}

// isGraph reports whether the tensors are a fair share of what was made from the
// first of them to the last.
func (g *graph) isGraph(j *judge, made []sum) bool {
	const part = 4
	if len(g.allocs) < minGraph {
		return false
	}
	sort.Ints(g.allocs)
	first, last := g.allocs[0], g.allocs[len(g.allocs)-1]
	g.begin = j.t.Birth(first)
	before, all := j.madeBefore(first, made), j.madeBefore(last+1, made)
	return part*len(g.allocs) > all.count-before.count && part*g.bytes > all.bytes-before.bytes
}

// consumed reports whether a backward pass begins between two events.
func (j *judge) consumed(from, to int) bool {
	n := sort.Search(len(j.passes), func(n int) bool { return j.passes[n].begin > from })
	return n < len(j.passes) && j.passes[n].begin < to
}

// failed reports whether memory runs out between two events: what is released then
// might have been needed.
func (j *judge) failed(from, to int) bool {
	return slices.Contains(j.t.Trace.Action[from:to], snapshot.OOM)
}

// addLiving adds the graph that lives at the end of the history, where those before
// it were released: one made by the same stacks, or of the sizes of one that was
// made before the history.
func (j *judge) addLiving(made []sum) {
	from, stacks := 0, map[stack.ID]bool{}
	for _, g := range j.graphs {
		from = max(from, g.begin+1)
		for _, i := range g.allocs {
			stacks[j.t.Stack(i)] = true
		}
	}
	if n := len(j.passes); n > 0 {
		from = max(from, j.passes[n-1].end)
	}
	g := graph{end: j.events}
	known := 0
	for i := sort.Search(j.allocs, func(i int) bool { return j.t.Birth(i) >= from }); i < j.allocs; i++ {
		if j.keepsGraph(i) && !j.gone(i, j.events) {
			g.add(j, i)
			if stacks[j.t.Stack(i)] {
				known++
			}
		}
	}
	living := g.isGraph(j, made)
	graphs := j.graphs[:min(len(j.graphs), 1):min(len(j.graphs), 1)] // what came before resembles the first
	if living {
		graphs = append(graphs, g)
	}
	matched := false
	for _, x := range j.older {
		for n := range graphs {
			if x.resembles(j, &graphs[n]) && !j.consumed(0, x.end) {
				j.graphs = append(j.graphs, x)
				matched = true
				break
			}
		}
	}
	if living && (matched || 2*known > len(g.allocs)) {
		j.graphs = append(j.graphs, g)
	}
	sort.SliceStable(j.graphs, func(a, b int) bool { return j.graphs[a].begin < j.graphs[b].begin })
}

// resembles reports whether most bytes of a graph are in tensors of sizes that
// another has as well, as often.
func (g *graph) resembles(j *judge, other *graph) bool {
	const minShared, times = 0.9, 2
	if float64(min(g.bytes, other.bytes)) < minShared*float64(max(g.bytes, other.bytes)) || len(other.allocs) > times*len(g.allocs) {
		return false // so that the work is bounded by g
	}
	sizes := map[int64]int{}
	for _, i := range other.allocs {
		sizes[j.t.Size(i)]++
	}
	var same int64
	for _, i := range g.allocs {
		if n := j.t.Size(i); sizes[n] > 0 {
			sizes[n]--
			same += n
		}
	}
	return float64(same) >= minShared*float64(max(g.bytes, other.bytes))
}

// Unused is what forward passes keep in a peak for backward passes that never come.
type Unused struct {
	Bytes int64 // of all of them
	// Graphs is how many are in the peak. Of two, the older lives until its output
	// is replaced by the newer one's: Older is what it holds, and Without the peak if
	// it had been freed when the newer began.
	Graphs         int
	Older, Without int64
}

// unused sums the graphs in the peak, nil if there are none.
func (j *judge) unused() *Unused {
	peak := j.t.PeakRequested.Event
	if peak == timeline.Never {
		return nil
	}
	var in []*graph
	u := &Unused{}
	for n := range j.graphs {
		if g := &j.graphs[n]; g.begin <= peak && peak < g.end {
			in = append(in, g)
			for _, i := range g.allocs {
				if j.t.Birth(i) <= peak {
					u.Bytes += j.t.Size(i)
				}
			}
		}
	}
	if u.Graphs = len(in); u.Graphs == 0 {
		return nil
	}
	if u.Graphs > 1 {
		for _, g := range in[:len(in)-1] {
			u.Older += g.bytes
		}
		u.Without = j.withoutOlder()
	}
	return u
}

// withoutOlder returns the peak if each graph had been freed when the next began.
func (j *judge) withoutOlder() int64 {
	gone := changes{}
	for n := 0; n+1 < len(j.graphs); n++ {
		g, next := &j.graphs[n], &j.graphs[n+1]
		if next.begin < 0 || next.begin >= g.end {
			continue
		}
		for _, i := range g.allocs {
			gone.add(j, i, max(next.begin, j.t.Birth(i)))
		}
	}
	return j.peakWithout(gone)
}
