package jobs

import (
	"cmp"
	"math"
	"slices"

	"strandline/internal/sorts"
	"strandline/logs/ranks"
)

// fall finds out how each rank ended.
func (j *job) fall() {
	j.attachLoose()
	j.attachKills()
	tasks := j.tasksAreNodes()
	for i := range j.exits {
		e := &j.exits[i]
		if e.Task && tasks {
			continue
		}
		for _, n := range e.Ranks {
			if n < 0 || n >= max(j.world, 1) {
				continue
			}
			r := j.ranks[n]
			if r == nil {
				continue
			}
			if r.exit == nil || len(e.Exit.Message) > 0 || r.exit.State == "" {
				r.exit = e
			}
		}
	}
	for _, r := range j.order {
		r.fall = j.fatal(r.events)
		if f := r.fall; f != nil && !f.Timed && r.exit != nil && r.exit.Local >= 0 && len(r.exit.Ranks) == 1 && r.exit.at > f.at {
			f.at = r.exit.at // of the error's file
		}
	}
}

// attachLoose gives events without a rank to the one whose device they name.
func (j *job) attachLoose() {
	const maxLines = 80 // lines that a driver prints of an error
	byPID := j.byPID()
	driver := map[*ranks.Text]event{}
	for i, e := range j.loose {
		if e.Kind == ranks.Driver {
			if r := j.process(byPID[e.PID], e.IP); r != nil {
				e.event.rank = r.n
				driver[e.text] = e.event
			}
			continue
		}
		if d, ok := driver[e.text]; ok && e.Line > d.Line && e.Line < d.Line+maxLines && e.Kind.Own() {
			r := j.ranks[d.rank]
			e.event.rank, j.loose[i].rank = r.n, r.n
			if !slices.ContainsFunc(r.events, func(x event) bool { return x.Kind.Own() }) {
				r.events = append(r.events, e.event)
			}
			continue
		}
		if e.node == nil || e.node.base < 0 || e.device < 0 {
			continue
		}
		n := e.node.base + e.device
		if n >= j.world && j.world > 0 {
			continue
		}
		if j.ranks[n] == nil {
			j.order = append(j.order, j.get(n))
		}
		r := j.ranks[n]
		j.loose[i].rank = n
		e.event.rank = n
		r.events = append(r.events, e.event)
	}
	sorts.By(j.order, func(a, b *rank) int { return cmp.Compare(a.n, b.n) })
}

// byPID are the ranks of each process number, as nodes can have the same.
func (j *job) byPID() map[int][]*rank {
	out := map[int][]*rank{}
	for _, r := range j.order {
		for pid := range r.pids {
			if pid != 0 {
				out[pid] = append(out[pid], r)
			}
		}
	}
	return out
}

// process is the rank of a process that a driver names, of those with its number, or nil.
func (j *job) process(of []*rank, ip string) *rank {
	var found *rank
	for _, r := range of {
		if r.node != nil && slices.Contains(r.node.names, ip) {
			return r
		}
		if r.node == nil {
			r.node = j.at(ip)
		}
		if found == nil {
			found = r
		}
	}
	return found
}

// attachKills finds the ranks of processes that were killed.
func (j *job) attachKills() {
	byPID, exited := j.byPID(), map[int]int{}
	for _, e := range j.exits {
		if _, known := exited[e.PID]; !known && len(e.Ranks) == 1 {
			exited[e.PID] = e.Ranks[0]
		}
	}
	for i := range j.kills {
		k := &j.kills[i]
		if k.rank >= 0 || k.PID == 0 {
			continue
		}
		for _, r := range byPID[k.PID] {
			if k.node == nil || r.node.name() == "" || r.node == k.node || len(j.nodes) < 2 {
				k.rank = r.n
			}
		}
		if n, ok := exited[k.PID]; ok && k.rank < 0 {
			k.rank = n
		}
	}
	for i := range j.kills {
		if k := &j.kills[i]; k.rank >= 0 && j.ranks[k.rank] != nil {
			j.ranks[k.rank].killed = k
		}
	}
}

// fatal is the event that ended a rank: the first after which nothing went on.
func (j *job) fatal(events []event) *event {
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case ranks.Signaled, ranks.Slow, ranks.Nothing:
			continue
		}
		if e.Caught && e.Kind != ranks.RanOut || j.survived(e) {
			continue
		}
		if e.Caught && i+1 < len(events) && later(events[i+1:]) {
			continue
		}
		return e
	}
	return nil
}

// later reports whether the end of a rank is stated in later events.
func later(events []event) bool {
	return slices.ContainsFunc(events, func(e event) bool { return e.Ends() })
}

// stray is a failure in a text of a node that does not say of which rank it is, as one of no
// number; nil if there is none.
func (j *job) stray() *rank {
	byNode := map[*node]*rank{}
	var first *rank
	for _, e := range j.loose {
		if !e.Kind.Own() || e.rank >= 0 || e.Caught || j.survived(&e.event) || e.Kind == ranks.Device && e.Line < 0 {
			continue
		}
		r := byNode[e.node]
		if r == nil {
			r = &rank{n: -1, node: e.node, pids: map[int]bool{}}
			byNode[e.node] = r
		}
		r.events = append(r.events, e.event)
		if r.fall == nil {
			r.fall = &e.event
		}
		if first == nil || r.fall.at < first.fall.at {
			first = r
		}
	}
	if first == nil || first.node == nil {
		return first
	}
	quiet := -1 // the only rank of the node without a word on its end
	for n := range first.node.ranks {
		r := j.ranks[n]
		if r == nil || r.fall != nil {
			continue
		}
		if quiet >= 0 {
			return first
		}
		quiet = n
	}
	if first.n = quiet; quiet >= 0 {
		first.voices = j.ranks[quiet].voices
	}
	return first
}

// survived reports whether training went on after an event: at least two more steps.
func (j *job) survived(e *event) bool {
	if e.Step >= 0 {
		own := j.courses.of(e.text, j.ranks[e.rank])
		done := max(e.Step, own.last) // lines of other nodes may come late
		if own.reaches(e.Line, e.Step) || j.courses.of(e.text, nil).reaches(e.Line, done) {
			return true
		}
	}
	for _, m := range e.text.Lived {
		if m.Line > e.Line && e.Caught {
			return true
		}
	}
	if math.IsNaN(e.at) || !e.Timed {
		return false
	}
	const slack = 6 // seconds that clocks may differ
	return j.courses.lastSteps(j.steps) > e.at+slack
}

// more is how many steps after an event show that training went on.
const more = 2

// courses are how far voices got, by their text and rank; each is found once.
type courses struct {
	known map[voices]*reach
	steps *float64
}

// voices are those of a text that are of a rank, or all of them.
type voices struct {
	text *ranks.Text
	rank *rank
}

// A reach is how far voices got, the one that spoke last first.
type reach struct {
	last  int64   // step of the rank in all texts
	lines []int64 // on which a voice spoke last
	steps []int64 // from which a voice that spoke as late or later made [more] steps
}

// of are the voices of a text's last attempt, all or those of one rank.
func (c *courses) of(t *ranks.Text, r *rank) *reach {
	key := voices{t, r}
	if x := c.known[key]; x != nil {
		return x
	}
	x := &reach{last: -1}
	var list []*ranks.Voice
	if r == nil {
		list = slices.Clone(t.Voices)
	} else {
		for _, v := range r.voices {
			if x.last = max(x.last, v.Step); v.text == t {
				list = append(list, v.Voice)
			}
		}
	}
	list = slices.DeleteFunc(list, func(v *ranks.Voice) bool { return v.Attempt != len(t.Restarts) })
	sorts.StableBy(list, func(a, b *ranks.Voice) int { return cmp.Compare(b.Number, a.Number) })
	for _, v := range list {
		step := v.Step - more*stride(v)
		if n := len(x.steps); n > 0 {
			step = max(step, x.steps[n-1])
		}
		x.lines, x.steps = append(x.lines, v.Number), append(x.steps, step)
	}
	if c.known == nil {
		c.known = map[voices]*reach{}
	}
	c.known[key] = x
	return x
}

// reaches reports whether a voice that spoke behind a line made steps from one on.
func (x *reach) reaches(line, from int64) bool {
	n, _ := slices.BinarySearchFunc(x.lines, line, func(at, line int64) int { return cmp.Compare(line, at) })
	return n > 0 && x.steps[n-1] >= from
}

// lastSteps is the time since which so many steps were made, -Inf if there were fewer.
func (c *courses) lastSteps(steps []ranks.StepAt) float64 {
	if c.steps == nil {
		at, last, count := math.Inf(-1), int64(-1), 0
		for i := len(steps) - 1; i >= 0 && count < more; i-- {
			if s := steps[i].Step; s != last {
				last, count = s, count+1
			}
			if count == more {
				at = steps[i].At
			}
		}
		c.steps = &at
	}
	return *c.steps
}

// stride is how many steps lie between those that a voice names last.
func stride(v *ranks.Voice) int64 {
	const last = 8
	least := int64(1)
	steps := v.Steps[max(0, len(v.Steps)-last):]
	for i := 1; i < len(steps); i++ {
		if d := steps[i].Step - steps[i-1].Step; i == 1 || d < least {
			least = d
		}
	}
	return max(1, least)
}

// own are the ranks that failed by themselves, in the order of time.
func (j *job) own() (out []*rank) {
	for _, r := range j.order {
		if r.fall != nil && r.fall.Kind.Own() {
			out = append(out, r)
		}
	}
	sorts.StableBy(out, func(a, b *rank) int {
		x, y := a.fall.at, b.fall.at
		switch {
		case math.IsNaN(x) || math.IsNaN(y):
			if a.fall.text == b.fall.text {
				return cmp.Compare(a.fall.Line, b.fall.Line)
			}
			return sorts.Bool(math.IsNaN(x), math.IsNaN(y))
		}
		return cmp.Compare(x, y)
	})
	return out
}

// lostAt is when the first of the others lost a peer, +Inf if none did.
func (j *job) lostAt() float64 {
	at := math.Inf(1)
	for _, r := range j.order {
		if r.fall != nil && (r.fall.Kind == ranks.Lost || r.fall.Kind == ranks.Waited) && !math.IsNaN(r.fall.at) {
			at = min(at, r.fall.at)
		}
	}
	return at
}

// lived reports whether the job came to its end.
func (j *job) lived() bool {
	said, lastFail := false, math.Inf(-1)
	for _, t := range j.texts {
		for _, m := range t.Lived {
			if len(t.Restarts) == 0 || m.Line > t.Restarts[len(t.Restarts)-1].Line {
				said = true
			}
		}
	}
	failed := 0
	for _, r := range j.order {
		if f := r.fall; f != nil && f.Kind != ranks.Stopped && f.Kind != ranks.Driver && !f.Caught {
			failed++
			lastFail = max(lastFail, f.at)
		}
	}
	bad := 0
	for _, e := range j.exits {
		if e.Code != 0 {
			bad++
		}
	}
	if bad > 0 || failed > 0 && !said {
		return false
	}
	complete := j.planned > 0 && j.maxStep >= j.planned
	if said && failed == 0 && len(j.kills) == 0 {
		return true
	}
	return said && complete && bad == 0 && failed*4 < len(j.order) || complete && failed == 0 && len(j.kills) == 0 && len(j.ended) == 0
}
