package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"strandline/finding"
	"strandline/host/ledger"
	"strandline/host/symbolize"
	"strandline/judge/trend"
	"strandline/units"
)

const (
	// surely is the confidence from which on growth is a problem.
	surely = 0.5
	// climbing is the share of its steps in which a place rises that grows with its class.
	climbing = 0.75
	// settledShare of the growth is worth telling of what grew at first.
	settledShare = 0.1
	// started is the age up to which a process may still load what it needs, and
	// starting the age up to which it surely does.
	started  = 2 * time.Minute
	starting = 4 * time.Second
	// unlooked is the age up to which a process may end before it was looked at
	// twice, so that nobody knows what it read.
	unlooked = 15 * time.Second
)

// A hostShape is how memory grew over time.
type hostShape int

const (
	unjudged hostShape = iota // it did not, or nothing can be told
	grows                     // and goes on
	settled                   // at first, and not since
)

// A hostGrowth is what calls of one kind made, over time.
type hostGrowth struct {
	kind    finding.Kind
	uses    []*ledger.Use // most bytes first, of those that are counted
	all     *trend.Population
	verdict trend.Verdict
	// from is the mark at which what is judged begins: where a warm-up ended.
	from       int
	shape      hostShape
	confidence float64
	// until is when a warm-up ended, or what settled had grown; 0 without either.
	until time.Duration
	// rest is what was mapped after something had settled, in bytes.
	rest int64
	// Bytes of what is judged: mapped, in memory, and in how many pieces; of is the
	// growth of the processes meanwhile, early what the warm-up made.
	mapped, resident, count, of, early int64
}

// curve is how what stays came about. A mapping that is made larger is another
// each time.
func (g *hostGrowth) curve(p *trend.Population) []int64 {
	if g.kind == finding.Remap {
		return p.Bytes
	}
	return p.Final
}

// since is what lives of a use and is counted, in bytes.
func (g *hostGrowth) since(u *ledger.Use) int64 {
	if g.from == 0 {
		return u.Live
	}
	return max(0, u.Live-g.curve(u.Population)[g.from])
}

// residentOf is what of a use is in memory, as far as anybody could look.
func residentOf(u *ledger.Use) int64 {
	if u.Resident < 0 {
		return u.Live
	}
	return u.Resident
}

// held is what is in memory of what is counted of a use.
func (g *hostGrowth) held(u *ledger.Use) int64 { return g.part(residentOf(u), u) }

// part is the part of a figure of a use that is counted.
func (g *hostGrowth) part(n int64, u *ledger.Use) int64 {
	if g.from == 0 || u.Live == 0 {
		return n
	}
	return int64(float64(n)*float64(g.since(u))/float64(u.Live) + 0.5)
}

// growthOf judges the uses of one class, or of one place, by when they grew: a
// warm-up is none of a leak that begins beside it or after it.
func (h host) growthOf(uses []*ledger.Use) *hostGrowth {
	s := h.sums
	g := &hostGrowth{kind: h.classOf(uses[0]), uses: slices.Clone(uses), all: trend.NewPopulation(len(s.Checkpoints)), of: s.Growth}
	for _, u := range uses {
		g.all.Merge(u.Population)
	}
	end := g.judge(h)
	switch {
	case g.shape == settled:
		g.until = time.Duration(s.Checkpoints[end])
		g.rest = g.all.Bytes[len(g.all.Bytes)-1] - g.all.Bytes[end]
	case g.from > 0:
		slices.SortStableFunc(g.uses, func(a, b *ledger.Use) int { return cmp.Compare(g.since(b), g.since(a)) })
		g.of, g.until = s.Growth-s.Grown[g.from], time.Duration(s.Checkpoints[g.from])
	}
	for _, u := range uses {
		g.mapped += g.since(u)
		g.count += g.part(u.Count, u)
		g.resident += g.held(u)
		g.early += residentOf(u) - g.held(u)
	}
	if kept := h.grew(finding.ArenaRetention); g.kind == finding.HeapLeak && kept >= classWorth && 4*kept >= g.resident {
		g.resident = max(0, g.resident-kept) // that is told by itself
	}
	return g
}

// worth reports whether growth is worth a finding, by the growth of the processes in
// all. What settled is, if it makes up much of that.
func (g *hostGrowth) worth(all int64) bool {
	switch g.shape {
	case grows:
		return g.resident >= hostWorth && float64(g.resident) >= hostShare*float64(max(g.of, 0))
	case settled:
		return g.resident >= classWorth && float64(g.resident) >= settledShare*float64(max(all, 0))
	}
	return false
}

// pooled tells memory of which pieces are used again: by some MiB it creeps also
// where nothing leaks, while blocks of many sizes come and go in it.
func (g *hostGrowth) pooled() bool {
	switch g.kind {
	case finding.HeapLeak, finding.ArenaRetention, finding.AllocatorRetention, finding.PythonObjects:
		return true
	}
	return false
}

// large tells growth that is more than creeping.
func (g *hostGrowth) large() bool { return !g.pooled() || min(g.resident, g.of) >= classWorth }

// judge tells how memory grew, and the mark at which it had if it settled.
func (g *hostGrowth) judge(h host) (end int) {
	g.verdict = trend.Judge(g.all, trend.Past{})
	whole := g.sure(g.verdict, g.all, h)
	if from := trend.WarmUp(g.curve(g.all)); from > 0 {
		later := g.all.From(from)
		v := trend.Judge(later, trend.Past{})
		sure := g.sure(v, later, h)
		switch stays := g.curve(later); {
		case g.pooled() && stays[len(stays)-1]-stays[0] < classWorth:
			g.shape, g.confidence = settled, 1
			return from
		case sure >= surely, sure > 0 && whole > 0:
			g.shape, g.verdict, g.from, g.confidence = grows, v, from, sure
			return 0
		}
	}
	switch end = reached(g.curve(g.all)); {
	case end > 0 && 4*end <= 3*(len(g.all.Bytes)-1) && whole < surely:
		g.shape, g.confidence = settled, 1
	case whole >= 0.2:
		g.shape, g.confidence = grows, whole
	}
	return end
}

// sure is how sure a verdict says that memory goes on growing; by what was seen
// from outside, too.
func (g *hostGrowth) sure(v trend.Verdict, p *trend.Population, h host) float64 {
	sure := 0.0
	if v.Class == trend.Leak {
		sure = v.Confidence
	}
	if g.kind == finding.Remap {
		sure = rising(p.Bytes)
	}
	if byPlace(g.kind) && rising(p.Bytes) < climbing {
		return sure // another place may be what grew
	}
	return max(sure, h.steady(g.kind))
}

// nearly is the share of a rise at which it is taken to be over.
const nearly = 0.98

// reached is the first mark at which a curve is nearly as high as at its end; 0 if
// it does not rise.
func reached(bytes []int64) int { return risen(bytes, nearly) }

// risen is the first mark at which a curve has some share of its rise; 0 if it does
// not rise.
func risen(bytes []int64, share float64) int {
	n := len(bytes) - 1
	if n < 1 || bytes[n] <= bytes[0] {
		return 0
	}
	return slices.IndexFunc(bytes, func(b int64) bool { return float64(b-bytes[0]) >= share*float64(bytes[n]-bytes[0]) })
}

// rising is how sure a curve goes up: by the share of its steps that do.
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

// recent says that growth began too late in the trace to be judged; it is empty if
// it did not.
func (g *hostGrowth) recent(marks []uint64) string {
	const enough = 6 // intervals
	n := len(marks) - 1
	if begun := risen(g.curve(g.all), 1-nearly) - 1; begun > n-enough && begun > enough {
		return fmt.Sprintf("it began %s before the end of the trace", units.Duration(time.Duration(marks[n]-marks[begun]).Round(100*time.Millisecond)))
	}
	return ""
}

// loading says why growth by some calls may be that of a program that still loads
// what it needs, and will end; it is empty where nothing speaks for it. The calls
// are nil where they are not known.
func (h host) loading(uses []*ledger.Use, bytes int64) string {
	began, young := h.sums.Age, unlooked
	if h.looks != nil {
		began, young = h.looks.Age, starting
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
		return fmt.Sprintf("the process began %s ago, and most of it was made while modules were imported", age)
	case h.looks != nil && 2*h.looks.Read >= bytes:
		return fmt.Sprintf("the process began %s ago and read %s meanwhile, as one does that loads its data", age, units.Bytes(h.looks.Read))
	case began < young:
		return fmt.Sprintf("the process began %s ago", age)
	}
	return ""
}

// importing tells frames of the machinery that imports modules of Python.
func importing(f symbolize.Frame) bool { return strings.HasPrefix(f.File, "<frozen importlib") }

// growingStacks are the numbers of the stacks of uses, of which the first made the
// most: its own, and those that grow by themselves from a mark on. 0 is none.
func growingStacks(uses []*ledger.Use, from int) []int {
	out := []int{}
	for i, u := range uses {
		if u.ID > 0 && (i == 0 || trend.Judge(u.Population.From(from), trend.Past{}).Class == trend.Leak) {
			out = append(out, u.ID)
		}
	}
	return out
}
