package pauses

import (
	"fmt"
	"slices"
	"testing"

	"strandline/finding"
)

const mib = 1 << 20

// A cycle is what a rank has while it sleeps, in MiB: of its tags, and in no region.
type cycle struct {
	weights, cache                 int64 // held while both are to be paused
	grown                          int64 // of weights
	tensors, unused, graphs, other int64
}

// course is a rank that sleeps and wakes.
func course(name string, cycles ...cycle) Course {
	c := Course{Name: name, Job: "job"}
	for _, y := range cycles {
		sizes := map[string]int64{"weights": 100 + y.grown, "kv_cache": 200}
		add := func(held map[string]int64) {
			m := Moment{Tags: map[string]Share{}, Tensors: new(y.tensors * mib), Cache: new(y.unused * mib), Pools: new(y.graphs * mib), Other: new(y.other * mib)}
			for tag, n := range sizes {
				m.Tags[tag] = Share{Bytes: n * mib, Held: held[tag] * mib}
			}
			c.Moments = append(c.Moments, m)
		}
		add(sizes)
		asleep := map[string]int64{"weights": y.weights, "kv_cache": y.cache}
		add(asleep)
		add(asleep)
		add(sizes)
	}
	return c
}

func repeat(n int, change func(i int, c *cycle)) (out []cycle) {
	for i := range n {
		c := cycle{other: 300}
		if change != nil {
			change(i, &c)
		}
		out = append(out, c)
	}
	return out
}

// TestStays plants what stays on ranks of a job.
func TestStays(t *testing.T) {
	clean := repeat(6, nil)
	for _, c := range []struct {
		name  string
		ranks [][]cycle
		want  string
	}{
		{"clean", [][]cycle{clean, clean}, "[]"},
		{"one rank, clean", [][]cycle{clean}, "[]"},
		{"a tag of one rank", [][]cycle{clean, repeat(6, func(_ int, c *cycle) { c.cache = 200 }), clean}, "[problem residue [rank 1] tag kv_cache, 5 of 5]"},
		{"a tag in one cycle", [][]cycle{repeat(6, func(i int, c *cycle) {
			if i == 3 {
				c.cache = 200
			}
		}), clean}, "[problem residue [rank 0] tag kv_cache, 1 of 5]"},
		{"a tag of all", [][]cycle{repeat(6, func(_ int, c *cycle) { c.weights = 100 }), repeat(6, func(_ int, c *cycle) { c.weights = 100 })}, "[warning residue [rank 0 rank 1] tag weights, 5 of 5]"},
		{"a cache", [][]cycle{clean, repeat(6, func(_ int, c *cycle) { c.unused = 500 })}, "[warning residue [rank 1] PyTorch's cache , 6 of 6]"},
		{"a cache in one of two cycles", [][]cycle{repeat(2, func(i int, c *cycle) { c.unused = int64(500 * i) })}, "[]"},
		{"a cache of one cycle", [][]cycle{repeat(1, func(_ int, c *cycle) { c.unused = 500 })}, "[warning residue [rank 0] PyTorch's cache , 1 of 1]"},
		{"graphs", [][]cycle{repeat(6, func(_ int, c *cycle) { c.graphs = 90 }), repeat(6, func(_ int, c *cycle) { c.graphs = 90 })}, "[warning residue [rank 0 rank 1] CUDA graph pools , 6 of 6]"},
		{"a shard", [][]cycle{clean, clean, repeat(6, func(_ int, c *cycle) { c.tensors = 128 })}, "[warning residue [rank 2] tensors in no region , 6 of 6]"},
		{"in half of the cycles more", [][]cycle{clean, repeat(4, func(i int, c *cycle) { c.other += int64(100 * (i % 2)) })}, "[]"}, // as if counted before the pause
		{"in most cycles more", [][]cycle{clean, repeat(4, func(i int, c *cycle) { c.other += int64(100 * min(i, 1)) })}, "[warning residue [rank 1] driver memory of libraries , 3 of 4]"},
		{"the trainer of all", [][]cycle{repeat(6, func(_ int, c *cycle) { c.tensors = 128 }), repeat(6, func(_ int, c *cycle) { c.tensors = 128 })}, "[]"},
		{"stages of a pipeline", [][]cycle{clean, repeat(6, func(_ int, c *cycle) { c.tensors = 128 }), repeat(6, func(_ int, c *cycle) { c.tensors = 256 })}, "[]"},
		{"a communicator that comes later", [][]cycle{clean, repeat(8, func(i int, c *cycle) {
			if i >= 4 {
				c.other = 500
			}
		})}, "[warning residue [rank 1] driver memory of libraries , 4 of 8]"},
		{"what is made in the first cycle", [][]cycle{repeat(8, func(i int, c *cycle) {
			if i >= 1 {
				c.other = 500
			}
		}), repeat(8, func(i int, c *cycle) {
			if i >= 1 {
				c.other = 500
			}
		})}, "[]"},
		{"growth", [][]cycle{repeat(8, func(i int, c *cycle) { c.tensors = int64(10 * i) }), clean}, "[problem leak [rank 0] tensors in no region , 6 of 8]"},
		{"growth by segments", [][]cycle{repeat(8, func(i int, c *cycle) { c.grown = int64((i + 1) / 2 * 20) })}, "[problem leak [rank 0] tag weights, 6 of 8]"},
		{"up and down", [][]cycle{repeat(8, func(i int, c *cycle) { c.tensors = int64(30 * (i % 2)) })}, "[]"},
	} {
		var courses []Course
		for i, cycles := range c.ranks {
			courses = append(courses, course(fmt.Sprintf("rank %d", i), cycles...))
		}
		got := []string{}
		for _, f := range Stays(courses) {
			e := f.Evidence.(*finding.StayEvidence)
			if len(e.Paused) == 0 || slices.Contains(e.Paused, e.Tag) && f.Kind == finding.Residue {
				t.Errorf("%s: paused are %v", c.name, e.Paused)
			}
			got = append(got, fmt.Sprintf("%s %s %v %s %s, %d of %d", f.Severity, f.Kind, e.Processes, e.Pool, e.Tag, e.Cycles, e.Total))
		}
		if text := fmt.Sprint(got); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}

// TestSleepless has one rank that pauses nothing.
func TestSleepless(t *testing.T) {
	awake := course("rank 1", repeat(1, nil)...)
	awake.Moments = awake.Moments[:1]
	asleep := course("rank 0", repeat(1, nil)...)
	asleep.Moments = asleep.Moments[1:2]
	if got := Stays([]Course{asleep, awake}); len(got) != 2 || got[0].Process != "rank 1" || got[0].Severity != finding.Problem {
		t.Errorf("%+v", got)
	}
	if got := Stays([]Course{awake, awake}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestJobs compares ranks with those of their job alone, and with none where the job is unclear.
func TestJobs(t *testing.T) {
	const other = "200 MiB of tag kv_cache stays on device 0 while weights is paused; other processes do not keep it"
	sleeps, wakes := repeat(6, nil), repeat(6, func(_ int, c *cycle) { c.cache = 200 })
	for _, c := range []struct {
		name  string
		ranks []int // and that many processes, of which the last stays awake
		jobs  []string
		want  string
	}{
		{"one job", []int{0, 1, 2}, []string{"a", "a", "a"}, "[" + other + "]"},
		{"another job", []int{0, 1, 0}, []string{"a", "a", "b"}, "[200 MiB of tag kv_cache stays on device 0 while weights is paused]"},
		{"no known job", []int{0, 1, 2}, []string{"a", "a", ""}, "[200 MiB of tag kv_cache stays on device 0 while weights is paused]"},
		{"perhaps two jobs", []int{0, 1, 0}, []string{"a", "a", "a"}, "[200 MiB of tag kv_cache stays on device 0 while weights is paused]"},
	} {
		var courses []Course
		for i, rank := range c.ranks {
			cycles := sleeps
			if i == len(c.ranks)-1 {
				cycles = wakes
			}
			k := course(fmt.Sprintf("rank %d", rank), cycles...)
			k.PID, k.Job = 100+i, c.jobs[i]
			courses = append(courses, k)
		}
		got := []string{}
		for _, f := range Stays(courses) {
			got = append(got, f.Title)
		}
		if text := fmt.Sprint(got); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}

// TestSampled has samples of a loop: those of one spell are one moment, of the least.
func TestSampled(t *testing.T) {
	var courses []Course
	for rank := range 2 {
		c := Course{Name: fmt.Sprintf("rank %d", rank), Job: "job", Sampled: true}
		held := map[string]int64{"weights": 100, "kv_cache": 200}
		for range 4 {
			for _, asleep := range []bool{false, true, true} {
				m := Moment{Tags: map[string]Share{}, Tensors: new(int64(50 * mib)), Other: new(int64(300 * mib))}
				for tag, n := range held {
					m.Tags[tag] = Share{Bytes: n * mib, Held: n * mib}
					if asleep && (rank == 0 || tag == "weights") {
						m.Tags[tag] = Share{Bytes: n * mib}
					}
				}
				c.Add(m)
			}
			*c.Moments[len(c.Moments)-1].Other += int64(rank) * 100 * mib // of another moment
			low := c.Moments[len(c.Moments)-1]
			low.Other = new(int64(300 * mib))
			c.Add(low)
		}
		if len(c.Moments) != 8 {
			t.Errorf("%d moments of 4 cycles", len(c.Moments))
		}
		courses = append(courses, c)
	}
	got := Stays(courses)
	if len(got) != 1 || got[0].Process != "rank 1" || got[0].Evidence.(*finding.StayEvidence).Tag != "kv_cache" || got[0].Severity != finding.Problem {
		t.Errorf("%+v", got)
	}
}

// TestSampledSometimes has a tag that is awake in some cycles: it is named where each pause was
// seen for some samples, and in two cycles at least.
func TestSampledSometimes(t *testing.T) {
	for _, c := range []struct {
		samples int // of a pause
		awake   []int
		want    int
	}{{minSeen, []int{2, 3}, 1}, {minSeen, []int{2}, 0}, {minSeen - 1, []int{2, 3}, 0}} {
		k := Course{Name: "rank 0", Sampled: true}
		for cycle := range 6 {
			for at := range 1 + c.samples {
				m := Moment{Tags: map[string]Share{}}
				for _, tag := range []string{"kv", "weights"} {
					m.Tags[tag] = Share{Bytes: 100 * mib, Held: 100 * mib}
					if at > 0 && (tag == "kv" || !slices.Contains(c.awake, cycle)) {
						m.Tags[tag] = Share{Bytes: 100 * mib}
					}
				}
				k.Add(m)
			}
		}
		got := Stays([]Course{k})
		if len(got) != c.want {
			t.Errorf("%d samples, awake in %v: %+v", c.samples, c.awake, got)
		}
		for _, f := range got {
			if e := f.Evidence.(*finding.StayEvidence); e.Tag != "weights" || e.Cycles != 2 || e.Total != 5 || f.Severity != finding.Warning {
				t.Errorf("%d of %d cycles of %s: %s", e.Cycles, e.Total, e.Tag, f.Severity)
			}
		}
	}
}

// TestStaysOfGlimpses says nothing of pauses of which one sample each was taken: what is in no
// region then is not known, nor who sleeps.
func TestStaysOfGlimpses(t *testing.T) {
	sleeps, wakes := Course{Name: "rank 0", Job: "job", Sampled: true}, Course{Name: "rank 1", Job: "job", Sampled: true}
	for i := range 2 * minSeen {
		sleeps.Add(Moment{Tags: map[string]Share{"weights": {Bytes: 100 * mib, Held: int64(i%2) * 100 * mib}}})
		wakes.Add(Moment{Tags: map[string]Share{"weights": {Bytes: 100 * mib, Held: 100 * mib}}})
	}
	if got := Stays([]Course{sleeps, wakes}); len(got) != 0 {
		t.Errorf("%d findings: %s", len(got), got[0].Title)
	}
}

// TestSampledSince has one cycle whose samples count less than there was: that is no rise in the next, as it is in a log.
func TestSampledSince(t *testing.T) {
	c := course("rank 0", repeat(7, func(i int, c *cycle) {
		if i == 1 {
			c.other = 140
		}
	})...)
	for sampled, want := range map[bool]int{false: 1, true: 0} {
		if c.Sampled = sampled; len(Stays([]Course{c})) != want {
			t.Errorf("sampled %t: %d findings", sampled, 1-want)
		}
	}
}
