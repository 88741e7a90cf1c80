package export

import (
	"cmp"
	"io"
	"slices"

	"github.com/google/pprof/profile"

	"strandline/host/store/recording"
	"strandline/stack"
)

// PprofOfTrace writes what a trace saw as a gzipped profile. In use is what is
// mapped at the end, allocated what was mapped since the trace began, as far as
// it was not unmapped before it could be counted.
func PprofOfTrace(w io.Writer, run *recording.Run) error {
	p := newProfiler(nil)
	p.out.Mapping[0].File = run.Name
	for i := range run.Document.Stacks {
		s := &run.Document.Stacks[i]
		sample := &profile.Sample{
			Value: []int64{allocObjects: s.Calls, allocSpace: max(s.MadeBytes, s.LiveBytes), inuseObjects: s.LiveCount, inuseSpace: s.LiveBytes},
			Label: map[string][]string{"call": {s.Call}},
		}
		for _, f := range tracedFrames(s) {
			sample.Location = append(sample.Location, p.location(f))
		}
		p.out.Sample = append(p.out.Sample, sample)
	}
	const microsecond, second = 1000, 1e9 // in ns
	out := p.profile()
	out.TimeNanos, out.DurationNanos = run.BeganUS*microsecond, int64(run.Document.Duration*second)
	out.Comments = []string{"host memory that was mapped while the process was watched"}
	return out.Write(w)
}

// FoldedOfTrace writes what is mapped at the end as folded stacks, the most
// bytes first.
func FoldedOfTrace(w io.Writer, run *recording.Run) error {
	var lines folder
	for i := range run.Document.Stacks {
		s := &run.Document.Stacks[i]
		if s.LiveBytes > 0 {
			lines.add(s.LiveBytes, func() string { return fold(tracedFrames(s)) })
		}
	}
	return lines.write(w)
}

// tracedFrames are the frames of a stack, innermost first, the file of native
// code being the object that holds it.
func tracedFrames(s *recording.Stack) []stack.Frame {
	out := make([]stack.Frame, 0, len(s.Frames))
	text := func(t *string) string {
		if t == nil {
			return ""
		}
		return *t
	}
	for _, f := range s.Frames {
		frame := stack.Frame{Function: text(f.Function), File: cmp.Or(text(f.File), text(f.Object))}
		if f.Line != nil {
			frame.Line = *f.Line
		}
		out = append(out, frame)
	}
	if len(out) == 0 {
		out = append(out, stack.Frame{Function: unknown})
	}
	return slices.Clip(out)
}
