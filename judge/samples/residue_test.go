package samples

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/host/sampling/sample"
)

// TestResidue watches cycles of pause and resume which leave as much behind each time,
// or more.
func TestResidue(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		more int64 // that a cycle leaves behind
	}{{"the same", 0}, {"more", 40 * mib}} {
		w, at := New(), 0.0
		for cycle := range int64(40) {
			for step := range int64(10) {
				held, tag := int64(8<<30), "active"
				if step >= 5 {
					held, tag = 0, "paused"
				}
				used := held + 600*mib + cycle*c.more + (7*cycle+3*step)%5*mib/10
				p := sample.Process{PID: 7, Started: 1, Devices: []sample.DeviceShare{{Used: &used}}, Pausable: []sample.Tag{{Tag: "kv", Bytes: 8 << 30, Held: held, State: tag}}}
				w.Add(&sample.Sample{Seconds: at, Processes: []sample.Process{p}})
				at++
			}
		}
		var found []finding.Finding
		for _, f := range w.Findings() {
			if f.Severity == finding.Problem && strings.Contains(f.Title, "while all pausable memory is paused") {
				found = append(found, f)
			}
		}
		if want := c.more > 0; (len(found) == 1) != want {
			t.Errorf("%s: %+v", c.name, w.Findings())
		}
	}
}

// slept is what a tag of 200 MiB holds at a time, which is paused in the second half of each ten seconds.
func slept(at int) (held int64, state string) {
	if at%10 >= 5 {
		return 0, "paused"
	}
	return 200 << 20, "active"
}

// sleeper is a rank that has such a tag.
func sleeper(rank, at int, d sample.DeviceShare) sample.Process {
	held, state := slept(at)
	return sample.Process{PID: 7 + rank, Started: 1, Rank: new(rank), Launch: "job", Devices: []sample.DeviceShare{d},
		Pausable: []sample.Tag{{Tag: "kv", Bytes: 200 << 20, Held: held, State: state}}}
}

// TestPoolsWatched watches two ranks, of which one keeps a pool of graphs while it sleeps: it is named as that once
// pools are told apart, and no tensors come and go where the first samples count them with tensors.
func TestPoolsWatched(t *testing.T) {
	const mib = 1 << 20
	w := New()
	for at := range 60 {
		s := &sample.Sample{Seconds: float64(at)}
		for rank := range 2 {
			used, pools := int64(900*mib), int64(rank)*128*mib
			allocated, none := 200*mib+pools, int64(0)
			d := sample.DeviceShare{Device: rank, Used: &used, Allocated: &allocated, Cached: &none, Other: new(int64(300 * mib))}
			if at >= 26 { // the first reading
				d.Pools = &sample.Pools{All: pools, Tensors: pools}
			}
			s.Processes = append(s.Processes, sleeper(rank, at, d))
		}
		w.Add(s)
	}
	var found []string
	for _, f := range w.Findings() {
		if e, ok := f.Evidence.(*finding.StayEvidence); ok {
			found = append(found, f.Process+" "+string(e.Pool))
		}
	}
	if len(found) != 1 || found[0] != "rank 1 "+string(finding.GraphPool) {
		t.Errorf("found %q", found)
	}
}

// TestTagGrowsWatched watches two ranks, of which one allocates more in a tag in each cycle: that is one finding.
func TestTagGrowsWatched(t *testing.T) {
	for _, counted := range []bool{true, false} {
		watchTag(t, counted)
	}
}

// watchTag has a process whose memory is counted, or only the whole device's.
func watchTag(t *testing.T, counted bool) {
	const mib = 1 << 20
	w := New()
	for at := range 200 {
		s := &sample.Sample{Seconds: float64(at)}
		for rank := range 2 {
			size := int64(200+rank*(at/10)*10) * mib
			held, tag := size, "active"
			if at%10 >= 5 {
				held, tag = 0, "paused"
			}
			allocated := size + int64(7*at%5)*mib/10
			d := sample.DeviceShare{Device: rank, Used: new(held + 300*mib), Allocated: &allocated, Cached: new(int64(0)), Other: new(int64(300 * mib))}
			if !counted {
				d = sample.DeviceShare{Device: rank}
			}
			s.Processes = append(s.Processes, sample.Process{PID: 7 + rank, Started: 1, Rank: new(rank), Devices: []sample.DeviceShare{d},
				Pausable: []sample.Tag{{Tag: "kv", Bytes: size, Held: held, State: tag}}})
			s.Devices = append(s.Devices, sample.Device{Index: rank, Used: new(size + 300*mib), Total: new(int64(80 << 30))})
		}
		w.Add(s)
	}
	var loud []finding.Finding
	for _, f := range w.Findings() {
		if f.Severity != finding.Info {
			loud = append(loud, f)
		}
	}
	if len(loud) != 1 || loud[0].Process != "rank 1" || counted != strings.Contains(fmt.Sprint(loud[0].Detail), "memory allocated by PyTorch of pid 8 keeps growing") {
		t.Errorf("counted %t: %+v", counted, loud)
	}
}

// TestJobsWatched watches two jobs, of which one grows in a tag and the other leaks: both are found, though both
// processes are rank 0.
func TestJobsWatched(t *testing.T) {
	const mib = 1 << 20
	w := New()
	for at := range 200 {
		s := &sample.Sample{Seconds: float64(at)}
		for job := range 2 {
			size, held, tag, state, allocated := int64(200+at/10*10)*mib, int64(0), "kv", "paused", int64(0)
			if allocated = size + int64(7*at%5)*mib/10; at%10 < 5 {
				held, state = size, "active"
			}
			if job == 1 {
				size, held, tag, state, allocated = 200*mib, 200*mib, "weights", "active", int64(200+3*at)*mib+int64(7*at%5)*mib/10
			}
			d := sample.DeviceShare{Device: job, Used: new(max(held, int64(job)*allocated) + 300*mib), Allocated: &allocated, Cached: new(int64(0)), Other: new(int64(300 * mib))}
			s.Processes = append(s.Processes, sample.Process{PID: 7 + 10*job, Started: 1, Rank: new(0), Devices: []sample.DeviceShare{d},
				Pausable: []sample.Tag{{Tag: tag, Bytes: size, Held: held, State: state}}})
		}
		w.Add(s)
	}
	var loud []string
	for _, f := range w.Findings() {
		if f.Severity != finding.Info {
			loud = append(loud, f.Process)
		}
	}
	slices.Sort(loud)
	if fmt.Sprint(loud) != "[pid 17 rank 0]" {
		t.Errorf("found of %q: %+v", loud, w.Findings())
	}
}

// TestFolded makes growth a detail of what stays in the same memory of the same device of the same process.
func TestFolded(t *testing.T) {
	for _, c := range []struct {
		figure      figure
		pid, device int
		pool        finding.Pool
		want        bool
	}{
		{allocated, 7, 1, finding.TagPool, true},
		{used, 7, 1, finding.TagPool, true},
		{allocated, 7, 1, finding.TensorPool, true},
		{residue, 7, 1, finding.TensorPool, true},
		{reserved, 7, 1, finding.CachePool, true},
		{otherMemory, 7, 1, finding.DriverPool, true},
		{allocated, 9, 1, finding.TagPool, false},
		{allocated, 7, 0, finding.TagPool, false},
		{reserved, 7, 1, finding.TagPool, false},
		{otherMemory, 7, 1, finding.TagPool, false},
		{residue, 7, 1, finding.TagPool, false},
		{allocated, 7, 1, finding.DriverPool, false},
		{anonymous, 7, -1, finding.TagPool, false},
	} {
		w := New()
		w.lazy = true
		w.stayed = []Found{{Finding: finding.Finding{Kind: finding.Leak, Severity: finding.Problem,
			Evidence: &finding.StayEvidence{Pool: c.pool, Processes: []string{"rank 0"}, Holders: []finding.Holder{{Device: 1, PID: 7}}}}}}
		found := []Found{{Finding: finding.Finding{Severity: finding.Problem, Title: "it grows"}, Process: sample.ID{PID: c.pid}, Device: c.device, Figure: string(c.figure)}}
		got := w.withStays(found)
		if folded := len(got) == 1 && len(got[0].Detail) == 1; folded != c.want {
			t.Errorf("%s of %d on device %d, and %s: folded %t", c.figure, c.pid, c.device, c.pool, folded)
		}
	}
}

// TestOtherJobs watches two ranks, of which one stays awake: it is said to differ from the other only
// where they are of one job.
func TestOtherJobs(t *testing.T) {
	for launch, want := range map[string]int{"job": 1, "another": 0, "": 0} {
		w := New()
		for at := range 90 {
			s := &sample.Sample{Seconds: float64(at)}
			for rank := range 2 {
				p := sleeper(rank, at, sample.DeviceShare{Device: rank})
				if rank == 1 {
					p.Launch, p.Pausable[0].Held, p.Pausable[0].State = launch, 200<<20, "active"
				}
				s.Processes = append(s.Processes, p)
			}
			w.Add(s)
		}
		if found := w.Findings(); len(found) != want {
			t.Errorf("of launch %q: %+v", launch, found)
		}
	}
}

// TestSplitWatched watches two ranks, of which one keeps tensors that keep the rest of their segments: no cache stays,
// also where the segments were not read since, or never.
func TestSplitWatched(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		split int64
		read  bool
		want  string
	}{{100 * mib, true, "[tensors in no region]"}, {0, true, "[PyTorch's cache tensors in no region]"}, {0, false, "[tensors in no region]"}} {
		w := New()
		for at := range 90 {
			s := &sample.Sample{Seconds: float64(at)}
			for rank := range 2 {
				held, _ := slept(at)
				of := int64(rank)
				d := sample.DeviceShare{Device: rank, Used: new(held + of*164*mib), Allocated: new(200*mib + of*64*mib), Cached: new(of * 100 * mib), Other: new(int64(0)),
					Pools: &sample.Pools{Split: of * c.split}}
				if at/10%3 != 1 {
					d.Pools = &sample.Pools{Stale: true}
				}
				if !c.read {
					d.Pools = nil
				}
				s.Processes = append(s.Processes, sleeper(rank, at, d))
			}
			w.Add(s)
		}
		var found []string
		for _, f := range w.Findings() {
			if e, ok := f.Evidence.(*finding.StayEvidence); ok {
				found = append(found, string(e.Pool))
			}
		}
		slices.Sort(found)
		if fmt.Sprint(found) != c.want {
			t.Errorf("%d of the cache in segments of tensors, read %t: %q", c.split, c.read, found)
		}
	}
}
