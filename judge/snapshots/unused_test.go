package snapshots

import (
	"math"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/stack"
	"strandline/torch/purpose"
)

func findingOf(t *testing.T, file string, kind finding.Kind) finding.Finding {
	t.Helper()
	a := judge(t, file)
	for _, f := range a.Findings {
		if f.Kind == kind {
			return f
		}
	}
	t.Fatalf("%s: no finding of kind %s", file, kind)
	return finding.Finding{}
}

// TestUnusedGraphs reads a recording of forward passes with gradients on, each output
// in place of the one before, that began after the first.
func TestUnusedGraphs(t *testing.T) {
	f := findingOf(t, "testdata/w23_own.forwardlate.pickle.gz", finding.Peak)
	e := f.Evidence.(*finding.PeakEvidence)
	if u := e.UnusedGraphs; u == nil || u.Bytes != 2220032 || u.Count != 2 || u.OlderBytes != 1110528 || !is(u.PeakWithoutOlderBytes, 35119360) {
		t.Errorf("unused graphs are %+v", u)
	}
	if in := e.Inferred; in == nil || in.ByPurpose["activations"] != 1110528 {
		t.Errorf("inferred is %+v", in)
	}
	if len(f.Remedies) != 1 || !strings.Contains(f.Remedies[0].Text, "no_grad") {
		t.Errorf("to do: %v", f.Remedies)
	}
}

// TestInferred reads a recording of one step of training that began after Adam had
// its states: the program knows of 453,376 bytes of parameters, and twice as much
// state.
func TestInferred(t *testing.T) {
	f := findingOf(t, "testdata/w23_own.late.pickle.gz", finding.Peak)
	e := f.Evidence.(*finding.PeakEvidence)
	for what, of := range map[string]finding.PurposeSums{"peak": {ByPurpose: e.ByPurpose, Inferred: e.Inferred}, "end": e.AtEnd} {
		in := of.Inferred
		if in == nil || in.ByPurpose["parameters"] != 453376 || in.ByPurpose["optimizer"] != 906752 || len(in.ByPurpose) != 2 || math.Abs(in.Confidence-0.9375) > 1e-9 {
			t.Errorf("at the %s: inferred is %+v", what, in)
		}
		if unknown := of.ByPurpose["unknown"]; unknown < 3*453376 {
			t.Errorf("at the %s: %d bytes are unknown, all that is inferred should be", what, unknown)
		}
	}
	if text := strings.Join(f.Detail, "\n"); !strings.Contains(text, "inferred, confidence 93.8%") {
		t.Errorf("the inference is not called one: %s", text)
	}
}

// TestAutocastCache reads a recording of inference under autocast, with Python's
// frames alone: the copies are half of the 16,678,912 bytes of linear weights.
func TestAutocastCache(t *testing.T) {
	f := findingOf(t, "testdata/w23_own.autocast.pickle.gz", finding.AutocastCache)
	if e := f.Evidence.(*finding.AutocastEvidence); e.CacheBytes != 8339456 || e.KeptForBackwardBytes != 0 || e.PeakWithoutBytes != 55087360 {
		t.Errorf("evidence: %+v", e)
	}
	if len(f.Remedies) != 1 || !strings.Contains(f.Remedies[0].Setting, "cache_enabled=False") {
		t.Errorf("to do: %v", f.Remedies)
	}
}

// TestSpikeRemedies gives each kind of place its own.
func TestSpikeRemedies(t *testing.T) {
	const torch = "/opt/conda/lib/python3.11/site-packages/torch/"
	wrapper, train := stack.Frame{File: torch + "optim/optimizer.py", Function: "wrapper"}, stack.Frame{File: "train.py", Function: "main"}
	forward := []stack.Frame{{File: "model.py", Function: "forward"}, train}
	for _, c := range []struct {
		name   string
		frames []stack.Frame
		relief purpose.Relief
		want   string
	}{
		{"foreach", []stack.Frame{{File: torch + "optim/adam.py", Function: "_multi_tensor_adam"}, wrapper, train}, purpose.Relief{Bytes: 10}, "fused=True"},
		{"one after the other", []stack.Frame{{File: torch + "optim/adam.py", Function: "_single_tensor_adam"}, wrapper, train}, purpose.Relief{Bytes: 10}, "without temporaries"},
		{"an optimizer of the program's", []stack.Frame{{File: "adam.py", Function: "step"}, wrapper, train}, purpose.Relief{Bytes: 10}, "in place"},
		{"casts", forward, purpose.Relief{Bytes: 10, Cast: 9}, "cache_enabled=False"},
		{"casts that are kept", forward, purpose.Relief{Bytes: 10, Cast: 9, Kept: 10}, "would not free them"},
		{"many layers", forward, purpose.Relief{Bytes: 10, Kept: 10, Count: 10}, "checkpoint"},
		{"anything else", forward, purpose.Relief{Bytes: 10}, "in chunks"},
	} {
		got := spikeRemedies(c.frames, &c.relief)
		if len(got) != 1 || !strings.Contains(got[0].Setting+got[0].Text+got[0].Detail, c.want) {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}
