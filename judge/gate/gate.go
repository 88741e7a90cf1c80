// Package gate decides, from the memory that a program held over its steps, whether the
// program leaks, does not leak, or has not run long enough to tell. Package trend decides
// about a series; this package adds how much must be known before there is a verdict, the
// growth per step with its bounds, and what a limit allows.
package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/trend"
	"strandline/units"
)

// The metrics.
const (
	Host   = "host"   // main memory that does not belong to a file
	Device = "device" // what PyTorch's allocator has allocated
)

// A Series is the memory of a process, or of several together, over its steps.
type Series struct {
	Metric  string // Host or Device
	Process string // or which processes, for a person
	PID     int    // of the process if it is one; 0 where that is not known
	Device  *int
	Unit    string // of At: Step, Second or Request
	At      []float64
	Bytes   []float64
	// InUse is the part of Bytes that is in use according to the allocators, without
	// what they keep for later; nil if that is not known for all of them.
	InUse []float64
	// Own is what the measurement itself may have added, in bytes.
	Own float64
	// Traced is how many of the last levels a trace in the process may have raised.
	Traced int
}

// The units of a series.
const (
	Step    = "step"
	Second  = "second"
	Request = "request"
)

// A Growth is how many bytes are added per unit, and the bounds between which the true
// value lies in 9 of 10 cases.
type Growth struct {
	Unit            string
	Rate, Low, High float64
}

// String returns the growth in words, such as "64 KiB a step (62 KiB to 66 KiB)".
func (g Growth) String() string {
	return fmt.Sprintf("%s a %s (%s to %s)", Size(g.Rate), g.Unit, Size(g.Low), Size(g.High))
}

// Size is an amount of bytes in words.
func Size(bytes float64) string { return units.Bytes(int64(math.Round(bytes))) }

// Limits are what is allowed. A nil Growth allows no growth; a nil Peak means no limit.
type Limits struct {
	Growth *int64 // bytes per unit
	Peak   *int64 // bytes
	// Together reports whether Peak is one limit for all metrics, which a metric that no
	// process uses does not exceed.
	Together bool
	WarmUp   float64 // units at the beginning that are not judged
	// WarmUpSeconds is a time at the beginning that is not judged, for callers to turn
	// into WarmUp.
	WarmUpSeconds float64
}

// A Judgment is the decision about one series.
type Judgment struct {
	Series  *Series
	Verdict finding.Verdict // ok, leak or unknown
	Course  trend.Course
	Growth  Growth
	InUse   bool // the growth is that of memory in use, without what an allocator keeps
	allowed bool // it grows, and no more than a limit allows
	// Why states what the verdict rests on, or what is missing for a verdict.
	Why string
}

// The assumptions of [Judge].
const (
	// minSteps and minSamples are the least that is judged, by steps and by time;
	// a program may still be starting during a time shorter than shortest.
	minSteps   = 20
	minSamples = 40
	shortest   = 2.0 // seconds
	// open is the probability of growth above which growth is not ruled out.
	open = 0.3
	// Grain is the growth of main memory over a whole series, in bytes, that programs
	// have without a leak: pages that are touched for the first time, garbage that is
	// not collected yet. kept is the same for memory that is known not to be in use:
	// pieces that do not fit. Growth above small per step could exceed Grain in a
	// longer series, so the verdict stays open.
	Grain   = 4 << 20
	maxKept = 32 << 20
	small   = 16 << 10
	// minFloor is the least rise of the low levels as a share of the growth, of which a leak
	// has two thirds: memory that falls to where it was, like garbage that is collected at
	// longer and longer intervals, does not leak.
	minFloor = 1. / 3
)

// A course is what a series does, and how much it grew overall, in bytes: by its slope,
// from the middle level to the end, and from the low levels of its first third to those of
// its last.
type course struct {
	trend.Course
	Growth
	grown, rose, floor float64
}

func follow(unit string, at, bytes []float64) *course {
	rate, low, high := trend.Slope(at, bytes)
	third := len(bytes) / 3
	return &course{
		trend.JudgeLevels(at, bytes), Growth{unit, rate, low, high}, rate * (at[len(at)-1] - at[0]),
		quantile(bytes[len(bytes)-max(len(bytes)/20, 3):], 0.5) - quantile(bytes, 0.5),
		quantile(bytes[len(bytes)-third:], 0.05) - quantile(bytes[:third], 0.05),
	}
}

// followLeak is follow for a leak whose slope is that of its warm-up, too: no line is
// near a curve that bends, so the bounds of its slope say nothing. If the later half
// surely grows on its own, and by at least so many bytes, it is what goes on. It must lie
// above the earlier half: what grows after a fall may be a tooth of a saw.
func followLeak(unit string, at, bytes []float64, minBytes float64) *course {
	c := follow(unit, at, bytes)
	half := len(at) / 2
	if !c.Leaks() || c.Low > 0 || len(at)-half < minSteps {
		return c
	}
	if quantile(bytes[half:], 0.1) < quantile(bytes[:half], 0.9) {
		return c
	}
	if later := follow(unit, at[half:], bytes[half:]); later.Leaks() && later.Low > 0 && later.grown >= minBytes {
		return later
	}
	return c
}

// quantile is the level below which that share of some levels is.
func quantile(bytes []float64, share float64) float64 {
	return slices.Sorted(slices.Values(bytes))[int(share*float64(len(bytes)-1))]
}

// grows reports whether memory keeps growing: the curves that go on growing have most of
// the weight, and the slope after a warm-up is above 0 too. It is undecided if only one
// of the two holds.
func (c *course) grows(minBytes, own float64) (yes, undecided bool) {
	switch {
	case c.late(minBytes, own):
		return false, true
	case c.grown < own:
		return false, false
	case c.Leaks() && c.grown < minBytes:
		return false, c.Low > small
	case c.Leaks():
		yes = c.Low > 0 && c.floor >= minFloor*c.grown
		return yes, !yes
	case c.Shape == trend.Unknown:
		return false, true
	}
	return false, c.Growing > open && c.Low > 0 && c.grown >= minBytes
}

// late reports whether what grows began to do so near the end: a slope over the whole
// series does not see it, and nobody can know yet whether it goes on.
func (c *course) late(minBytes, own float64) bool {
	return c.Leaks() && c.grown < max(minBytes, own) && c.rose >= max(minBytes, own)
}

// Judge decides whether a series leaks. If the memory in use is known, it decides: memory
// that merely stays with the allocator is not a leak unless there is a lot of it.
func Judge(s *Series, o Limits) Judgment {
	j := Judgment{Series: s, Verdict: finding.Unknown}
	from := afterWarmUp(s, o.WarmUp)
	at := s.At[from:]
	if j.Why = missingEvidence(s, at); j.Why != "" {
		return j
	}
	minBytes := 0.0
	if s.Metric == Host {
		minBytes = Grain
	}
	c := followLeak(s.Unit, at, s.Bytes[from:], max(minBytes, s.Own))
	grows, undecided := c.grows(minBytes, s.Own)
	late := c
	basis := fmt.Sprintf("%s over %s", units.Plural(int64(c.Samples), "sample"), span(s.Unit, at))
	if len(s.InUse) == len(s.At) {
		used := followLeak(s.Unit, at, s.InUse[from:], max(minBytes, s.Own))
		usedGrows, usedUndecided := used.grows(minBytes, s.Own)
		switch {
		case usedGrows:
			c, grows, j.InUse = used, true, true
			basis += " of memory in use"
		case grows && used.Shape == trend.SawtoothGrowth && used.Low <= 0:
			// The troughs of what is in use grow. A line is not near its teeth, so the
			// bounds are those of what is held.
		case grows && c.grown < maxKept:
			grows, undecided = false, true
		case !grows && (!c.late(minBytes, s.Own) || c.rose < maxKept):
			undecided, late = usedUndecided, used
		}
	}
	j.Course, j.Growth = c.Course, c.Growth
	switch {
	case grows && o.Growth != nil && c.High <= float64(*o.Growth):
		j.allowed = true
		j.Verdict, j.Why = finding.OK, "grows, and by no more than is allowed; "+basis
	case grows && o.Growth != nil && c.Low <= float64(*o.Growth):
		j.Why = fmt.Sprintf("grows by %s, which may be more or less than the %s allowed: run more steps", j.Growth, units.Bytes(*o.Growth))
	case grows:
		j.Verdict, j.Why = finding.Leaking, "keeps growing; "+basis
	case undecided && late.late(minBytes, s.Own) && o.Growth != nil && 2*late.Course.Rate <= float64(*o.Growth):
		j.Verdict, j.Why = finding.OK, "grows near the end, and by less than is allowed; "+basis
	case undecided && late.late(minBytes, s.Own):
		j.Why = fmt.Sprintf("began to grow near the end, and grew by %s; %s: run twice as long", Size(late.rose), basis)
	case undecided && c.Leaks() && c.grown < minBytes && c.Low > small:
		j.Why = fmt.Sprintf("grows by %s so far, as programs also do without a leak; %s: run %s", Size(c.grown), basis, units.Plural(int64(math.Ceil(minBytes/c.Low)), s.Unit))
	case undecided:
		j.Why = fmt.Sprintf("grows, and may be about to level off; %s: run twice as long", basis)
	case c.Leaks():
		j.Verdict, j.Why = finding.OK, fmt.Sprintf("grew by %s, as programs do without a leak; %s", Size(c.grown), basis)
	default:
		j.Verdict, j.Why = finding.OK, described(&j.Course)+"; "+basis
	}
	return j
}

// afterWarmUp is the first index after the units at the beginning that are not judged.
func afterWarmUp(s *Series, units float64) int {
	for i, x := range s.At {
		if x >= s.At[0]+units {
			return i
		}
	}
	return len(s.At)
}

// missingEvidence states what is missing for a verdict; it is empty if nothing is.
func missingEvidence(s *Series, at []float64) string {
	switch n := len(at); {
	case s.Unit != Second && n < minSteps:
		return fmt.Sprintf("%s of memory at the end of a %s: a verdict needs %d after the warm-up", units.Plural(int64(n), "sample"), s.Unit, minSteps)
	case s.Unit == Second && (n < minSamples || at[n-1]-at[0] < shortest):
		some := "no sample"
		if n > 0 {
			some = fmt.Sprintf("%s in %s", units.Plural(int64(n), "sample"), units.Seconds(at[n-1]-at[0]))
		}
		return fmt.Sprintf("%s: without steps, a verdict needs %d samples and %s after the warm-up", some, minSamples, units.Seconds(shortest))
	}
	return ""
}

// span is how long a series is, in words.
func span(unit string, at []float64) string {
	long := at[len(at)-1] - at[0]
	if unit == Second {
		return units.Seconds(long)
	}
	return units.Plural(int64(math.Round(long)), unit)
}

// described states in words what a series that does not leak does.
func described(c *trend.Course) string {
	level := Size(c.Level)
	switch c.Shape {
	case trend.Plateau:
		return "grew and levels off at " + level
	case trend.Step:
		return "changed in one or a few steps, and is constant at " + level
	case trend.Sawtooth:
		return "grows and is released again and again"
	case trend.Falling:
		return "falls, to " + level + " at the end"
	}
	return "does not grow; it is at " + level
}

// Name states whose memory a series measures, and which kind.
func (s *Series) Name() string {
	what := "host memory"
	if s.Metric == Device {
		what = "device memory"
		if s.Device != nil {
			what = fmt.Sprintf("device %d", *s.Device)
		}
	}
	return strings.TrimSpace(what + " of " + s.Process)
}

// Verdict combines several judgments: leak if one leaks, unknown if one is unknown or
// there are none.
func Verdict(all []Judgment) finding.Verdict {
	if len(all) == 0 {
		return finding.Unknown
	}
	out := finding.OK
	for i := range all {
		switch all[i].Verdict {
		case finding.Leaking:
			return finding.Leaking
		case finding.Unknown:
			out = finding.Unknown
		}
	}
	return out
}
