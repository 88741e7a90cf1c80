package tables

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/profiles"
	"strandline/stack"
)

func TestSteps(t *testing.T) {
	f := &profiles.File{Name: "trace.json", Format: "kineto"}
	const n = 8
	for i := range n {
		f.Checkpoints = append(f.Checkpoints, profiles.Checkpoint{Name: "ProfilerStep"})
		f.Spans = append(f.Spans,
			profiles.Span{Device: "cuda:0", Born: i, Died: n, Bytes: 1 << 20},     // kept
			profiles.Span{Device: "cuda:1", Born: i, Died: i + 1, Bytes: 1 << 20}) // of its step
	}
	a := Judge([]Series{{Files: []*profiles.File{f}}})
	if a.Verdict != finding.Leaking || len(a.Findings) != 1 {
		t.Fatalf("%s: %v", a.Verdict, a.Findings)
	}
	if f := a.Findings[0]; *f.Device != 0 || *f.Bytes != n<<20 || *f.BytesPerStep != 1<<20 || f.Site != nil {
		t.Errorf("%+v", f)
	}
	f.Spans = f.Spans[:0]
	for i := range n {
		f.Spans = append(f.Spans, profiles.Span{Device: "cuda:1", Born: i, Died: i + 1, Bytes: 1 << 20})
	}
	if a := Judge([]Series{{Files: []*profiles.File{f}}}); a.Verdict != finding.OK {
		t.Errorf("nothing kept: %s, %v", a.Verdict, a.Findings)
	}
}

// TestStepPlace names the line of what steps leave, not that of the parameters.
func TestStepPlace(t *testing.T) {
	f := &profiles.File{Name: "trace.json", Format: "kineto"}
	frames := func(line int64) []stack.Frame {
		return []stack.Frame{{Function: "aten::clone"}, {File: "/me/train.py", Line: line, Function: "step"}}
	}
	const n = 8
	f.Spans = append(f.Spans, profiles.Span{Device: "cuda:0", Died: n, Bytes: 1 << 30, Stack: frames(3)})
	for i := range n {
		f.Checkpoints = append(f.Checkpoints, profiles.Checkpoint{Name: "ProfilerStep"})
		f.Spans = append(f.Spans, profiles.Span{Device: "cuda:0", Born: i, Died: n, Bytes: 1 << 20, Stack: frames(9)},
			profiles.Span{Device: "cuda:0", Born: i, Died: n, Bytes: 1 << 10, Stack: frames(10)})
	}
	a := Judge([]Series{{Files: []*profiles.File{f}}})
	if len(a.Findings) != 1 || a.Findings[0].Site == nil || a.Findings[0].Site.Line != 9 || len(a.Findings[0].Stack) != 2 {
		t.Errorf("%s: %+v", a.Verdict, a.Findings)
	}
}

func TestFailedCalls(t *testing.T) {
	for name, of := range map[string]string{"cudaMalloc_v3020": "device", "cudaHostAlloc_v3020": "host", "cuMemAllocHost_v2": "host"} {
		f := &profiles.File{Name: "x.sqlite", Format: "nsys", Failed: []profiles.Call{{Name: name, Status: 2, Count: 3}}}
		a := Judge([]Series{{Files: []*profiles.File{f}}})
		if a.Verdict != finding.RanOut || a.Findings[0].Evidence.(*finding.OOMEvidence).Of != of || !strings.Contains(a.Findings[0].Title, name+" returned 2 (out of memory), 3 times") {
			t.Errorf("%s: %s, %+v", name, a.Verdict, a.Findings)
		}
	}
	other := &profiles.File{Name: "x.sqlite", Format: "nsys", Failed: []profiles.Call{{Name: "cudaMalloc_v3020", Status: 700, Count: 1}}}
	if a := Judge([]Series{{Files: []*profiles.File{other}}}); a.Verdict == finding.RanOut {
		t.Errorf("a call that failed for another reason: %+v", a.Findings)
	}
}
