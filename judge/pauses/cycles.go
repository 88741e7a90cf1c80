package pauses

import (
	"maps"
	"slices"

	"strandline/finding"
)

// A Moment is what a process has of a device at one time. Sizes are bytes, nil if unknown.
type Moment struct {
	Tags map[string]Share
	// Tensors, Cache and Pools are PyTorch's, in no region. The cache is what can be given back: all but
	// what is in segments of tensors.
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
	PID     int    // of a process that is running, which its name may not tell from one of another job; 0 of a log
	Device  int    // as CUDA counts in the process
	Job     string // alike for the processes of one job, as [procfs.Process.Launch] gives it; empty if unknown
	Moments []Moment
	Sampled bool // a short pause may be between two moments
	// Divided is true from the first moment on that has pools apart from tensors and cache.
	Divided bool
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
	levels []int64 // of all cycles, if they grow
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
// and memory in no region. Processes are compared with others of their job.
func Stays(courses []Course) []finding.Finding {
	var all []stay
	for _, runs := range byJob(courses) {
		for i := range runs {
			all = append(all, awake(runs, i)...)
		}
		all = append(all, residues(runs)...)
	}
	processes := map[string]int{}
	for i := range courses {
		processes[courses[i].Job]++
	}
	return grouped(all, processes)
}

// byJob takes courses apart, those of one job together. Those of an unknown job are alone, and so are
// those of one that has two processes of one name: it may be two jobs.
func byJob(courses []Course) (jobs [][]run) {
	type process struct{ job, name string }
	pids, unclear := map[process]int{}, map[string]bool{"": true}
	for i := range courses {
		c := &courses[i]
		of := process{c.Job, c.Name}
		if pid, ok := pids[of]; ok && pid != c.PID {
			unclear[c.Job] = true
		}
		pids[of] = c.PID
	}
	known := map[string]int{}
	for i := range courses {
		job := courses[i].Job
		at, ok := known[job]
		if !ok || unclear[job] {
			at, jobs = len(jobs), append(jobs, nil)
			known[job] = at
		}
		jobs[at] = append(jobs[at], newRun(&courses[i]))
	}
	return jobs
}
