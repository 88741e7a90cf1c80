package jobs

import (
	"fmt"
	"math"
	"regexp"

	"strandline/logs/failure"
	"strandline/logs/ranks"
)

var (
	finished   = regexp.MustCompile(`(?i)\b(?:saved|successfully|finished|complete)`)
	preemption = regexp.MustCompile(`(?i)preempt|time limit|evict|drain|spot|requeue`)
)

// alike reports whether so many ranks ran out before or in the first step that the job does not
// fit.
func (j *job) alike(out []*rank) bool {
	if len(out) < 2 || j.maxStep > 1 {
		return false
	}
	const within = 60 // seconds
	at := math.NaN()
	near := 0
	for _, r := range out {
		if math.IsNaN(at) {
			at = r.fall.at
		}
		if math.IsNaN(r.fall.at) || r.fall.at-at < within {
			near++
		}
	}
	return near*3 > j.world || near*2 > len(j.order)
}

func value(x *int64) float64 {
	if x == nil {
		return 0
	}
	return float64(*x)
}

// outOfMemory finds why the first rank ran out of its device's memory.
func (j *job) outOfMemory(v *Job, first *rank, out []*rank) {
	o := first.fall.OOM
	capacity := capacityOf(first)
	set := func(c Cause, sure float64, r Restart, why string) {
		v.Cause, v.Confidence, v.Restart, v.Why = c, sure, r, why
	}
	usual := j.usual(first)
	switch others := othersOf(o); {
	case o.Allowed != nil && value(o.Allowed) < 0.98*value(o.Total):
		set(Limit, 0.95, Repeats, "a limit is set for the process, and the device has more")
		return
	case usual > 0 && capacity > 0 && capacity < 0.75*usual, j.sliced(first):
		set(Limit, 0.9, Repeats, "its device is smaller than the usual one, or a slice of one")
		return
	case value(o.Free) > 1.02*value(o.Request) && value(o.Request) > 0 && value(o.Free) > 0.1*capacity:
		set(Limit, 0.8, Repeats, "the device had room for the request: the process may not use all of it")
		return
	case others > 0.05*capacity && others+value(o.Free)+value(o.Unallocated) > value(o.Request):
		set(OtherProcess, 0.92, NotKnown, "another process holds a part of its device")
		return
	}
	if un := value(o.Unallocated); un >= value(o.Request) && un > 0.05*capacity && un > 1<<30 {
		set(Fragmentation, 0.9, Helps, "much is reserved and not allocated, in pieces")
		return
	}
	defer j.compare(v, first)
	if site, ok := j.more.Grew[first.n]; ok {
		set(Leak, 0.92, Helps, "its snapshots keep more and more of one place")
		v.Site = site
		return
	}
	course := memoryOf(first)
	if ratio, _ := j.jump(first, func(v *ranks.Voice) map[string]*ranks.Series { return v.Loads }); ratio >= 2 {
		set(Imbalance, 0.9, Repeats, fmt.Sprintf("its experts get %.1f times the usual tokens", ratio))
		return
	}
	if ratio, _ := j.jump(first, func(v *ranks.Voice) map[string]*ranks.Series { return v.Lengths }); ratio >= 3 {
		set(LongInput, 0.92, Repeats, fmt.Sprintf("its sample is %.0f times as long as usual", ratio))
		return
	}
	if course.rises(capacity) {
		set(Leak, 0.9, Helps, "its memory rises with the steps")
		return
	}
	j.byLevel(v, first, course, capacity, set)
}

// byLevel decides by levels where nothing rises: a stage near full, or one large request.
func (j *job) byLevel(v *Job, first *rank, course *course, capacity float64, set func(Cause, float64, Restart, string)) {
	o := first.fall.OOM
	peak := peakOf(first)
	if course == nil && j.rising(capacity) {
		set(Leak, 0.7, Helps, "memory rises with the steps")
		return
	}
	if high, ok := j.stageHigh(first, capacity); ok {
		set(Imbalance, high, Repeats, "its pipeline stage is near full by the layout, and the others are not")
		return
	}
	request := value(o.Request)
	switch {
	case capacity > 0 && request > 0.15*capacity && (peak == 0 || peak+request > capacity):
		set(LongInput, 0.65, Repeats, "it asked for far more at once than the steps before needed")
	case j.maxStep <= 1:
		set(TooLarge, 0.45, Repeats, "it ran out at the beginning")
	default:
		set(Unknown, 0.3, NotKnown, "the texts do not name the holder of the memory")
	}
}

// rising reports whether the memory that anybody prints rises.
func (j *job) rising(capacity float64) bool {
	up, all := 0, 0
	for _, r := range j.order {
		if c := memoryOf(r); c != nil && len(c.points) >= 3 {
			all++
			if c.rises(capacity) {
				up++
			}
		}
	}
	for _, t := range j.texts { // a driver prints for the job
		for _, v := range t.Voices {
			if len(v.Ranks) == 0 && len(v.Sizes) > 0 {
				r := &rank{voices: []heard{{v, t}}}
				if c := memoryOf(r); c != nil && len(c.points) >= 3 {
					all++
					if c.rises(capacity) {
						up++
					}
				}
			}
		}
	}
	return up > 0 && up*2 > all
}

// stage is the pipeline stage of a rank: the pipeline is the slowest dimension.
func (j *job) stage(n int) int {
	if j.layout.Pipeline < 2 || j.world < j.layout.Pipeline {
		return 0
	}
	return n / (j.world / j.layout.Pipeline)
}

// stageHigh reports whether the stage of a rank is near full and others are not.
func (j *job) stageHigh(first *rank, capacity float64) (sure float64, ok bool) {
	if j.layout.Pipeline < 2 {
		return 0, false
	}
	var mine, others []float64
	for _, r := range j.order {
		p := peakOf(r)
		if p == 0 {
			continue
		}
		if j.stage(r.n) == j.stage(first.n) {
			mine = append(mine, p)
		} else {
			others = append(others, p)
		}
	}
	if len(mine) == 0 {
		return 0.55, capacity > 0
	}
	near := capacity > 0 && median(mine) > 0.8*capacity
	if len(others) == 0 {
		return 0.6, near
	}
	return 0.9, near && median(others) < 0.93*median(mine)
}

// sliced reports whether a rank's device is a MIG slice.
func (j *job) sliced(r *rank) bool {
	for _, v := range r.voices {
		if v.Slice {
			return true
		}
	}
	gb := capacityOf(r) / (1 << 30)
	for _, t := range j.texts { // nvidia-smi -L
		for _, size := range t.Slices {
			if math.Abs(gb-size) < 0.06*size {
				return true
			}
		}
	}
	return false
}

// othersOf is what other processes hold of the device, in bytes. In a container the list has the
// program itself, under a number that it does not know.
func othersOf(o *failure.OOM) (sum float64) {
	var all []float64
	for _, p := range o.Processes {
		all = append(all, float64(p.Bytes))
		sum += float64(p.Bytes)
	}
	held := value(o.Allocated) + value(o.Unallocated)
	if o.InUse != nil {
		held = value(o.InUse)
	}
	const context = 4 << 30 // bytes that a process holds beside PyTorch's
	for _, b := range all {
		if o.InUse == nil && held > 0 && b >= 0.99*held && b < held+context {
			return sum - b
		}
	}
	return sum
}
