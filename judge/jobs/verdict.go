package jobs

import (
	"fmt"
	"math"
	"slices"
	"time"

	"strandline/logs/ranks"
)

// verdict decides.
func (j *job) verdict() *Job {
	v := &Job{World: j.world, First: First{Rank: -1}, Cause: Unknown, Restart: NotKnown, Attempts: j.attempts, Missing: j.missing()}
	switch {
	case j.lived():
		v.Cause, v.Confidence, v.First.Confidence = None, 0.9, 0.9
		v.Restart, v.Missing = NotKnown, nil
		v.Why = "training came to its end"
	case j.hostKilled(v), j.failed(v), j.endedByScheduler(v), j.hung(v), j.exited(v):
	default:
		v.Confidence, v.First.Confidence = 0.2, 0.2
		v.Why = "no text shows a failure of its own"
		v.Followers = j.followers(nil)
	}
	if v.First.Rank >= 0 && v.First.Node == "" {
		v.First.Node = j.nodeOf(v.First.Rank).name()
	}
	return v
}

// followers counts the ranks that only followed: all but those that fell first, which have a text
// that does not show a failure of their own.
func (j *job) followers(first []int) (n int) {
	return max(0, j.world-len(first))
}

// missing are the ranks without a text, or whose text is cut.
func (j *job) missing() (out []int) {
	for n := range j.world {
		r := j.ranks[n]
		if r == nil || len(r.voices) == 0 && len(r.events) == 0 || j.cut(r) {
			out = append(out, n)
		}
	}
	if len(out)*2 > j.world { // ranks are not expected to write
		out = slices.DeleteFunc(out, func(n int) bool { r := j.ranks[n]; return r == nil || !j.cut(r) })
	}
	return out
}

// cut reports whether the text of a rank breaks off in a line.
func (j *job) cut(r *rank) bool {
	if r.fall != nil {
		return false
	}
	return slices.ContainsFunc(r.voices, func(v heard) bool { return v.text.Broken && v.Number == v.text.Lines })
}

// hostKilled judges a job of which a process was ended for the host's memory.
func (j *job) hostKilled(v *Job) bool {
	killed := map[int]bool{}
	var at *kill
	for i := range j.kills {
		k := &j.kills[i]
		if at == nil || k.at < at.at || at.node == nil && k.node != nil {
			at = k
		}
		if k.rank >= 0 {
			killed[k.rank] = true
		}
	}
	tasks := j.tasksAreNodes()
	host := ""
	for _, e := range j.exits {
		if e.Kind != ranks.Host || e.Task && e.OOM == nil && e.Exit.State == "" {
			continue
		}
		if host == "" {
			host = e.Host
		}
		if !e.Task || !tasks {
			for _, r := range e.Ranks {
				killed[r] = true
			}
		}
	}
	if at == nil && host == "" {
		return false
	}
	own := j.own()
	if len(own) > 0 && own[0].fall.Kind != ranks.Host && (at == nil || own[0].fall.at < at.at-slackSeconds) {
		return false
	}
	if len(own) > 0 && own[0].fall.Kind == ranks.RanOut && len(killed) == 0 {
		return false
	}
	v.Cause, v.Confidence = HostMemory, 0.95
	v.Why = "the host's memory ran out"
	if at != nil {
		v.Text, v.Line, v.Quote = at.text.Name, at.Line, at.Quote
	}
	var n *node
	if at != nil && at.node != nil {
		n = at.node
	} else if host != "" {
		n = j.at(host)
	}
	j.firstKilled(v, n, killed)
	v.Restart = Helps
	if j.whileSaving() {
		v.Restart, v.Why = Repeats, "the host's memory ran out while a checkpoint was written"
	}
	return true
}

const slackSeconds = 6 // that clocks of nodes may differ

// firstKilled finds which rank, or which node, was killed.
func (j *job) firstKilled(v *Job, n *node, killed map[int]bool) {
	if len(killed) == 0 {
		for r := range j.silent(n) {
			killed[r] = true
		}
	}
	var list []int
	for r := range killed {
		list = append(list, r)
	}
	slices.Sort(list)
	whole := len(list) > 1
	switch {
	case len(list) == 1:
		v.First.Rank, v.First.Confidence = list[0], 0.9
		if n != nil {
			v.First.Node = n.name()
		}
	case n != nil:
		v.First.Node, v.First.Confidence = n.name(), 0.85
		if !whole {
			v.First.Confidence = 0.6
		}
	default:
		v.First.Confidence = 0.3
	}
	v.Followers = j.followers(list)
}

// silent are the ranks of a node, or of the job, that end without a word, or by signal 9.
func (j *job) silent(n *node) map[int]bool {
	killed, quiet := map[int]bool{}, map[int]bool{}
	for _, r := range j.order {
		if n != nil && j.nodeOf(r.n) != n {
			continue
		}
		switch {
		case r.exit != nil && r.exit.Code == -9 && !(r.exit.After && r.exit.Kind != ranks.Host):
			killed[r.n] = true
		case r.fall == nil && (r.exit == nil || r.exit.Code == -9):
			quiet[r.n] = true
		}
	}
	for _, e := range j.exits {
		if !e.Task && e.Code == -9 && len(e.Ranks) == 1 && (n == nil || j.nodeOf(e.Ranks[0]) == n) {
			killed[e.Ranks[0]] = true
		}
	}
	if len(killed) > 0 {
		return killed
	}
	return quiet
}

// whileSaving reports whether the job was writing a checkpoint when it ended.
func (j *job) whileSaving() bool {
	for _, t := range j.texts {
		if len(t.Saving) == 0 || len(t.Voices) == 0 {
			continue
		}
		last := t.Saving[len(t.Saving)-1]
		step := int64(-1)
		for _, v := range t.Voices {
			if v.Attempt == len(t.Restarts) {
				step = max(step, v.Step)
			}
		}
		if step >= 0 && last.Step >= 0 && step <= last.Step && finished.FindString(last.Quote) == "" {
			return true
		}
	}
	return false
}

// failed judges a job of which a rank states its own failure.
func (j *job) failed(v *Job) bool {
	own := j.own()
	if r := j.stray(); len(own) == 0 && r != nil {
		own = []*rank{r}
	}
	if len(own) == 0 {
		return false
	}
	ends := j.earlier(own[0])
	if ends >= 0 {
		v.First.Rank, v.First.Confidence = ends, 0.4
		v.Confidence, v.Cause = 0.3, Unknown
		v.Followers = j.followers([]int{ends})
		v.Why = "a launcher names a rank that fell before those whose texts are here"
		return true
	}
	var out []*rank
	for _, r := range own {
		if r.fall.Kind == ranks.RanOut {
			out = append(out, r)
		}
	}
	first := own[0]
	v.Text, v.Line, v.Quote, v.Site = first.fall.text.Name, first.fall.Line, first.fall.Quote, first.fall.Site
	if first.fall.Kind == ranks.RanOut && j.alike(out) {
		v.Cause, v.Confidence, v.Restart = TooLarge, 0.9, Repeats
		v.First.Confidence = 0.5
		v.Why = "all ranks run out of memory alike at the beginning: the job does not fit"
		list := []int{}
		for _, r := range out {
			list = append(list, r.n)
		}
		v.Followers = j.followers(list)
		return true
	}
	v.First.Rank, v.First.Confidence = first.n, j.sure(own)
	if v.Followers = j.followers([]int{first.n}); first.n < 0 {
		v.First.Node = first.node.name()
	}
	switch first.fall.Kind {
	case ranks.RanOut:
		j.outOfMemory(v, first, out)
	case ranks.Host:
		v.Cause, v.Confidence, v.Restart = HostMemory, 0.8, NotKnown
		v.Why = "the process was refused memory of the host"
	default:
		v.Cause, v.Confidence, v.Restart = NotMemory, 0.9, NotKnown
		v.Why = "it failed for another reason than memory"
		switch first.fall.Kind {
		case ranks.Disk:
			v.Restart, v.Why, v.Fix = Repeats, "no space was left on the disk", "free space where it writes: df -h"
		case ranks.Device:
			v.Why, v.Fix = "its GPU failed", "take the GPU out of service: nvidia-smi -q -d ECC,ROW_REMAPPER shows its errors, dmesg its Xid"
		}
	}
	return true
}

// sure is how sure it is that the first of some ranks fell first.
func (j *job) sure(own []*rank) float64 {
	if len(own) == 1 {
		return 0.92
	}
	a, b := own[0].fall, own[1].fall
	switch d := b.at - a.at; {
	case math.IsNaN(d):
		if a.text == b.text {
			return 0.7
		}
		return 0.4
	case d > 2 || own[0].node != nil && own[0].node == own[1].node && d > 0.05:
		return 0.85
	case d > 0.05:
		return 0.6
	}
	return 0.45
}

// earlier is a rank without a text of its own end that a launcher saw fail before another, -1
// if there is none.
func (j *job) earlier(first *rank) int {
	if math.IsNaN(first.fall.at) || j.lostAt() > first.fall.at-20 {
		return -1
	}
	tasks := j.tasksAreNodes()
	for _, e := range j.exits {
		if len(e.Ranks) == 1 && !e.After && e.Code != 0 && e.Ranks[0] != first.n && (!e.Task || !tasks) {
			if r := j.ranks[e.Ranks[0]]; r == nil || len(r.events) == 0 {
				return e.Ranks[0]
			}
		}
	}
	return -1
}

// endedByScheduler judges a job that a scheduler ended.
func (j *job) endedByScheduler(v *Job) bool {
	if len(j.ended) == 0 {
		return false
	}
	preempted := false
	for _, t := range j.texts {
		for _, m := range t.Ended {
			if preemption.MatchString(m.Quote) {
				preempted = true
			}
		}
	}
	lost := 0
	for _, r := range j.order {
		if r.fall != nil && (r.fall.Kind == ranks.Lost || r.fall.Kind == ranks.Waited) {
			lost++
		}
	}
	aborted := slices.ContainsFunc(j.texts, func(t *ranks.Text) bool { return t.Aborted })
	if !preempted && (lost > 0 || len(v.Missing) > 0 || aborted) {
		return false
	}
	for _, e := range j.exits {
		if !preempted && !e.After && e.Code != 0 && e.Code != -15 {
			return false
		}
	}
	v.Cause, v.Confidence, v.Restart = NotMemory, 0.9, Helps
	v.First.Confidence = 0.8
	v.Why, v.Fix = "a scheduler ended the job", "resume from the last checkpoint; ask for more time where a time limit ended it"
	v.Followers = j.followers(nil)
	return true
}

// hung judges a job in which all wait for a rank.
func (j *job) hung(v *Job) bool {
	waited, seq := map[int]bool{}, int64(-1)
	lost := 0
	for _, r := range j.order {
		for _, e := range r.events {
			if e.Kind == ranks.Waited {
				waited[r.n] = true
				if e.Seq >= 0 && (seq < 0 || e.Seq < seq) {
					seq = e.Seq
				}
			}
		}
		if r.fall != nil && r.fall.Kind == ranks.Lost {
			lost++
		}
	}
	for n := range j.recorded.waiting {
		waited[n] = true
	}
	if len(waited) == 0 || lost > len(waited) || len(j.deadExits()) > 0 {
		return false
	}
	laggards := j.laggards(seq)
	var quiet, absent []int
	for n := range j.world {
		r := j.ranks[n]
		switch {
		case waited[n]:
		case j.recorded.dumped[n]:
			quiet = append(quiet, n)
		case r == nil || len(r.voices) == 0 && len(r.events) == 0 || j.cut(r):
			absent = append(absent, n)
		default:
			quiet = append(quiet, n)
		}
	}
	v.Followers = j.world - 1
	stuck, sure := -1, 0.0
	recorded := j.recorded.laggards
	switch slow := j.slow(); {
	case len(recorded) == 1:
		stuck, sure = recorded[0], 0.95
	case len(laggards) == 1:
		stuck, sure = laggards[0], 0.9
	case len(quiet) == 1 && len(absent) == 0:
		stuck, sure = quiet[0], 0.85
	case len(slow) == 1 && !waited[slow[0]]:
		stuck, sure = slow[0], 0.8
	case len(absent) == 1 && len(quiet) == 0:
		v.First.Rank, v.First.Confidence = absent[0], 0.4
		v.Cause, v.Confidence = Unknown, 0.3
		v.Why = "the others waited for a rank whose text is missing"
		return true
	}
	if stuck < 0 && len(v.Missing) > 0 {
		return j.guessMissing(v)
	}
	if stuck < 0 {
		v.Cause, v.Confidence, v.First.Confidence = NotMemory, 0.4, 0.3
		v.Why = "all ranks waited for one that the texts do not name"
		return true
	}
	v.First.Rank, v.First.Confidence = stuck, sure
	v.Cause, v.Confidence, v.Restart = NotMemory, sure, NotKnown
	v.Why, v.Fix = "all others waited for it in a collective that it never began", "look where it hangs next time: py-spy dump --pid PID on its node"
	if j.recorded.seq >= 0 {
		since := ""
		if j.recorded.since > 0 {
			since = time.Unix(0, j.recorded.since).UTC().Format(" since 15:04:05 UTC")
		}
		v.Why = fmt.Sprintf("the others waited for it in collective %d%s, which it never enqueued, by the flight recorder", j.recorded.seq, since)
	}
	return true
}

// slow are the ranks that state that something takes long.
func (j *job) slow() (out []int) {
	for _, r := range j.order {
		if slices.ContainsFunc(r.events, func(e event) bool { return e.Kind == ranks.Slow }) {
			out = append(out, r.n)
		}
	}
	return out
}

// behind are the ranks whose last collective comes before the one that the others wait in.
func (j *job) laggards(seq int64) (out []int) {
	for _, r := range j.order {
		last := int64(-1)
		for _, e := range r.events {
			if e.Enqueue >= 0 {
				last = max(last, e.Enqueue)
			}
		}
		if last >= 0 && seq >= 0 && last < seq {
			out = append(out, r.n)
		}
	}
	return out
}

// deadExits are ranks that a launcher saw end by themselves, without a text that says why.
func (j *job) deadExits() (out []*exit) {
	tasks := j.tasksAreNodes()
	for i := range j.exits {
		e := &j.exits[i]
		if len(e.Ranks) != 1 || e.Code == 0 || e.Code == -15 || e.Code == -6 || e.Task && tasks || e.After && e.Kind != ranks.Host {
			continue
		}
		r := j.ranks[e.Ranks[0]]
		if r != nil && r.fall != nil && r.fall.Kind != ranks.Signaled {
			continue
		}
		out = append(out, e)
	}
	return out
}

// exited judges a job by what launchers state alone.
func (j *job) exited(v *Job) bool {
	dead := j.deadExits()
	if len(dead) == 0 {
		return j.guessMissing(v)
	}
	first := dead[0]
	for _, e := range dead[1:] {
		if e.at < first.at {
			first = e
		}
	}
	v.First.Rank, v.First.Confidence = first.Ranks[0], 0.45
	v.Text, v.Line = first.text.Name, first.Line
	v.Followers = j.followers(first.Ranks)
	switch {
	case first.Exit.Kind == ranks.RanOut:
		v.Cause, v.Confidence = Unknown, 0.3
		v.Why = "a launcher saw it run out of memory, and its own text is missing"
	case first.Exit.Kind.Own():
		v.Cause, v.Confidence, v.First.Confidence = NotMemory, 0.7, 0.8
		v.Why, v.Quote = "it failed for another reason than memory", first.Message
	case first.Code == -9:
		v.Cause, v.Confidence, v.First.Confidence = HostMemory, 0.6, 0.75
		v.Why = "it was ended by signal 9, which a host without memory sends"
		v.Restart = NotKnown
	default:
		v.Cause, v.Confidence = Unknown, 0.2
		v.Why = "a launcher saw it end, and its text does not say why"
	}
	return true
}

// guessMissing names the one rank whose text is missing, where all others followed.
func (j *job) guessMissing(v *Job) bool {
	if len(v.Missing) == 0 {
		return false
	}
	if v.First.Confidence = 0.2; len(v.Missing) == 1 {
		v.First.Rank, v.First.Confidence = v.Missing[0], 0.4
	}
	v.Confidence = 0.2
	v.Followers = j.followers(v.Missing)
	v.Why = "its text is missing, and all others only followed"
	return true
}
