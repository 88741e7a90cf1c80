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

// TestPoolsWatched watches two ranks, of which one keeps a pool of graphs while it sleeps: it is named as that once
// pools are told apart, and no tensors come and go where the first samples count them with tensors.
func TestPoolsWatched(t *testing.T) {
	const mib = 1 << 20
	w := New()
	for at := range 60 {
		s := &sample.Sample{Seconds: float64(at)}
		for rank := range 2 {
			used, held, pools := int64(900*mib), int64(200*mib), int64(rank)*128*mib
			tag := "active"
			if at%10 >= 5 {
				held, tag = 0, "paused"
			}
			allocated, none := 200*mib+pools, int64(0)
			d := sample.DeviceShare{Device: rank, Used: &used, Allocated: &allocated, Cached: &none, Other: new(int64(300 * mib))}
			if at >= 26 { // the first reading
				d.Pools = &sample.Pools{All: pools, Tensors: pools}
			}
			s.Processes = append(s.Processes, sample.Process{PID: 7 + rank, Started: 1, Rank: new(rank), Devices: []sample.DeviceShare{d},
				Pausable: []sample.Tag{{Tag: "kv", Bytes: 200 * mib, Held: held, State: tag}}})
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

// TestSplitWatched watches two ranks, of which one keeps tensors that keep the rest of their segments: no cache stays,
// also where the segments were not read since.
func TestSplitWatched(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		split int64
		want  string
	}{{100 * mib, "[tensors in no region]"}, {0, "[PyTorch's cache tensors in no region]"}} {
		w := New()
		for at := range 90 {
			s := &sample.Sample{Seconds: float64(at)}
			for rank := range 2 {
				held, tag := int64(200*mib), "active"
				if at%10 >= 5 {
					held, tag = 0, "paused"
				}
				of := int64(rank)
				d := sample.DeviceShare{Device: rank, Used: new(held + of*164*mib), Allocated: new(200*mib + of*64*mib), Cached: new(of * 100 * mib), Other: new(int64(0)),
					Pools: &sample.Pools{Split: of * c.split}}
				if at/10%3 != 1 {
					d.Pools = &sample.Pools{Stale: true}
				}
				s.Processes = append(s.Processes, sample.Process{PID: 7 + rank, Started: 1, Rank: new(rank), Devices: []sample.DeviceShare{d},
					Pausable: []sample.Tag{{Tag: "kv", Bytes: 200 * mib, Held: held, State: tag}}})
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
			t.Errorf("%d of the cache in segments of tensors: %q", c.split, found)
		}
	}
}
