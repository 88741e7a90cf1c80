package purpose

import (
	"slices"
	"sort"

	"strandline/stack"
	"strandline/torch/timeline"
)

// judge names allocations.
type judge struct {
	*program
	// updated counts, by size, the tensors that the optimizer updates, as their
	// states or, before the first update, the parameters show.
	updated map[int64]int
	masters map[stack.Frame]bool // places that made copies which the optimizer updates
	covered bool                 // the model holds all that the optimizer updates
	built   map[int]bool         // what constructors of modules make
	written map[stack.Frame]bool // places that give parameters new storage
	firstOf map[stack.Frame]int  // the first state that each place of an optimizer made
	// workspaces are allocations that have the size and the life of cuBLAS's.
	workspaces    map[int]bool
	graphs, older []graph      // by birth; older are what may be some, made before the history
	inGraph       map[int]bool // the tensors of those made in the history
	// votes state, by place in a pass, whether what was made there was kept for the
	// backward pass.
	votes  map[visit]int
	spots  map[int]visit  // of the allocations of forward passes and recomputations
	caches map[place]bool // a tensor for each layer, of an engine that only infers
	// outlived is, by stack, the bytes that outlived the step in which they were made,
	// less those that did not; nil until it is asked for.
	outlived    map[stack.ID]int64
	newest      map[stack.ID]int // the newest allocation of each stack; nil until it is asked for
	weightSizes map[int64]bool   // of parameters; nil until it is asked for
	sets        []inferred       // what was there before the history, by its sizes
	later       *judge           // the judge of the whole history, where this one does not know all of it
}

// newJudge knows so many events of a timeline.
func newJudge(t *timeline.Timeline, events int) *judge {
	j := &judge{program: newProgram(t, events)}
	j.findBuilt()
	j.findWritten()
	j.findUpdated()
	j.findWorkspaces()
	j.findCaches()
	j.findGraphs()
	j.inferBefore()
	if j.oom {
		j.findVotes()
	}
	return j
}

// name returns what allocation i is for after an event. What it cannot infer then
// is inferred from what happened later.
func (j *judge) name(i, event int) Purpose {
	p := j.at(i, event)
	if p == Unknown && j.later != nil {
		return j.later.at(i, event)
	}
	return p
}

// at returns what allocation i is for after an event, by what this judge knows. What was
// made before the history is judged by its stack alone, if a block still holds it.
func (j *judge) at(i, event int) Purpose {
	if p := j.always(i); p != count {
		return p
	}
	x := j.trait(j.t.Stack(i))
	switch {
	case j.t.Before(i):
		return Unknown
	case event < j.needed(i):
		return Activations
	case x.phase == unrecorded || len(j.forwards) == 0 && x.phase == backward:
		return Unknown
	}
	return j.passing(i)
}

// passing is Temporaries for what is gone when its step ends. Of a step that is
// not over, those before it decide. Where nothing shows when a step ends, what is
// not freed is unknown, except for the pass under way.
func (j *judge) passing(i int) Purpose {
	birth := j.t.Birth(i)
	switch step := j.stepAfter(birth); {
	case j.gone(i, min(step, j.events)):
		return Temporaries
	case step <= j.events, j.stays(j.t.Stack(i)):
		return Other
	case len(j.steps) == 0 && (birth < j.under || j.revisited(i)):
		return Unknown
	}
	return Temporaries
}

// revisited reports whether i outlived the next visit of its place in a pass that may keep
// things for a backward pass.
func (j *judge) revisited(i int) bool {
	if j.newest == nil {
		j.newest = map[stack.ID]int{}
		for i := range j.allocs {
			j.newest[j.t.Stack(i)] = i
		}
	}
	id := j.t.Stack(i)
	return !j.trait(id).noGrad && j.newest[id] != i
}

// stays reports whether what a stack made in the steps that are over outlived them.
func (j *judge) stays(id stack.ID) bool {
	if j.outlived == nil {
		j.outlived = map[stack.ID]int64{}
		for i := range j.allocs {
			step := j.stepAfter(j.t.Birth(i))
			switch id := j.t.Stack(i); {
			case j.t.Before(i) || step > j.events || id <= stack.Empty:
			case j.gone(i, step):
				j.outlived[id] -= j.t.Size(i)
			case j.always(i) == count:
				j.outlived[id] += j.t.Size(i)
			}
		}
	}
	return j.outlived[id] > 0
}

// inBackward reports whether the autograd engine made allocation i.
func (j *judge) inBackward(i int) bool {
	return !j.t.Before(i) && j.passOf(j.t.Birth(i)) != nil && j.trait(j.t.Stack(i)).phase == backward
}

// always is the purpose that allocation i has all its life, or count.
func (j *judge) always(i int) Purpose {
	x := j.trait(j.t.Stack(i))
	switch {
	case j.isParameter(i, x):
		return Parameters
	case x.phase == updating && j.isState(i, x):
		return Optimizer
	case x.named == KVCache, x.phase == own && j.caches[place{x.made, j.t.Size(i)}]:
		return KVCache
	case j.workspaces[i]:
		return Workspaces
	case j.isGradient(i, x):
		return Gradients
	case x.named == Communication:
		return Communication
	case j.isInput(i, x):
		return Input
	}
	return count
}

// isParameter recognizes the tensors of a model, as they are when it is first used,
// and the copies of them that the optimizer updates. What a model is made of and
// converted from is gone by then; a copy of a model whose original is trained is
// an average or a reference.
func (j *judge) isParameter(i int, x *trait) bool {
	if j.isWritten(i, x) {
		return true
	}
	if x.phase != own {
		return false
	}
	if x.named == Parameters {
		return !j.gone(i, j.forwardAfter(j.t.Birth(i))) && !(x.copies && j.covered)
	}
	return j.built[i] && !j.gone(i, j.forwardAfter(j.t.Birth(i))) || x.named == count && j.masters[x.made] && !j.gone(i, j.events)
}

// isState recognizes what an optimizer makes in a step and keeps beyond it.
func (j *judge) isState(i int, x *trait) bool {
	birth := j.t.Birth(i)
	if x.initial {
		return true
	}
	k := sort.Search(len(j.updates), func(k int) bool { return j.updates[k].to >= birth })
	if k == len(j.updates) {
		return j.t.Before(i) // of a step that is over
	}
	to := j.updates[k].to
	if j.oom && j.forwardAfter(to) == j.events && to >= j.events-1 { // it was cut short
		return false
	}
	return !j.gone(i, to+1)
}

// isGradient recognizes what a backward pass makes and leaves behind, what of it a
// collective takes over, and copies of gradients for the optimizer.
func (j *judge) isGradient(i int, x *trait) bool {
	birth := j.t.Birth(i)
	p := j.passOf(birth)
	switch {
	case x.named == Communication:
		return x.reduces && p != nil && birth >= p.begin && p.end < j.events && !j.gone(i, p.end+1) && j.death(i) != timeline.Never
	case x.phase == backward && p != nil:
		if p.end >= j.events && j.death(i) == timeline.Never {
			return j.updated[j.t.Size(i)] > 0
		}
		return !j.gone(i, p.end) || j.takenOver(i)
	case x.phase == own && x.named == count && j.afterBackward(birth):
		return j.updated[j.t.Size(i)] > 0 && j.heldByUpdate(i)
	}
	return false
}

// takenOver recognizes a gradient that a collective frees once it holds its sum.
func (j *judge) takenOver(i int) bool {
	k := j.t.Freed(i)
	return k != timeline.Never && k < j.events && j.trait(j.t.Trace.Stack[k]).named == Communication
}

// afterBackward reports whether event k is between a backward pass and what
// follows it.
func (j *judge) afterBackward(k int) bool {
	n := sort.Search(len(j.passes), func(n int) bool { return j.passes[n].end > k })
	if n == 0 || j.passOf(k) != nil {
		return false
	}
	end := j.passes[n-1].end
	return j.forwardAfter(end-1) > k && j.updateAfter(end-1).from > k
}

// heldByUpdate recognizes what lives when the next step of the optimizer begins, and
// is freed after.
func (j *judge) heldByUpdate(i int) bool {
	from := j.updateAfter(j.t.Birth(i) - 1).from
	return from < j.events && !j.gone(i, from+1)
}

// isInput recognizes what was made outside of all passes and lives when a forward
// pass begins.
func (j *judge) isInput(i int, x *trait) bool {
	birth := j.t.Birth(i)
	if x.named == Input {
		return true
	}
	if x.phase != own || x.named != count || j.gone(i, j.forwardAfter(birth)) || birth > j.open && j.training {
		return false
	}
	if p := j.passOf(birth); p != nil && birth > p.forward {
		return false
	}
	return x.loads || j.moved[x.made]
}

// needed is the event until which allocation i is kept for a backward pass.
func (j *judge) needed(i int) int {
	if j.inGraph[i] {
		return j.events
	}
	birth := j.t.Birth(i)
	x := j.trait(j.t.Stack(i))
	p := j.passOf(birth)
	switch {
	case p == nil:
		if birth >= j.open && j.training && x.phase != updating && j.kept(i) {
			return j.events
		}
	case birth < p.begin:
		if !j.gone(i, p.begin+1) {
			return p.end
		}
	case x.phase == recomputing:
		if k := sort.SearchInts(p.repeated, birth+1); k < len(p.repeated) && !j.gone(i, p.repeated[k]) ||
			k == len(p.repeated) && j.kept(i) {
			return p.end
		}
	}
	return timeline.Never
}

// kept recognizes what lives at the end of a pass that is not over and will be kept
// for its backward pass. Where memory ran out in the middle of it, passes before
// show.
func (j *judge) kept(i int) bool {
	if j.gone(i, j.events) {
		return false
	}
	v, ok := j.spots[i]
	return !j.oom || !ok || j.votes[v] >= 0
}

// A visit is a place in a pass: the n-th allocation in a row with a stack.
type visit struct {
	stack stack.ID
	n     int
}

// votingPasses is how many passes before are asked.
const votingPasses = 4

// findVotes asks all that is known to be kept, or not, what becomes of what is
// made at the same place.
func (j *judge) findVotes() {
	j.votes, j.spots = map[visit]int{}, map[int]visit{}
	from := j.open
	if n := len(j.passes); n > 0 {
		from = min(from, j.passes[max(0, n-votingPasses)].forward)
	}
	v, newest := visit{}, map[visit]int{}
	for i := range j.allocs {
		if j.t.Birth(i) < from {
			continue
		}
		id := j.t.Stack(i)
		if id != v.stack {
			v = visit{id, -1}
		}
		v.n++
		j.spots[i] = v
		newest[v] = i
	}
	for i, v := range j.spots {
		j.votes[v] += j.vote(i, newest[v] == i)
	}
}

// vote is 1 for what is known to have been kept, -1 for what was not. In the
// pass that was cut short, what outlived the next visit of its place was kept.
func (j *judge) vote(i int, newest bool) int {
	birth := j.t.Birth(i)
	p := j.passOf(birth)
	switch {
	case p == nil && birth < j.open:
		return 0
	case p == nil:
		if j.gone(i, j.events) {
			return -1
		}
	case birth < p.begin:
		if j.gone(i, p.begin+1) {
			return -1
		}
		return 1
	default:
		k := sort.SearchInts(p.repeated, birth+1)
		if k < len(p.repeated) && !j.gone(i, p.repeated[k]) {
			return 1
		}
		if k < len(p.repeated) || j.gone(i, j.events) {
			return -1
		}
	}
	if newest {
		return 0
	}
	return 1
}

// findUpdated finds the sizes of what the optimizer updates, and who made it if
// not a module: copies in another precision, or a class of the program's.
func (j *judge) findUpdated() {
	model, states := map[int64]int{}, map[stack.Frame][]int64{}
	candidates := map[stack.Frame][]int64{}
	j.firstOf = map[stack.Frame]int{}
	first := j.updateAfter(-1).from
	for i := range j.allocs {
		birth, size := j.t.Birth(i), j.t.Size(i)
		switch x := j.trait(j.t.Stack(i)); {
		case j.isParameter(i, x) && !x.copies:
			model[size]++
		case x.phase == updating && j.isState(i, x):
			if _, ok := states[x.made]; !ok {
				j.firstOf[x.made] = i
			}
			states[x.made] = append(states[x.made], size)
		case x.phase == own && x.named == count && birth < first && !j.gone(i, j.events):
			candidates[x.made] = append(candidates[x.made], size)
		}
	}
	if len(model) == 0 {
		j.findLateWritten(states, candidates)
	}
	j.updated = countSizes(heaviest(states))
	if len(j.updated) == 0 {
		j.updated = model
		j.masters = placesOf(candidates, func(c map[int64]int) bool { return len(c) > 1 && sameSizes(c, model, 2) })
		return
	}
	missing := without(j.updated, model)
	j.covered = len(missing) == 0
	if !j.covered {
		j.masters = placesOf(candidates, func(c map[int64]int) bool {
			return sameSizes(c, j.updated, 1) || len(without(c, missing)) == 0
		})
	}
}

// placesOf are the places whose sizes fit.
func placesOf(sizes map[stack.Frame][]int64, fit func(map[int64]int) bool) map[stack.Frame]bool {
	out := map[stack.Frame]bool{}
	for made, list := range sizes {
		out[made] = fit(countSizes(list))
	}
	return out
}

// without returns a less b.
func without(a, b map[int64]int) map[int64]int {
	out := map[int64]int{}
	for size, n := range a {
		if n > b[size] {
			out[size] = n - b[size]
		}
	}
	return out
}

// heaviest are the sizes of the place that made most: one state of each tensor.
func heaviest(states map[stack.Frame][]int64) (out []int64) {
	var most int64
	for _, sizes := range states {
		var sum int64
		for _, n := range sizes {
			sum += n
		}
		if sum > most || sum == most && slices.Compare(sizes, out) < 0 {
			most, out = sum, sizes
		}
	}
	return out
}

func countSizes(sizes []int64) map[int64]int {
	out := map[int64]int{}
	for _, n := range sizes {
		out[n]++
	}
	return out
}

// sameSizes reports whether a holds as many tensors of each size as b, times
// larger.
func sameSizes(a, b map[int64]int, times int64) bool {
	if len(a) != len(b) {
		return false
	}
	for size, n := range b {
		if a[size*times] != n {
			return false
		}
	}
	return true
}

// cublasSizes are the sizes of cuBLAS's workspaces as PyTorch makes them: before
// Hopper, from Hopper on, and those that determinism asks for.
var cublasSizes = []int64{4096*2<<10 + 16*8<<10, 4096 * 8 << 10, 16 * 8 << 10}

// findWorkspaces finds what has the size of cuBLAS's workspaces, was made in a
// pass and stays beyond it: one for each size and stream.
func (j *judge) findWorkspaces() {
	type kind struct {
		size   int64
		stream uint64
		phase  phase
	}
	j.workspaces = map[int]bool{}
	seen := map[kind]bool{}
	for i := range j.allocs {
		if j.t.Before(i) && j.t.Stack(i) <= stack.Empty { // not recorded who made it
			continue
		}
		x := j.trait(j.t.Stack(i))
		if x.named == Workspaces {
			j.workspaces[i] = !j.gone(i, j.events)
			continue
		}
		k := kind{size: j.t.Size(i), phase: x.phase}
		if !j.t.Before(i) {
			k.stream = j.t.Snap.Stream(j.t.Trace.Stream[j.t.Birth(i)])
		}
		if seen[k] || !slices.Contains(cublasSizes, k.size) || !j.outlives(i, x) {
			continue
		}
		seen[k] = true
		j.workspaces[i] = true
	}
}

// outlives recognizes what was made in the middle of computing and never freed. A
// gradient of that size is not a workspace.
func (j *judge) outlives(i int, x *trait) bool {
	if j.death(i) != timeline.Never || x.named != count {
		return false
	}
	switch x.phase {
	case backward:
		return j.updated[j.t.Size(i)] == 0
	case forward, recomputing, own, updating:
		return x.phase != own || j.t.Birth(i) > j.firstForward()
	}
	return false
}

// A place is where tensors of one size are made.
type place struct {
	made stack.Frame
	size int64
}

// findCaches finds, in a program that only infers, what looks like a cache by
// itself: tensors of one size in a row, made after the model and before it is
// first used, and never freed.
func (j *judge) findCaches() {
	j.caches = map[place]bool{}
	if j.training || len(j.forwards) == 0 {
		return
	}
	model, seen := false, map[place]bool{}
	for i := range j.allocs {
		if j.t.Before(i) {
			continue
		}
		if j.t.Birth(i) >= j.firstForward() {
			break
		}
		x := j.trait(j.t.Stack(i))
		model = model || j.isParameter(i, x)
		if k := (place{x.made, j.t.Size(i)}); model && x.phase == own && x.named == count && !j.gone(i, j.events) {
			j.caches[k], seen[k] = seen[k], true
		}
	}
}
