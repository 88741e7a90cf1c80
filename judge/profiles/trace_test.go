package profiles

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/profiles"
)

func TestSteps(t *testing.T) {
	f := &profiles.File{Name: "trace.json", Format: "kineto"}
	const n = 8
	for i := range n {
		f.Marks = append(f.Marks, profiles.Mark{Name: "ProfilerStep"})
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

func TestFailedCalls(t *testing.T) {
	for name, of := range map[string]string{"cudaMalloc_v3020": "device", "cudaHostAlloc_v3020": "host", "cuMemAllocHost_v2": "host"} {
		f := &profiles.File{Name: "x.sqlite", Format: "nsys", Failed: []profiles.Call{{Name: name, Status: 2, Count: 3}}}
		a := Judge([]Series{{Files: []*profiles.File{f}}})
		if a.Verdict != finding.RanOut || a.Findings[0].Evidence.(*finding.OOMEvidence).Of != of || !strings.Contains(a.Findings[0].Title, name+" returned 2 (out of memory), 3 times") {
			t.Errorf("%s: %s, %+v", name, a.Verdict, a.Findings)
		}
	}
}
