package pauses

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/units"
)

// A Moment is what a process has of a device at one time. Sizes are bytes, nil if unknown.
type Moment struct {
	Tags map[string]Share
	// Tensors, Cache and Pools are PyTorch's, in no region.
	Tensors, Cache, Pools *int64
	Other                 *int64 // in no tag, and not PyTorch's: contexts, NCCL

	again int // samples that were added to it
}

// A Share is what a tag has of a device.
type Share struct {
	Bytes int64 // also those that are paused
	Held  int64
}

// A Course is what a process has of a device from pause to pause.
type Course struct {
	Name    string // such as "rank 2"
	Device  int    // as CUDA counts in the process
	Moments []Moment
	Sampled bool // a short pause may be between two moments
}

// The bounds of what is reported, in bytes and cycles.
const (
	minShare  = 64 << 20 // that stays
	minGrowth = 1 << 20  // of each cycle
	minSeen   = 3        // of samples
)

// MinCycles is from how many cycles on growth is judged.
const MinCycles = 5

// Cycles is how often memory was paused.
func (c *Course) Cycles() int { return cyclesIn(pauses(c.spells())) }

func cyclesIn(pauses map[string][]int) (n int) {
	for _, at := range pauses {
		n = max(n, len(at))
	}
	return n
}

// A spell is a time in which the same tags are active.
type spell struct {
	active, paused []string
	held           int64
	moments        []*Moment
}

func (c *Course) spells() (out []spell) {
	for i := range c.Moments {
		m := &c.Moments[i]
		s := spell{moments: []*Moment{m}}
		for _, name := range slices.Sorted(maps.Keys(m.Tags)) {
			switch share := m.Tags[name]; {
			case share.Held > 0:
				s.active, s.held = append(s.active, name), s.held+share.Held
			case share.Bytes > 0:
				s.paused = append(s.paused, name)
			}
		}
		if n := len(out); n > 0 && slices.Equal(out[n-1].active, s.active) && slices.Equal(out[n-1].paused, s.paused) {
			out[n-1].moments = append(out[n-1].moments, m)
			continue
		}
		out = append(out, s)
	}
	return out
}

// pauses are the spells in which each tag begins to be paused.
func pauses(spells []spell) map[string][]int {
	out := map[string][]int{}
	for i := range spells {
		for _, tag := range spells[i].paused {
			if i == 0 || !slices.Contains(spells[i-1].paused, tag) {
				out[tag] = append(out[tag], i)
			}
		}
	}
	return out
}

// A stay is memory that a process keeps while other memory is paused.
type stay struct {
	course *Course
	pool   finding.Pool
	tag    string
	paused []string // meanwhile
	bytes  int64
	cycles int // in which it stays, of so many
	of     int
	how    manner
}

// A manner is how it is known that memory should not stay.
type manner int

const (
	always    manner = iota // no process ever gives it back
	others                  // other ranks give it back, or have none
	sometimes               // other cycles give it back
	since                   // it came in one cycle, and stays
	growing                 // each cycle leaves more
)

// A run is a course, taken apart.
type run struct {
	*Course
	spells []spell
	pauses map[string][]int // spells in which each tag begins to be paused
	deep   *deep            // nil if nothing is ever paused, or not for long enough to be seen
}

func newRun(c *Course) run {
	spells := c.spells()
	return run{c, spells, pauses(spells), c.deepest(spells)}
}

// Stays finds what stays on devices while other memory of the processes is paused: tags that stay awake,
// and memory in no region. The courses are of one job.
func Stays(courses []Course) []finding.Finding {
	runs := make([]run, len(courses))
	for i := range courses {
		runs[i] = newRun(&courses[i])
	}
	var all []stay
	for i := range runs {
		all = append(all, awake(runs, i)...)
	}
	all = append(all, residues(runs)...)
	return grouped(all, len(courses))
}

// awake finds the tags of a process that stay active in cycles in which others are paused.
func awake(runs []run, at int) (out []stay) {
	c, spells, of := runs[at].Course, runs[at].spells, runs[at].pauses
	if len(of) == 0 {
		return sleepless(runs, at)
	}
	byName := slices.Sorted(maps.Keys(of))
	leader := slices.MaxFunc(byName, func(a, b string) int { return len(of[a]) - len(of[b]) })
	for _, tag := range tagsIn(spells) {
		if tag == leader {
			continue
		}
		s := stay{course: c, pool: finding.TagPool, tag: tag}
		windows := of[leader]
		for i, from := range windows {
			to := len(spells)
			if i+1 < len(windows) {
				to = windows[i+1]
			} else if len(windows) > 1 {
				break // not over yet
			}
			window := spells[from:to]
			s.of++
			if held, paused := heldThrough(window, tag); held > 0 {
				s.cycles++
				s.bytes, s.paused = max(s.bytes, held), paused
			}
		}
		switch {
		case s.cycles == 0 || c.Sampled && (s.cycles < s.of || s.of < minSeen):
			continue
		case s.cycles == s.of && pausedBeside(runs, at, tag, s.paused):
			s.how = others
		case s.of == 1:
			continue // perhaps its turn comes later
		case s.cycles < s.of:
			s.how = sometimes
		}
		out = append(out, s)
	}
	return out
}

// sleepless finds the tags of a process that pauses nothing while all others do.
func sleepless(runs []run, at int) (out []stay) {
	c := runs[at].Course
	if len(c.Moments) == 0 || len(runs) == 1 {
		return nil
	}
	last := &c.Moments[len(c.Moments)-1]
	for i := range runs {
		if n := cyclesIn(runs[i].pauses); i != at && (n == 0 || c.Sampled && n < minSeen) {
			return nil
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(last.Tags)) {
		for i := range runs {
			if d := runs[i].deep; i != at && d != nil && slices.Contains(d.paused, tag) {
				n := cyclesIn(runs[i].pauses)
				out = append(out, stay{course: c, pool: finding.TagPool, tag: tag, paused: d.paused, bytes: last.Tags[tag].Held, cycles: n, of: n, how: others})
				break
			}
		}
	}
	return out
}

func tagsIn(spells []spell) []string {
	seen := map[string]bool{}
	for i := range spells {
		for _, names := range [][]string{spells[i].active, spells[i].paused} {
			for _, name := range names {
				seen[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// heldThrough is what a tag holds all through a cycle, and what is paused at its first spell.
func heldThrough(window []spell, tag string) (held int64, paused []string) {
	for i := range window {
		if !slices.Contains(window[i].active, tag) {
			return 0, nil
		}
	}
	deepest := slices.MinFunc(window, func(a, b spell) int { return cmp.Compare(a.held, b.held) })
	return deepest.moments[0].Tags[tag].Held, deepest.paused
}

// pausedBeside reports whether another process pauses a tag together with these.
func pausedBeside(runs []run, at int, tag string, with []string) bool {
	for i := range runs {
		for _, s := range runs[i].spells {
			if i != at && slices.Contains(s.paused, tag) && !slices.ContainsFunc(with, func(name string) bool { return !slices.Contains(s.paused, name) }) {
				return true
			}
		}
	}
	return false
}

// parts are what of a moment is in no region.
var parts = []struct {
	pool finding.Pool
	of   func(m *Moment) *int64
}{
	{finding.TensorPool, func(m *Moment) *int64 { return m.Tensors }},
	{finding.CachePool, func(m *Moment) *int64 { return m.Cache }},
	{finding.GraphPool, func(m *Moment) *int64 { return m.Pools }},
	{finding.DriverPool, func(m *Moment) *int64 { return m.Other }},
}

// A deep is what a process has in no region while least of it is active.
type deep struct {
	paused []string
	levels map[finding.Pool][]int64 // just after the pause, of each cycle
	ends   map[finding.Pool][]int64 // just before the resume
	sizes  map[string][]int64       // of tags
}

// deepest looks at a process while least of its memory is active; nil if nothing is ever paused.
func (c *Course) deepest(spells []spell) *deep {
	// Two counts of one sample are of two moments: a single sample tells nothing of what is in neither.
	spells = slices.DeleteFunc(slices.Clone(spells), func(s spell) bool {
		return len(s.paused) == 0 || c.Sampled && len(s.moments) == 1 && s.moments[0].again == 0
	})
	if len(spells) == 0 {
		return nil
	}
	least := slices.MinFunc(spells, func(a, b spell) int { return len(a.active) - len(b.active) })
	out := &deep{paused: least.paused, levels: map[finding.Pool][]int64{}, ends: map[finding.Pool][]int64{}, sizes: map[string][]int64{}}
	for i := range spells {
		s := &spells[i]
		if !slices.Equal(s.active, least.active) {
			continue
		}
		for _, part := range parts {
			first, last := part.of(s.moments[0]), part.of(s.moments[len(s.moments)-1])
			if c.Sampled {
				for _, m := range s.moments {
					if n := part.of(m); first == nil || n != nil && *n < *first {
						first = n
					}
				}
				last = first
			}
			if first != nil {
				out.levels[part.pool] = append(out.levels[part.pool], *first)
			}
			if last != nil {
				out.ends[part.pool] = append(out.ends[part.pool], *last)
			}
		}
		for name, share := range s.moments[0].Tags {
			out.sizes[name] = append(out.sizes[name], share.Bytes)
		}
	}
	return out
}

// residues finds what processes keep in no region, and tags that grow.
func residues(runs []run) (out []stay) {
	for i := range runs {
		d := runs[i].deep
		if d == nil {
			continue
		}
		for _, part := range parts {
			s := stay{course: runs[i].Course, pool: part.pool, paused: d.paused, of: len(d.levels[part.pool])}
			if s.rises(d.levels[part.pool]) || s.stands(d) || s.exceeds(runs, i) {
				out = append(out, s)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.sizes)) {
			s := stay{course: runs[i].Course, pool: finding.TagPool, tag: name, paused: d.paused, of: len(d.sizes[name])}
			if s.rises(d.sizes[name]) {
				out = append(out, s)
			}
		}
	}
	return out
}

// rises reports whether each cycle leaves more, or one left something that stays. The first is
// left out: what is made once is made there.
func (s *stay) rises(levels []int64) bool {
	if len(levels) < MinCycles {
		return false
	}
	more, less, newest := 0, 0, 0
	for i := 2; i < len(levels); i++ {
		switch d := levels[i] - levels[i-1]; {
		case d >= minGrowth:
			more, newest = more+1, i
		case d < 0:
			less++
		}
	}
	last := levels[len(levels)-1]
	// A segment holds what some cycles leave: not each of them takes one.
	steps := less == 0 && more > 1 && newest >= len(levels)-2 && 3*more >= len(levels)-2 && len(levels) > MinCycles+1
	if n := len(levels) - 2; 4*(more-less) >= 3*n || steps {
		s.how, s.bytes, s.cycles = growing, last-levels[1], n
		return true
	}
	for at := 2; at < len(levels)-1; at++ {
		if rise := slices.Min(levels[at:]) - slices.Max(levels[1:at]); rise >= minShare {
			s.how, s.bytes, s.cycles = since, rise, len(levels)-at
			return true
		}
	}
	return false
}

// stands reports whether memory stays that nothing needs while other memory is paused: cache,
// pools of graphs, and more of the driver's than contexts take.
func (s *stay) stands(d *deep) bool {
	least := int64(minShare)
	levels := d.levels[s.pool]
	switch s.pool {
	case finding.CachePool:
		if sorts.Median(d.ends[s.pool]) > sorts.Median(levels) { // as of a trainer that has ended its step
			levels = d.ends[s.pool]
		}
	case finding.DriverPool:
		least = usual
	case finding.TensorPool:
		return false // a trainer's, perhaps
	}
	s.bytes, s.how = sorts.Median(levels), always
	s.cycles = count(levels, least)
	return s.bytes >= least
}

// exceeds reports whether a process keeps more than each other one.
func (s *stay) exceeds(runs []run, at int) bool {
	own := runs[at].deep.levels[s.pool]
	least, most, known := int64(0), int64(0), 0
	for i := range runs {
		d := runs[i].deep
		if i == at || d == nil || len(d.levels[s.pool]) == 0 {
			continue
		}
		n := sorts.Median(d.levels[s.pool])
		if known == 0 {
			least, most = n, n
		}
		least, most, known = min(least, n), max(most, n), known+1
	}
	s.bytes, s.how = sorts.Median(own)-most, others
	s.cycles = count(own, most+minShare)
	// Stages of a pipeline differ too, but from each other.
	return known > 0 && s.bytes >= minShare && s.bytes >= 4*(most-least)
}

func count(levels []int64, least int64) (n int) {
	for _, level := range levels {
		if level >= least {
			n++
		}
	}
	return n
}

// grouped makes one finding of what several processes keep alike.
func grouped(all []stay, processes int) []finding.Finding {
	out := []finding.Finding{}
	for len(all) > 0 {
		first := all[0]
		alike := func(s stay) bool {
			return s.pool == first.pool && s.tag == first.tag && s.how == first.how && slices.Equal(s.paused, first.paused)
		}
		var group, rest []stay
		for _, s := range all {
			if alike(s) {
				group = append(group, s)
			} else {
				rest = append(rest, s)
			}
		}
		out, all = append(out, describe(group, processes)), rest
	}
	slices.SortStableFunc(out, func(a, b finding.Finding) int {
		return cmp.Or(b.Severity.Rank()-a.Severity.Rank(), cmp.Compare(*b.Bytes, *a.Bytes))
	})
	return out
}

// describe is the finding of processes that keep the same.
func describe(group []stay, processes int) finding.Finding {
	s := slices.MaxFunc(group, func(a, b stay) int { return cmp.Compare(a.bytes, b.bytes) })
	names := make([]string, len(group))
	for i := range group {
		names[i] = group[i].course.Name
	}
	owner, process := sideBySide(names)+": ", ""
	switch {
	case len(group) == 1:
		owner, process = "", names[0]
	case len(group) == processes && processes > 2:
		owner = "each process: "
	}
	what := string(s.pool)
	if s.pool == finding.TagPool {
		what = "tag " + s.tag
	}
	device := fmt.Sprintf("device %d", s.course.Device)
	if slices.ContainsFunc(group, func(o stay) bool { return o.course.Device != s.course.Device }) {
		device = "its device"
	}
	f := finding.Finding{
		Kind: finding.Residue, Severity: finding.Warning, Confidence: 0.9, Device: &s.course.Device, Process: process, Bytes: &s.bytes,
		Evidence: &finding.StayEvidence{Cycles: s.cycles, Paused: s.paused, Pool: s.pool, Processes: names, Tag: s.tag, Total: s.of},
		Basis:    "the memory of each process at its pauses and resumes",
		Remedies: []finding.Remedy{s.remedy()},
	}
	phase := "while " + sideBySide(s.paused) + isPaused(len(s.paused))
	size := units.Bytes(s.bytes)
	switch s.how {
	case growing:
		f.Kind, f.Severity = finding.Leak, finding.Problem
		grows := "grows"
		if s.pool == finding.TensorPool || s.pool == finding.GraphPool {
			grows = "grow"
		}
		f.Title = fmt.Sprintf("%s%s %s by %s in %d cycles on %s, %s", owner, what, grows, size, s.cycles, device, phase)
	case since:
		f.Title = fmt.Sprintf("%s%s of %s stays on %s since %d cycles, %s", owner, size, what, device, s.cycles, phase)
	case others:
		f.Title = fmt.Sprintf("%s%s of %s stays on %s %s; other processes do not keep it", owner, size, what, device, phase)
	case sometimes:
		f.Title = fmt.Sprintf("%s%s of %s stays on %s %s, in %d of %d cycles", owner, size, what, device, phase, s.cycles, s.of)
	default:
		f.Title = fmt.Sprintf("%s%s of %s stays on %s %s", owner, size, what, device, phase)
	}
	if s.pool == finding.TagPool && s.how != always && s.how != growing {
		f.Severity, f.Confidence = finding.Problem, 0.95
	}
	return f
}

func isPaused(n int) string {
	if n == 1 {
		return " is paused"
	}
	return " are paused"
}

// sideBySide lists names; ranks lose the word but for the first.
func sideBySide(names []string) string {
	names = slices.Clone(names)
	for i := range names[1:] {
		names[i+1] = strings.TrimPrefix(names[i+1], "rank ")
	}
	if n := len(names); n > 1 {
		if strings.HasPrefix(names[0], "rank ") {
			names[0] = "ranks" + strings.TrimPrefix(names[0], "rank")
		}
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return names[0]
}

// remedy is what releases the memory.
func (s *stay) remedy() finding.Remedy {
	switch {
	case s.pool == finding.TagPool && s.how == growing:
		return finding.CodeChange(fmt.Sprintf("free the memory of tag %s before the next cycle allocates more in its region", s.tag))
	case s.pool == finding.TagPool:
		return finding.CodeChange(fmt.Sprintf("pause it with the others: `torch_memory_saver.pause(%q)`", s.tag))
	case s.pool == finding.CachePool:
		return finding.CodeChange("before the pause and before the resume: `torch.cuda.empty_cache()`")
	case s.pool == finding.GraphPool:
		return graphs()
	case s.pool == finding.DriverPool:
		return finding.CodeChange("find its allocations: `strandline trace --gpu`; NCCL's buffers go with its process groups (`torch.distributed.destroy_process_group`)")
	default:
		return finding.CodeChange("allocate it within `torch_memory_saver.region(tag)`, or free it before the pause; a recording shows which tensors they are")
	}
}
