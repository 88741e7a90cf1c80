package export

import (
	"fmt"
	"io"
	"strconv"

	"github.com/google/pprof/profile"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// The sample types of a profile, by their place in a sample's values. pprof shows
// the last one by default.
const (
	allocObjects = iota
	allocSpace
	inuseObjects
	inuseSpace
	sampleTypes
)

// Pprof writes a gzipped profile as `go tool pprof` reads it.
//
// The sample types inuse_objects and inuse_space count the active blocks and
// their requested bytes. alloc_objects and alloc_space count the allocations of
// the recorded history, and those from before it that the file still shows:
// they were freed in the history, or are active at its end. A sample has the
// labels device, stream and, where it is known, pool.
func Pprof(w io.Writer, s *snapshot.Snapshot) error {
	p := newProfiler(s)
	for _, d := range s.Devices() {
		p.device(d)
	}
	return p.profile().Write(w)
}

// A sampleKey is what the samples of a profile differ by.
type sampleKey struct {
	heldBy
	device int
	stream snapshot.StreamID
	pool   snapshot.PoolID // 0 is unknown
}

type profiler struct {
	s         *snapshot.Snapshot
	values    map[sampleKey]*[sampleTypes]int64
	order     []sampleKey // by first appearance
	from, to  int64       // time of the history, 0 if unknown
	out       *profile.Profile
	locations map[stack.Frame]*profile.Location
	functions map[[2]string]*profile.Function // by name and file
}

func newProfiler(s *snapshot.Snapshot) *profiler {
	// A mapping marked as symbolized keeps pprof from looking for a binary.
	mapping := &profile.Mapping{ID: 1, File: "PyTorch", HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
	return &profiler{
		s: s, values: map[sampleKey]*[sampleTypes]int64{}, out: &profile.Profile{Mapping: []*profile.Mapping{mapping}},
		locations: map[stack.Frame]*profile.Location{}, functions: map[[2]string]*profile.Function{},
	}
}

func (p *profiler) add(k sampleKey, objects, space int, bytes int64) {
	v := p.values[k]
	if v == nil {
		v = new([sampleTypes]int64)
		p.values[k] = v
		p.order = append(p.order, k)
	}
	v[objects]++
	v[space] += bytes
}

// device adds the blocks and the allocations of a device.
func (p *profiler) device(d snapshot.Device) {
	active, why := map[uint64]sampleKey{}, missing(p.s, d)
	eachActive(p.s, d, func(g *snapshot.Segment, b *snapshot.Block) {
		k := sampleKey{heldBy{b.Stack, why[b.Addr]}, d.Index, g.Stream, g.Pool}
		active[b.Addr] = k
		p.add(k, inuseObjects, inuseSpace, b.Requested)
	})
	t := timeline.New(p.s, d)
	for i := range t.Allocs {
		k, ok := active[t.Addr(i)]
		if !ok || t.Death(i) != timeline.Never {
			k = eventKey(t, i)
		}
		p.add(k, allocObjects, allocSpace, t.Size(i))
	}
	p.times(d.Trace.Time)
}

// eventKey is the key of an allocation that is freed by the end: what is recorded
// with the event that made it, otherwise with the one that freed it.
func eventKey(t *timeline.Timeline, i int) sampleKey {
	k := sampleKey{heldBy: heldBy{stack: t.Stack(i)}, device: t.Device}
	if len(t.Snap.Stacks.Short(k.stack)) == 0 {
		k.missing = t.Missing(i)
	}
	event := t.Birth(i)
	if event == timeline.Never {
		event = t.Freed(i)
	}
	if event != timeline.Never {
		k.stream = t.Trace.Stream[event]
		if t.Trace.Pool != nil {
			k.pool = t.Trace.Pool[event]
		}
	}
	return k
}

// times widens the time of the profile.
func (p *profiler) times(times []int64) {
	for _, t := range times {
		if t > 0 && (p.from == 0 || t < p.from) {
			p.from = t
		}
		p.to = max(p.to, t)
	}
}

func (p *profiler) profile() *profile.Profile {
	bytes := &profile.ValueType{Type: "space", Unit: "bytes"}
	p.out.PeriodType, p.out.Period = bytes, 1
	p.out.SampleType = []*profile.ValueType{
		{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"},
		{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"},
	}
	const microsecond = 1000 // in ns
	p.out.TimeNanos, p.out.DurationNanos = p.from*microsecond, (p.to-p.from)*microsecond
	p.out.Comments = []string{"PyTorch device memory; bytes are as requested, before rounding"}
	for _, k := range p.order {
		p.out.Sample = append(p.out.Sample, &profile.Sample{
			Value: p.values[k][:], Location: p.stack(k.heldBy), Label: p.labels(k),
		})
	}
	return p.out
}

func (p *profiler) labels(k sampleKey) map[string][]string {
	out := map[string][]string{
		"device": {strconv.Itoa(k.device)},
		"stream": {streamName(p.s.Stream(k.stream))},
	}
	if k.pool != 0 {
		out["pool"] = []string{p.s.PoolOf(k.pool).String()}
	}
	return out
}

// streamName returns a short name for a cudaStream_t.
func streamName(stream uint64) string {
	if stream == 0 {
		return "default"
	}
	return fmt.Sprintf("0x%x", stream)
}

// stack is a stack's locations, innermost first.
func (p *profiler) stack(k heldBy) []*profile.Location {
	frames := p.s.Stacks.Short(k.stack)
	if k.missing != "" {
		frames = []stack.Frame{frameFor(k.missing)}
	}
	out := make([]*profile.Location, len(frames))
	for i, f := range frames {
		out[i] = p.location(f)
	}
	return out
}

func (p *profiler) location(f stack.Frame) *profile.Location {
	l := p.locations[f]
	if l == nil {
		l = &profile.Location{
			ID: uint64(len(p.locations) + 1), Mapping: p.out.Mapping[0],
			Line: []profile.Line{{Function: p.function(f), Line: f.Line}},
		}
		p.locations[f] = l
		p.out.Location = append(p.out.Location, l)
	}
	return l
}

// function is a frame's function. It has no system name: pprof would demangle
// it, and take the <module> of Python for an argument of a template.
func (p *profiler) function(f stack.Frame) *profile.Function {
	name, file := frameName(f), valid(f.File)
	out := p.functions[[2]string{name, file}]
	if out == nil {
		out = &profile.Function{ID: uint64(len(p.functions) + 1), Name: name, Filename: file}
		p.functions[[2]string{name, file}] = out
		p.out.Function = append(p.out.Function, out)
	}
	return out
}
