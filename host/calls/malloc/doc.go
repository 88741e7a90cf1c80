// Package malloc samples the calls of malloc in the processes of a command that was
// started with its library in LD_PRELOAD; see c/malloc.c. While it samples, it knows
// which stacks allocated what is not freed, up to the error of the sample.
//
// A call is sampled every so many bytes, at random, so that each byte has the same
// chance. The calling thread waits until its stack has been copied. As long as nothing
// is sampled, each call costs some instructions more. Note that an allocator that a program
// has built in is not seen.
package malloc

import (
	"math"
	"slices"
	"time"

	"strandline/host/code/symbolize"
)

// A Kept is what the calls with one stack allocated in a time and did not free.
type Kept struct {
	Frames   []symbolize.Frame // of the stack, innermost first
	Bytes    float64           // estimated; negative if more was freed
	Count    float64           // of allocations, estimated
	Variance float64           // of Bytes, by the sampling
}

// A Span is a time in which calls were sampled.
type Span struct {
	From, To time.Time
	// InUse is by how much that grew at most which malloc has in use by its own account; nil if that
	// is not known. What was allocated before and is freed is not in it, unlike in a [Kept].
	InUse *int64
}

// sum is what the samples of one stack stand for.
type sum struct{ bytes, count, variance float64 }

func (s sum) plus(t sum) sum {
	return sum{s.bytes + t.bytes, s.count + t.count, s.variance + t.variance}
}

func (s sum) minus(t sum) sum {
	return sum{s.bytes - t.bytes, s.count - t.count, s.variance + t.variance}
}

// A process tells processes and the programs that they run apart.
type process struct {
	pid  uint32
	born uint64
}

// A look is what was allocated and not freed at a moment, by process and number of the
// stack.
type look struct {
	at    time.Time
	first bool // of a time in which calls were sampled
	kept  map[process]map[int]sum
	inUse map[process]uint64
}

// maxLooks bounds the looks that are kept; every second one goes when there are more. The
// first of a span are a pace apart.
const (
	maxLooks = 64
	pace     = 250 * time.Millisecond
)

// isDue reports whether another look is to be kept: the longer a span, the fewer are. If all
// were a pace apart, only those of the last minutes would be left of some hours.
func isDue(looks []look, now time.Time) bool {
	if len(looks) == 0 {
		return true
	}
	begin, last := len(looks)-1, looks[len(looks)-1].at
	for begin > 0 && !looks[begin].first {
		begin--
	}
	return now.Sub(last) >= max(pace, last.Sub(looks[begin].at)/(maxLooks/2))
}

// thinned drops every second look of each span, but not its first and last.
func thinned(all []look) []look {
	out := all[:0]
	odd := false
	for i := range all {
		ends := i+1 == len(all) || all[i+1].first
		if odd = !odd && !all[i].first; !odd || ends {
			out = append(out, all[i])
		}
	}
	clear(all[len(out):])
	return out
}

// kept returns what each stack of a process held more at the ends of spans than at their
// beginnings, by the number of the stack, with these spans. Of each span a first quarter is
// left out: what lives for a time is then there already. Looks after until do not count.
func kept(looks []look, p process, until time.Time) (out map[int]sum, spans []Span) {
	out = map[int]sum{}
	for begin := 0; begin < len(looks); {
		end := begin + 1
		for end < len(looks) && !looks[end].first {
			end++
		}
		span := looks[begin:end]
		begin = end
		span = slices.DeleteFunc(slices.Clone(span), func(l look) bool { return l.kept[p] == nil || l.at.After(until) })
		if len(span) < 2 {
			continue
		}
		last := &span[len(span)-1]
		from := span[0].at.Add(last.at.Sub(span[0].at) / 4)
		first := &span[slices.IndexFunc(span, func(l look) bool { return !l.at.Before(from) })]
		if first == last {
			continue
		}
		var inUse []float64
		for _, l := range span {
			if n := l.inUse[p]; n > 0 && !l.at.Before(first.at) {
				inUse = append(inUse, float64(n))
			}
		}
		spans = append(spans, Span{first.at, last.at, growth(inUse)})
		for stack, s := range last.kept[p] {
			out[stack] = out[stack].plus(s)
		}
		for stack, s := range first.kept[p] {
			out[stack] = out[stack].minus(s)
		}
	}
	return out, spans
}

// growth returns by how much a series grows at most, but for what is there for a short time; nil if
// it is too short to tell. It is twice as much as between the middles of its halves, or, if all came
// at once, as between those of its first and last quarter.
func growth(series []float64) *int64 {
	const least = 6
	if len(series) < least {
		return nil
	}
	middle := func(all []float64) (median, deviation float64) {
		sorted := slices.Sorted(slices.Values(all))
		median = sorted[len(all)/2]
		for i, x := range sorted {
			sorted[i] = math.Abs(x - median)
		}
		slices.Sort(sorted)
		// That of a median of as many, if they spread normally.
		return median, 1.25 * 1.48 * sorted[len(all)/2] / math.Sqrt(float64(len(all)))
	}
	rise := func(from, to []float64) float64 {
		was, off := middle(from)
		is, alsoOff := middle(to)
		return is - was + 2*math.Hypot(off, alsoOff)
	}
	n := len(series)
	most := int64(max(2*rise(series[:n/2], series[n/2:]), rise(series[:n/4], series[n-n/4:])))
	return &most
}
