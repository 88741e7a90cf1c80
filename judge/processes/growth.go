package processes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
	"strandline/trend"
	"strandline/units"
)

const (
	// problemConfidence is the confidence from which growth is a problem.
	problemConfidence = 0.5
	// undecided is the confidence in growth that had paused by the end of the trace.
	undecided = 0.45
	// climbing is the share of its steps in which a place must rise if it grows with
	// its class.
	climbing = 0.75
	// settledShare is the least share of all growth at which growth that settled is
	// reported.
	settledShare = 0.1
	// started is the age up to which a process may still be loading what it needs, and
	// starting the age up to which it surely is.
	started  = 2 * time.Minute
	starting = 4 * time.Second
	// unlooked is the age at which a process may end before it has been looked at
	// twice, so that what it read is unknown.
	unlooked = 15 * time.Second
)

// A hostShape is how memory grew over time.
type hostShape int

const (
	unjudged hostShape = iota // it did not grow, or that is unknown
	grows                     // and keeps growing
	settled                   // grew at first, and not since
)

// A hostGrowth is the memory that calls of one kind made, over time.
type hostGrowth struct {
	kind    finding.Kind
	uses    []*ledger.Use // those that are counted, most bytes first
	all     *trend.Population
	verdict trend.Verdict
	// from is the checkpoint at which the judged part begins: where a warm-up ended.
	from       int
	shape      hostShape
	confidence float64
	// filled is how much private memory the processes had more at each checkpoint, if the
	// memory lies in a large mapping that is still being filled; otherwise nil.
	filled []int64
	rises  float64 // then the share of steps in which smaller pieces came, otherwise 0
	buffer bool    // it is one buffer that is being filled
	// paused is the checkpoint up to which memory grew and after which nothing came; 0
	// if something did.
	paused int
	// until is when a warm-up ended, or when what settled had grown; 0 if neither
	// applies.
	until time.Duration
	// rest is what was mapped after something had settled, in bytes.
	rest int64
	// The bytes judged: mapped, and in memory; and the number of pieces they are in. of
	// is the growth of the processes meanwhile, and early what the warm-up made.
	mapped, resident, count, of, early int64
}

// curve is how the memory that stays came about. Each time a mapping is made larger, it
// counts as a new one.
func (g *hostGrowth) curve(p *trend.Population) []int64 {
	if g.kind == finding.Remap {
		return p.Bytes
	}
	return p.Final
}

// course is the curve up to the last checkpoint. What is mapped at once, and filled since,
// came as it was filled.
func (g *hostGrowth) course(p *trend.Population) []int64 {
	curve := g.curve(p)
	if g.filled == nil {
		return curve
	}
	out, filled := slices.Clone(curve), g.filled[len(g.filled)-len(curve):]
	for i := range out {
		out[i] = min(out[i], max(0, filled[i]))
	}
	return out
}

// fills notes growth of malloc's heap that lies, for at least a third, in large mappings that
// were filled after they were mapped, beside smaller pieces that keep coming. A large mapping
// alone is a buffer, which ends growing when it is full.
func (g *hostGrowth) fills(s *ledger.Sums) {
	small := trend.NewPopulation(len(s.Checkpoints))
	var large, held int64
	for _, u := range g.uses {
		held += residentOf(u)
		if u.Size < minClassBytes {
			small.Merge(u.Population)
			continue
		}
		large += residentOf(u)
	}
	if g.kind != finding.HeapLeak || 3*large < held || 8*(held-large) < held || emptyOf(g.curve(g.all), s.GrownAnon) < minHostBytes {
		return
	}
	if rises := rising(small.Final); rises >= climbing {
		g.filled, g.rises = s.GrownAnon, rises
	}
}

// emptyOf is the most, in bytes, by which what was mapped exceeded what was in memory.
func emptyOf(mapped, resident []int64) (most int64) {
	for i := range resident {
		most = max(most, mapped[i]-max(0, resident[i]))
	}
	return most
}

// liveCounted is how many bytes of a use are alive and counted.
func (g *hostGrowth) liveCounted(u *ledger.Use) int64 {
	if g.from == 0 {
		return u.Live
	}
	return max(0, u.Live-g.curve(u.Population)[g.from])
}

// residentOf is how much of a use is in memory, as far as that was observed, regardless
// of what filled it.
func residentOf(u *ledger.Use) int64 {
	if u.Resident < 0 {
		return u.Live
	}
	return u.Resident + u.Filled
}

// residentBytes is how much of the counted part of a use is in memory.
func (g *hostGrowth) residentBytes(u *ledger.Use) int64 { return g.part(residentOf(u), u) }

// part is the share of a use's figure n that belongs to the counted part.
func (g *hostGrowth) part(n int64, u *ledger.Use) int64 {
	if g.from == 0 || u.Live == 0 {
		return n
	}
	return int64(float64(n)*float64(g.liveCounted(u))/float64(u.Live) + 0.5)
}

// growthOf judges the uses of one class, or of one place, by when they grew: a warm-up is
// not part of a leak that begins during or after it.
func (h host) growthOf(uses []*ledger.Use) *hostGrowth {
	s := h.sums
	g := &hostGrowth{kind: h.kindOf(uses[0]), uses: slices.Clone(uses), all: trend.NewPopulation(len(s.Checkpoints)), of: s.Growth, buffer: h.buffers[uses[0]]}
	for _, u := range uses {
		g.all.Merge(u.Population)
	}
	g.fills(s)
	end := g.judge(h)
	switch {
	case g.shape == settled:
		g.until = time.Duration(s.Checkpoints[end])
		g.rest = g.all.Bytes[len(g.all.Bytes)-1] - g.all.Bytes[end]
	case g.from > 0:
		sorts.StableBy(g.uses, func(a, b *ledger.Use) int { return cmp.Compare(g.residentBytes(b), g.residentBytes(a)) })
		g.of, g.until = s.Growth-s.Grown[g.from], time.Duration(s.Checkpoints[g.from])
	}
	for _, u := range uses {
		g.mapped += g.liveCounted(u)
		g.count += g.part(u.Count, u)
		g.resident += g.residentBytes(u)
		g.early += residentOf(u) - g.residentBytes(u)
	}
	switch g.kind {
	case finding.Regrown:
		g.regrown()
	case finding.ThreadStacks:
		g.count = g.stacks()
	}
	if kept := h.grew(finding.ArenaRetention); g.kind == finding.HeapLeak && kept >= minClassBytes && 4*kept >= g.resident {
		g.resident = max(0, g.resident-kept) // that part is reported separately
	}
	return g
}

// stacks is how many stacks of threads there are. glibc maps a stack without access and then
// allows access to all of it but the guard: those are two pieces.
func (g *hostGrowth) stacks() (n int64) {
	for _, u := range g.uses {
		if u.Op == event.Protect {
			n += g.part(u.Count, u)
		}
	}
	return cmp.Or(n, g.count)
}

// notable reports whether growth makes a finding, given the growth of all the processes.
// Growth that settled does if it makes up a large part of that.
func (g *hostGrowth) notable(all int64) bool {
	switch g.shape {
	case grows:
		return g.resident >= minHostBytes && float64(g.resident) >= hostShare*float64(max(g.of, 0))
	case settled:
		return g.resident >= minClassBytes && float64(g.resident) >= settledShare*float64(max(all, 0))
	}
	return false
}

// pooled reports whether pieces of the memory are reused: such memory creeps up by a few
// MiB even without a leak, while blocks of many sizes come and go in it.
func (g *hostGrowth) pooled() bool {
	switch g.kind {
	case finding.HeapLeak, finding.ArenaRetention, finding.AllocatorRetention, finding.PythonObjects:
		return true
	}
	return false
}

// collected matches the functions by which garbage-collected heaps grow, and the parts in
// C of what is in them.
var collected = lazyregexp.New(`^runtime\.\(\*mheap\)|^v8::|^os::(pd_)?commit_memory|^zend_mm`)

// ofRuby matches the functions of Ruby's interpreter.
var ofRuby = lazyregexp.New(`^(rb|ruby)_`)

// rubyGarbage is how much Ruby takes from malloc, in bytes, before it collects garbage:
// GC_MALLOC_LIMIT_MAX of its gc.c.
const rubyGarbage = 32 << 20

// uncollected states that a heap may have grown by garbage, which was not collected yet; it
// is empty if a collector would have run.
func (g *hostGrowth) uncollected() string {
	var all, ruby int64
	for _, u := range g.uses {
		all += g.residentBytes(u)
		if slices.ContainsFunc(u.Frames, func(f symbolize.Frame) bool { return ofRuby.MatchString(f.Function) }) {
			ruby += g.residentBytes(u)
		}
	}
	if g.kind != finding.HeapLeak || g.shape != grows || 2*ruby < all || g.resident >= rubyGarbage {
		return ""
	}
	return fmt.Sprintf("Ruby collects garbage only once it has taken %s from malloc: this may be garbage", units.Bytes(rubyGarbage))
}

// problemConfidence is the confidence from which the growth is a problem. A garbage
// collector makes reused memory grow in a few large steps, and then no more.
func (g *hostGrowth) problemConfidence() float64 {
	if g.pooled() || slices.ContainsFunc(g.uses[0].Frames, func(f symbolize.Frame) bool { return collected.MatchString(f.Function) }) {
		return problemDespiteRelease
	}
	return problemConfidence
}

// large reports whether growth is more than creeping.
func (g *hostGrowth) large() bool { return !g.pooled() || min(g.resident, g.of) >= minClassBytes }

// judge determines how memory grew, and returns the checkpoint by which it had grown if
// it settled.
func (g *hostGrowth) judge(h host) (end int) {
	g.verdict = trend.Judge(g.all, trend.Past{})
	if g.kind == finding.Regrown {
		g.shape, g.confidence = grows, regrows(g.uses[0])
		return 0
	}
	if g.buffer {
		g.shape, g.confidence = settled, 1
		return max(0, reached(g.all.Bytes))
	}
	whole := g.growthConfidence(g.verdict, g.all, h)
	if from := trend.WarmUp(g.course(g.all)); from > 0 {
		later := g.all.From(from)
		v := trend.Judge(later, trend.Past{})
		sure := g.growthConfidence(v, later, h)
		switch stays := g.course(later); {
		case g.pooled() && stays[len(stays)-1]-stays[0] < minClassBytes:
			g.shape, g.confidence = settled, 1
			return from
		case sure >= problemConfidence, sure > 0 && whole > 0:
			g.shape, g.verdict, g.from, g.confidence = grows, v, from, sure
			return 0
		}
	}
	switch end = reached(g.course(g.all)); {
	case end > 0 && 4*end <= 3*(len(g.all.Bytes)-1) && whole < problemConfidence:
		g.shape, g.confidence = settled, 1
	case whole >= 0.2:
		g.shape, g.confidence = grows, whole
	case end > 0:
		g.pause(end, h.sums.Checkpoints)
	}
	return end
}

// pause notes growth up to a checkpoint after which hardly anything came. What is short,
// compared with the trace, is not a pause: a busy machine may not have let the program run.
func (g *hostGrowth) pause(end int, checkpoints []uint64) {
	const short = 0.05 // of the trace
	curve := g.course(g.all)
	last := len(curve) - 1
	v := trend.Judge(g.all.Until(end+1), trend.Past{})
	if end == last || v.Class != trend.Leak || v.Confidence < 0.2 || curve[last]-curve[0] < minClassBytes {
		return
	}
	g.shape, g.verdict, g.confidence = grows, v, v.Confidence
	if seconds(checkpoints[last]-checkpoints[end]) >= short*seconds(checkpoints[last]-checkpoints[0]) {
		g.paused, g.confidence = end, min(v.Confidence, undecided)
	}
}

// basis states on what the confidence in the growth of one buffer rests; it is empty for
// other growth, which is judged by what is added and freed.
func (g *hostGrowth) basis() string {
	switch {
	case g.buffer:
		return "it is one mapping, whose size is known"
	case g.kind == finding.Regrown:
		return "it became larger in nearly every step in which it was replaced, to the end of the trace"
	case g.kind == finding.Remap && g.shape == grows:
		return fmt.Sprintf("it became larger in %s of the intervals", units.Percent(rising(g.curve(g.all)[g.from:])))
	}
	return ""
}

// pauses states how long nothing came at the end of the trace; it is empty if something
// did.
func (g *hostGrowth) pauses(checkpoints []uint64) string {
	if g.paused == 0 {
		return ""
	}
	return pausedFor(checkpoints[len(checkpoints)-1] - checkpoints[g.paused])
}

func pausedFor(quiet uint64) string {
	return fmt.Sprintf("hardly anything came in the last %s: it may have ended, or paused", duration(quiet))
}

// duration is a duration on the trace's clock, in words.
func duration(nanoseconds uint64) string { return units.Duration(time.Duration(nanoseconds)) }

// growthConfidence is the confidence that memory keeps growing, from a verdict and also from what was
// seen from outside.
func (g *hostGrowth) growthConfidence(v trend.Verdict, p *trend.Population, h host) float64 {
	sure := 0.0
	if v.Class == trend.Leak {
		sure = v.Confidence
	}
	if g.kind == finding.Remap {
		sure = rising(p.Bytes)
	}
	if kindOf(g.kind).byPlace && rising(p.Bytes) < climbing {
		return sure // another place may be what grew
	}
	return max(sure, h.steady(g.kind), g.rises)
}

// nearly is the share of a rise at which the rise is considered over.
const nearly = 0.98

// reached is the first checkpoint at which a curve is nearly as high as at its end; 0 if
// it does not rise.
func reached(bytes []int64) int { return riseReached(bytes, nearly) }

// riseReached is the first checkpoint at which a curve has completed a given share of its rise;
// 0 if it does not rise.
func riseReached(bytes []int64, share float64) int {
	n := len(bytes) - 1
	if n < 1 || bytes[n] <= bytes[0] {
		return 0
	}
	return slices.IndexFunc(bytes, func(b int64) bool { return float64(b-bytes[0]) >= share*float64(bytes[n]-bytes[0]) })
}

// rising is the confidence that a curve goes up: the share of its steps that do.
func rising(bytes []int64) float64 {
	up, n := 0, len(bytes)-1
	for i := 1; i <= n; i++ {
		if bytes[i] > bytes[i-1] {
			up++
		}
	}
	if n < 3 || bytes[n] <= bytes[n/2] {
		return 0
	}
	return float64(up) / float64(n)
}

// recent states that growth began too late in the trace to be judged; it is empty if it did
// not.
func (g *hostGrowth) recent(checkpoints []uint64) string {
	const minIntervals = 6 // intervals
	n := len(checkpoints) - 1
	if begun := riseReached(g.course(g.all), 1-nearly) - 1; begun > n-minIntervals && begun > minIntervals {
		return fmt.Sprintf("it began %s before the end of the trace", units.Duration(time.Duration(checkpoints[n]-checkpoints[begun]).Round(100*time.Millisecond)))
	}
	return ""
}

// loading says why growth from some calls may come from a program that is still loading
// what it needs, and so will end; it is empty if there is no sign of that. The calls are
// nil if they are unknown.
func (h host) loading(kind finding.Kind, uses []*ledger.Use, bytes int64) string {
	began, young := h.sums.Age, unlooked
	if h.looks != nil {
		began, young = h.looks.Age, starting
		if len(h.sums.Processes) > 0 && h.subject() != h.sums.Processes[0].PID {
			young = unlooked // the beginning of a child that started during the trace was not looked at
		}
	}
	if child, ok := h.holder(uses); ok {
		began, young = child.Age, unlooked
	}
	if began == 0 || began > started {
		return ""
	}
	age := units.Duration(began.Round(100 * time.Millisecond))
	var imported, live int64
	for _, u := range uses {
		if len(u.Frames) > 0 {
			live += residentOf(u)
		}
		if slices.ContainsFunc(u.Frames, importing) {
			imported += residentOf(u)
		}
	}
	switch {
	case live > 0 && 2*imported >= live:
		return fmt.Sprintf("the process started %s ago, and most of it was allocated while modules were imported", age)
	case kind == finding.AutogradGraph: // files are not loaded into it, nor is it rebuilt
		return ""
	case h.looks != nil && 2*h.readInto(kind) >= bytes && !mapsFiles(uses):
		return fmt.Sprintf("the process started %s ago and read %s meanwhile, as when loading its data", age, units.Bytes(h.looks.Read))
	case h.sums.Ended:
		return fmt.Sprintf("the process ended %s after its start: a job holds its work until it ends", age)
	case began < young:
		return fmt.Sprintf("the process started %s ago", age)
	}
	return ""
}

// readInto is how much of what the process read, in bytes, can be in memory of a class.
// Reading fills shared memory first, as the buffers of a database: private memory can
// only hold the rest.
func (h host) readInto(kind finding.Kind) int64 {
	if kind == finding.SharedMemory || kind == finding.MemoryFiles {
		return h.looks.Read
	}
	return h.looks.Read - max(h.looks.Shared, 0)
}

// holder returns the process that holds most of some memory, if it is not the first
// process.
func (h host) holder(uses []*ledger.Use) (most ledger.Process, ok bool) {
	held := map[uint32]int64{}
	for _, share := range sharesOf(uses) {
		held[share.PID] += share.Live
	}
	for i, p := range h.sums.Processes {
		if p.Age > 0 && held[p.PID] > held[most.PID] {
			most, ok = p, i > 0
		}
	}
	return most, ok
}

// mapsFiles reports whether calls mapped files, whose contents are read without calls.
func mapsFiles(uses []*ledger.Use) bool { return len(uses) > 0 && uses[0].Kind == ledger.FileBacked }

// importing reports whether a frame belongs to the machinery that imports Python modules.
func importing(f symbolize.Frame) bool { return strings.HasPrefix(f.File, "<frozen importlib") }

// growingStacks returns the numbers of the stacks of some uses, whose first made the
// most: the stack of that use, and those that start growing at a later checkpoint. 0 is
// no stack.
func growingStacks(uses []*ledger.Use, from int) []int {
	out := []int{}
	for i, u := range uses {
		if u.ID > 0 && (i == 0 || trend.Judge(u.Population.From(from), trend.Past{}).Class == trend.Leak) {
			out = append(out, u.ID)
		}
	}
	return out
}
