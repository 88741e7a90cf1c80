package jobs

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"strandline/logs/ranks"
)

// channel is the voices of a text behind one prefix of a launcher.
type channel struct {
	text   *ranks.Text
	voices []*ranks.Voice
	rank   int // -1: it has several, or none is known
	node   *node
	whole  bool // its voices are of several nodes
}

// identify finds out which voices are which rank, and on which node they are.
func (j *job) identify() {
	j.lastAttempt()
	j.lastRun()
	var channels []*channel
	for _, t := range j.texts {
		channels = append(channels, j.channels(t)...)
	}
	j.siblings(channels)
	for _, c := range channels {
		j.place(c)
	}
	j.sizeWorld()
	j.statedHosts()
	for _, c := range channels {
		j.assign(c)
	}
	j.addNumbers()
}

var attemptIn = regexp.MustCompile(`(?:^|/)attempt_(\d+)(?:/|$)`)

// lastAttempt leaves out what belongs to earlier attempts.
func (j *job) lastAttempt() {
	last := 0
	for _, t := range j.texts {
		if n := attemptOf(t); n > last {
			last = n
		}
	}
	j.attempts = last + 1
	j.texts = slices.DeleteFunc(j.texts, func(t *ranks.Text) bool { n := attemptOf(t); return n >= 0 && n < last })
	for _, t := range j.texts {
		j.attempts = max(j.attempts, len(t.Restarts)+1)
		for _, v := range t.Voices {
			j.attempts = max(j.attempts, v.Again+1)
		}
	}
}

// attemptOf is the attempt that a folder is named after, -1 if there is none.
func attemptOf(t *ranks.Text) int {
	if m := attemptIn.FindStringSubmatch(t.Name); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return -1
}

// channels groups the voices of a text by launcher's prefix, and finds the rank of each.
func (j *job) channels(t *ranks.Text) (out []*channel) {
	by := map[any]*channel{}
	for _, v := range t.Voices { // the identity may be stated in an earlier attempt
		key := v.Speaker.Outer()
		c := by[key]
		if c == nil {
			c = &channel{text: t, rank: -1}
			by[key] = c
			out = append(out, c)
		}
		c.voices = append(c.voices, v)
	}
	bases := map[string]*tally{} // by host, of tags that are local
	equal, unlike := 0, 0
	labels, highest := 0, 0 // numbers without a word
	for _, c := range out {
		s := c.voices[0].Speaker
		if s.Tag < 0 && s.Label >= 0 {
			labels, highest = labels+1, max(highest, s.Label)
		}
		number := max(s.Tag, s.Label)
		r, single := c.only()
		if single {
			c.rank = r
		}
		if number >= 0 && single {
			if r == number {
				equal++
			} else {
				unlike++
				add(bases, s.Host, r-number)
			}
		}
	}
	const maxPerLabel = 8 // of a job of which not every rank wrote; "4242: python" is how pmap begins
	counts := labels > 1 && highest < maxPerLabel*labels
	for _, c := range out {
		s := c.voices[0].Speaker
		number := max(s.Tag, s.Label)
		if c.rank >= 0 || number < 0 || c.several() {
			continue
		}
		switch {
		case unlike > 0:
			if b := bases[s.Host]; b != nil {
				c.rank = b.most + number
			}
		case equal > 0 || s.Tag < 0 && counts || s.Word == "rank":
			c.rank = number
		}
	}
	return out
}

// most is the key that counts most.
func most(of map[int]int) (key int, ok bool) {
	best := 0
	for _, k := range slices.Sorted(maps.Keys(of)) {
		if of[k] > best {
			key, best, ok = k, of[k], true
		}
	}
	return key, ok
}

// A tally counts numbers, and has the one that counts most, the least of several.
type tally struct {
	counts map[int]int
	most   int
}

// add counts a number for a key.
func add[K comparable](to map[K]*tally, key K, n int) {
	t := to[key]
	if t == nil {
		t = &tally{counts: map[int]int{}, most: n}
		to[key] = t
	}
	t.counts[n]++
	if c, best := t.counts[n], t.counts[t.most]; c > best || c == best && n < t.most {
		t.most = n
	}
}

// named is how often the lines of a channel name each rank as their writer.
func (c *channel) named() (prefixed, all map[int]int) {
	prefixed, all = map[int]int{}, map[int]int{}
	for _, v := range c.voices {
		if v.Rank >= 0 {
			prefixed[v.Rank] += int(v.Lines)
		}
		for r, n := range v.Ranks {
			all[r] += n
		}
	}
	return prefixed, all
}

// only is the rank of a channel, if it has one.
func (c *channel) only() (int, bool) {
	prefixed, all := c.named()
	switch len(all) {
	case 0:
		return -1, false
	case 1:
		r, _ := most(all)
		return r, true
	}
	if c.several() {
		return -1, false
	}
	if len(prefixed) == 1 {
		r, _ := most(prefixed)
		return r, true
	}
	return most(all)
}

// several reports whether the voices of a channel are of several ranks.
func (c *channel) several() bool {
	prefixed, all := c.named()
	if len(prefixed) > 1 {
		return true
	}
	top, sum, often := 0, 0, 0
	for _, n := range all {
		top, sum = max(top, n), sum+n
		if n > 1 {
			often++
		}
	}
	if c.voices[0].PID > 0 { // a process of Ray
		return false
	}
	return len(all) > 1 && (often > 1 && top*3 < sum*2 || len(all) > 2 && top*2 < sum)
}

var numbers = regexp.MustCompile(`\d+`)

// siblings gives a rank to files that do not state it: that of the file beside it of the same
// process, or the number in its name, where those of other files are their ranks.
func (j *job) siblings(channels []*channel) {
	files := map[*ranks.Text][]*channel{}
	for _, c := range channels {
		files[c.text] = append(files[c.text], c)
	}
	byDir, byStem := map[string]int{}, map[string]int{}
	agree := map[int]int{} // by the place of the number from the end
	base := map[string]*tally{}
	single := func(t *ranks.Text) (*channel, bool) {
		cs := files[t]
		return cs[0], len(cs) == 1 && cs[0].voices[0].Tag < 0 && cs[0].voices[0].Label < 0 && cs[0].voices[0].PID == 0
	}
	for _, t := range j.texts {
		if len(files[t]) == 0 {
			continue
		}
		c, ok := single(t)
		if !ok || c.rank < 0 {
			continue
		}
		if local, err := strconv.Atoi(path.Base(path.Dir(t.Name))); err == nil {
			byDir[path.Dir(t.Name)] = c.rank
			add(base, hostDir(t.Name), c.rank-local)
		}
		byStem[stem(t.Name)] = c.rank
		all := numbers.FindAllString(path.Base(t.Name), -1)
		for i := range all {
			if x, err := strconv.Atoi(all[len(all)-1-i]); err == nil && x == c.rank {
				agree[i]++
			}
		}
	}
	place, sure := most(agree)
	for _, t := range j.texts {
		if len(files[t]) == 0 {
			continue
		}
		c, ok := single(t)
		if !ok || c.rank >= 0 || c.several() || kernelLike(t) {
			continue
		}
		if r, ok := byStem[stem(t.Name)]; ok {
			c.rank = r
			continue
		}
		if local, err := strconv.Atoi(path.Base(path.Dir(t.Name))); err == nil {
			if r, ok := byDir[path.Dir(t.Name)]; ok {
				c.rank = r
			} else if b := base[hostDir(t.Name)]; b != nil {
				c.rank = b.most + local
			}
			continue
		}
		all := numbers.FindAllString(path.Base(t.Name), -1)
		if sure && agree[place] > 1 && place < len(all) {
			if x, err := strconv.Atoi(all[len(all)-1-place]); err == nil && x < 1<<16 && len(t.Exits) == 0 {
				c.rank = x
			}
		}
	}
}

// hostDir is the folder of a host in a log directory of torchrun: HOST/RUN/attempt_0/3/stderr.log.
func hostDir(name string) string { return path.Dir(path.Dir(path.Dir(name))) }

// stem is a name without what tells the streams of a process apart.
func stem(name string) string {
	base := strings.TrimSuffix(path.Base(name), path.Ext(name))
	for _, s := range []string{"stderr", "stdout", "err", "out"} {
		base = strings.TrimRight(strings.TrimSuffix(base, s), ".-_")
	}
	return path.Dir(name) + "/" + base
}

// kernelLike reports whether a text is not of a process: of the kernel, or a launcher.
func kernelLike(t *ranks.Text) bool {
	for _, v := range t.Voices {
		if len(v.Ranks) > 0 || v.Step >= 0 {
			return false
		}
	}
	return len(t.Kills) > 0 || len(t.Exits) > 0 || len(t.Ended) > 0
}

// sizeWorld finds the number of ranks.
func (j *job) sizeWorld() {
	stated := map[int]int{}
	for _, t := range j.texts {
		for n, count := range t.World {
			stated[n] += count
		}
		l := &j.layout
		l.Tensor, l.Pipeline, l.Expert = max(l.Tensor, t.Layout.Tensor), max(l.Pipeline, t.Layout.Pipeline), max(l.Expert, t.Layout.Expert)
		j.planned = max(j.planned, t.Planned)
	}
	j.world, _ = most(stated)
	j.stated = j.world
}

// statedHosts takes from launchers which ranks are on which host.
func (j *job) statedHosts() {
	tasksAreNodes := j.tasksAreNodes()
	for _, t := range j.texts {
		for _, e := range t.Exits {
			if e.Host == "" || e.Task && tasksAreNodes {
				continue
			}
			n := j.at(e.Host)
			for _, r := range e.Ranks {
				n.ranks[r] = true
				if e.Local >= 0 {
					n.base = r - e.Local
				}
			}
		}
	}
}

// tasksAreNodes reports whether the tasks of Slurm are not ranks: one a node.
func (j *job) tasksAreNodes() bool {
	byHost, highest, count := map[string]map[int]bool{}, 0, 0
	for _, t := range j.texts {
		for _, e := range t.Exits {
			if !e.Task {
				continue
			}
			if byHost[e.Host] == nil {
				byHost[e.Host] = map[int]bool{}
			}
			for _, r := range e.Ranks {
				byHost[e.Host][r] = true
				highest = max(highest, r)
				count++
			}
		}
	}
	if count == 0 {
		return false
	}
	for _, tasks := range byHost {
		if len(tasks) > 1 {
			return false
		}
	}
	return j.world > 1 && highest < j.world/2 && j.elasticSeen() || j.elasticSeen()
}

// elasticSeen reports whether torchrun started the ranks, so that a task of Slurm is a node.
func (j *job) elasticSeen() bool {
	for _, t := range j.texts {
		if attemptOf(t) >= 0 {
			return true
		}
		for _, e := range t.Exits {
			if e.Local >= 0 {
				return true
			}
		}
		for _, v := range t.Voices {
			if v.Speaker.Tag >= 0 && v.Speaker.Word != "rank" {
				return true
			}
		}
	}
	return false
}

// get is a rank, made if need be.
func (j *job) get(n int) *rank {
	r := j.ranks[n]
	if r == nil {
		r = &rank{n: n, pids: map[int]bool{}}
		j.ranks[n] = r
	}
	return r
}

const maxRank = 1 << 17

// assign gives the voices of a channel to its ranks.
func (j *job) assign(c *channel) {
	counts := func(v *ranks.Voice) bool { return v.Attempt >= len(c.text.Restarts) } // of the last attempt
	if c.node == nil {
		c.node = j.nodeOfText(c)
	}
	if n := c.node; n != nil && n.base < 0 {
		bases := map[int]int{}
		for _, v := range c.voices {
			for base, count := range v.Bases {
				bases[base] += count
			}
		}
		if base, ok := most(bases); ok {
			n.base = base
		}
	}
	for _, v := range c.voices {
		n := c.rank
		if n < 0 {
			if r, ok := most(v.Ranks); ok && (v.Rank >= 0 || len(v.Ranks) == 1) {
				n = r
			}
		}
		if n >= maxRank || j.world > 1 && n >= j.world {
			n = -1
		}
		if c.node != nil {
			if s := v.Speaker; n >= 0 && s.Tag >= 0 && s.Tag != n && c.node.base < 0 {
				c.node.base = n - s.Tag
			}
		}
		if n < 0 {
			if counts(v) {
				for _, e := range v.Events {
					j.loose = append(j.loose, loose{event{e, c.text, e.At, -1}, c.node, deviceOf(e)})
				}
			}
			continue
		}
		r := j.get(n)
		for pid := range v.PIDs {
			r.pids[pid] = true
		}
		if v.PID > 0 {
			r.pids[v.PID] = true
		}
		if node := c.node; node != nil && (c.rank >= 0 || v.Host != "" || !c.whole) {
			if v.Host != "" {
				node = j.at(v.Host)
			}
			r.node = node
			node.ranks[n] = true
		}
		if !counts(v) {
			continue
		}
		r.voices = append(r.voices, heard{v, c.text})
		for _, e := range v.Events {
			r.events = append(r.events, event{e, c.text, e.At, n})
		}
	}
}

// deviceOf is the device that a message names, -1 if it does not.
func deviceOf(e ranks.Event) int {
	if e.OOM != nil && e.OOM.Device != nil {
		return *e.OOM.Device
	}
	return -1
}

// addNumbers sorts the ranks and completes their nodes.
func (j *job) addNumbers() {
	for _, t := range j.texts {
		n := j.unnamed[t]
		if n == nil || n.base < 0 {
			continue
		}
		for local, pid := range t.Children {
			if r := j.ranks[n.base+local]; r != nil {
				r.pids[pid] = true
			}
		}
	}
	for _, n := range j.nodes {
		for r := range n.ranks {
			if x := j.ranks[r]; x != nil && x.node == nil {
				x.node = n
			}
			if n.base < 0 && j.world >= 8 && (r < 8 || len(n.ranks) > 1) {
				n.base = r / 8 * 8
			}
		}
	}
	highest := 0
	for n := range j.ranks {
		highest = max(highest, n)
	}
	j.world = max(j.world, highest+1)
	for _, n := range slices.Sorted(maps.Keys(j.ranks)) {
		j.order = append(j.order, j.ranks[n])
	}
	for _, r := range j.order {
		for _, v := range r.voices {
			j.maxStep = max(j.maxStep, v.Step)
		}
	}
}
