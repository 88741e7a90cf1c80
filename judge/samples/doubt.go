package samples

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"strandline/host/sampling/sample"
	"strandline/units"
)

// How long growth must be watched to be a problem. What a process takes when it starts
// grows as steadily as a leak does, for some seconds: of a young one, only growth near a
// line is a problem.
const (
	minWatched = 4500 * time.Millisecond
	minCurve   = 25 * time.Second // where it is not near a line
	minYoung   = 8500 * time.Millisecond
	// minYoungGrowth is the growth, bytes, below which a process that may still be starting is doubted: Ray's
	// raylets grow by 1 MiB in their first minutes.
	minYoungGrowth = 4 << 20
	minOthers      = 25 * time.Second // of a device or a control group
)

// A beginning is what a process was when the watch first saw it.
type beginning struct {
	at, age float64 // seconds; the age is 0 if it is not known
	read    *int64  // bytes; nil if that is not known
}

func begin(at float64, p *sample.Process) beginning {
	b := beginning{at: at, read: p.Read}
	if p.Age != nil {
		b.age = *p.Age
	}
	return b
}

// doubt states why the growth of a process need not be a leak, and what to do to know; it
// is empty where nothing speaks against a leak.
func (w *Watch) doubt(p *sample.Process, s *series) string {
	b := w.begun[p.ID()]
	age := seconds(b.age + w.now - b.at)
	watched := seconds(s.times[len(s.times)-1] - s.times[0])
	if busier := w.load.rose(s); busier != "" {
		return busier
	}
	if age < sample.Young {
		return w.youngDoubt(p, s, age, watched)
	}
	switch {
	case watched < minWatched:
		return "it was watched for " + units.Duration(watched.Round(time.Second/10)) + ", in which work that ends also grows" + longer(minWatched)
	case watched < minCurve && !s.steady():
		return "it does not grow steadily, like a cache that fills" + longer(minCurve)
	}
	return ""
}

// youngDoubt is [Watch.doubt] of a process that may still be starting.
func (w *Watch) youngDoubt(p *sample.Process, s *series, age, watched time.Duration) string {
	b := w.begun[p.ID()]
	old := longer(max(sample.Young+minWatched-age, minCurve))
	started := "the process started " + units.Duration(age.Round(time.Second)) + " ago"
	if b.age == 0 {
		started = "when the process started is not known"
	}
	switch read := readSince(b, p); {
	case w.finished && !w.killed(p):
		return "the process has ended soon after its start: a job holds its work until it ends"
	case watched < minYoung:
		return started + ", and a start also grows" + longer(minYoung)
	case 2*read >= s.high-s.low:
		return started + ", and read " + units.Bytes(int64(read)) + " meanwhile, as when loading its data" + old
	case s.high-s.low < minYoungGrowth:
		return started + ", and grew by " + units.Bytes(int64(s.high-s.low)) + ", as at a start" + old
	case !s.steady():
		return started + ", and does not grow steadily, like a start or a cache that fills" + old
	}
	return ""
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// readSince is what a process has read since the watch first saw it, bytes; 0 if that is
// not known.
func readSince(b beginning, p *sample.Process) float64 {
	if b.read == nil || p.Read == nil {
		return 0
	}
	return float64(*p.Read - *b.read)
}

// longer advises to watch for a time, which is rounded up.
func longer(d time.Duration) string {
	const step = 5 * time.Second
	return fmt.Sprintf("; to know, watch it with `--duration %s` or more", (d + step - 1).Truncate(step))
}

// steady reports whether a series is near a line since the first quarter of its time:
// between the medians of each sixth of the rest, it grows about as fast as on the whole,
// and at the end not much slower than before.
func (s *series) steady() bool {
	const parts, minRate, maxRate, minPace = 6, 0.4, 2.0, 0.6
	from := sort.SearchFloat64s(s.times, s.times[0]+(s.times[len(s.times)-1]-s.times[0])/4)
	n := len(s.times) - from
	var t, v [parts]float64
	for i := range parts {
		a, b := from+i*n/parts, from+(i+1)*n/parts
		if a == b {
			return false
		}
		t[i], v[i] = middle(s.times[a:b]), middle(s.levels[a:b])
	}
	rate := func(i, j int) float64 { return (v[j] - v[i]) / (t[j] - t[i]) }
	for i := range parts - 1 {
		share := rate(i, i+1) / rate(0, parts-1)
		if !(minRate <= share && share <= maxRate) { // nor NaN
			return false
		}
	}
	return rate(parts/2, parts-1) >= minPace*rate(0, parts/2-1)
}

// middle is the median of values.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
