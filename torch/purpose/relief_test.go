package purpose

import (
	"testing"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// TestReliefs holds the peak without a place against a history in which its
// passing allocations are left out, one after another.
func TestReliefs(t *testing.T) {
	for _, file := range []string{"../../examples/peak/step-2.pickle", "../../examples/logits/step-3.pickle.gz", "../../judge/snapshots/testdata/honest.pickle.gz"} {
		s, err := snapshot.Open(file, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		line := timeline.New(s, s.Devices()[0])
		j := newJudge(line, line.Trace.Len())
		reliefs := j.reliefs(j.atPeak())
		if len(reliefs) == 0 {
			t.Errorf("%s: no place makes a part of the peak", file)
		}
		for i, r := range reliefs {
			if i > 0 && r.Without < reliefs[i-1].Without {
				t.Errorf("%s: %s lowers the peak more than those before it", file, r.Site.File)
			}
			requested := make([]int64, line.Trace.Len())
			line.Walk(func(k int, n, _ int64) bool { requested[k] = n; return true })
			var atPeak int64
			for a := range line.Allocs {
				if s.Stacks.Site(line.Stack(a)) != r.Site || !j.fleeting(a) {
					continue
				}
				for k := line.Birth(a); k < line.Death(a); k++ {
					requested[k] -= line.Size(a)
				}
				if line.Birth(a) <= line.PeakRequested.Event && line.PeakRequested.Event < line.Death(a) {
					atPeak += line.Size(a)
				}
			}
			first, peak := 0, int64(0)
			for k, n := range requested {
				if n > peak {
					first, peak = k, n
				}
			}
			if r.Without != peak || r.Event != first || r.Bytes != atPeak || r.Kept > r.Bytes {
				t.Errorf("%s: without %v %d at event %d, %d at the peak; want %d, %d, %d", file, r.Site, r.Without, r.Event, r.Bytes, peak, first, atPeak)
			}
		}
	}
}

// TestReliefsNeedSteps checks that nothing is found if the ends of steps are unknown.
func TestReliefsNeedSteps(t *testing.T) {
	m := Of(lineOf([]step{made("a", 100, "loss"), made("b", 900, "loss"), freed("b", "loss"), made("c", 50, "loss")}))
	if len(m.Reliefs) > 0 {
		t.Errorf("%+v", m.Reliefs)
	}
}

func TestCopyOp(t *testing.T) {
	const py = "/home/user/train.py"
	op := func(names ...string) (out []stack.Frame) {
		for _, n := range names {
			out = append(out, stack.Frame{File: "libtorch_cpu.so", Function: "at::_ops::" + n + "(at::Tensor const&)"})
		}
		return out
	}
	for _, c := range []struct {
		name   string
		native []stack.Frame
		want   string
	}{
		{"clone", op("empty_strided::redispatch", "empty_strided::call", "clone::redispatch", "clone::call"), "clone"},
		{"contiguous", op("empty_memory_format::call", "empty_like::call", "clone::call", "contiguous::call"), "clone"},
		{"inside batch_norm", op("empty_like::call", "clone::call", "contiguous::call", "batch_norm::call"), "clone"},
		{"float", op("empty_strided::call", "_to_copy::redispatch", "_to_copy::call", "to_dtype::call"), "_to_copy"},
		{"to the device", op("empty_strided::call", "_to_copy::call", "to_device::call"), ""},
		{"reshape of what was expanded", op("empty_like::call", "clone::call", "reshape::call"), ""},
		{"a sum", op("empty_strided::call", "add_Tensor::call"), ""},
		{"zeros like another", op("empty_memory_format::call", "empty_like::call", "zeros_like::call"), ""},
		{"no operator", op(), ""},
		{"autocast", append(op("empty_strided::call", "_to_copy::call", "to_dtype::call"),
			stack.Frame{File: "libtorch_cpu.so", Function: "at::autocast::cached_cast(c10::ScalarType)"}), ""},
	} {
		frames := append(c.native, stack.Frame{File: py, Line: 3, Function: "step"})
		if got := copyOp(frames); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := copyOp(c.native); got != "" {
			t.Errorf("%s, in a thread of the engine: %q", c.name, got)
		}
	}
}

// TestKeptThroughAFailure gives a place no other purpose than the peak does, where
// the pass that the peak is in was cut off and its memory released.
func TestKeptThroughAFailure(t *testing.T) {
	m := Of(lineOf(join(setup, trained, trained[:5], []step{made("h2", 9000, "forward"), ranOut, freed("h2", "loss"),
		freed("h", "loss"), freed("x", "loss"), freed("loss", "loss")}, trained)))
	if len(m.Reliefs) == 0 || m.Reliefs[0].Bytes < 9000 || m.Reliefs[0].Kept != m.Reliefs[0].Bytes {
		t.Errorf("%+v", m.Reliefs)
	}
}
