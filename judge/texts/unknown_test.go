package texts

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/logs"
	"strandline/logs/failure"
)

// TestUnknownWording judges errors whose words no table has, by the figures that they state.
func TestUnknownWording(t *testing.T) {
	for _, c := range []struct {
		name         string
		host         bool
		figures      map[failure.Figure]float64
		quote        string
		words        map[string]string
		cause, title string
	}{
		{"host", true, nil, "", nil, "", "the host's memory ran out, according to an error in unknown wording"},
		{"a request of the host", true, map[failure.Figure]float64{failure.Request: 5 << 30}, "", nil, shortage.TooBig, ": 5 GiB was requested"},
		{"a request above a limit of the host", true, map[failure.Figure]float64{failure.Request: 5 << 30, failure.Limit: 4 << 30}, "", nil, shortage.Limit, ": 5 GiB was requested, and 4 GiB is allowed"},
		{"device", false, nil, "", nil, "", "memory ran out on the device"},
		{"more than was free", false, map[failure.Figure]float64{failure.Request: 5 << 30, failure.Free: 1 << 30}, "", nil, shortage.TooBig, ": 5 GiB was requested, and 1 GiB was free"},
		{"less than was free", false, map[failure.Figure]float64{failure.Request: 1 << 30, failure.Free: 5 << 30}, "", nil, "", ": 1 GiB was requested, and 5 GiB was free"},
		{"more than the device has", false, map[failure.Figure]float64{failure.Request: 25 << 30, failure.Capacity: 24 << 30}, "", nil, shortage.TooBig, ": 25 GiB was requested, of 24 GiB in total"},
		{"more than is left of the device", false, map[failure.Figure]float64{failure.Request: 5 << 30, failure.Capacity: 24 << 30, failure.Active: 20 << 30}, "", nil, shortage.TooBig, ", of 24 GiB in total"},
		{"what fits the device", false, map[failure.Figure]float64{failure.Request: 3 << 30, failure.Capacity: 24 << 30, failure.Active: 20 << 30}, "", nil, "", ": 3 GiB was requested"},
		{"above a limit with what was held", false, map[failure.Figure]float64{failure.Request: 3 << 30, failure.Limit: 10 << 30, failure.Active: 8 << 30}, "", nil, shortage.Limit, "3 GiB was requested, and 10 GiB is allowed"},
		{"within the limit", false, map[failure.Figure]float64{failure.Request: 1 << 30, failure.Limit: 10 << 30, failure.Active: 8 << 30}, "", nil, "", ": 1 GiB was requested"},
		{"a limit alone", false, map[failure.Figure]float64{failure.Limit: 10 << 30}, "size exceeds the maximum", nil, shortage.Limit, "on the device"},
		{"whose memory is not said", false, map[failure.Figure]float64{failure.Request: 5 << 30}, "", map[string]string{"unclear": "yes"}, shortage.TooBig, "the host's memory ran out"},
	} {
		words := c.words
		if words == nil {
			words = map[string]string{}
		}
		f := failure.Failure{Line: 1, Kind: failure.Unknown, Host: c.host, Source: failure.SourceDriver, Figures: c.figures, Words: words, Quote: c.quote, Count: 1}
		s := Statement{Text: &logs.Text{Failures: []failure.Failure{f}}}
		found := s.Judge(Options{})
		if len(found) != 1 {
			t.Fatalf("%s: %d findings", c.name, len(found))
		}
		got := found[0]
		if e := got.Evidence.(*finding.OOMEvidence); e.Cause != c.cause || !strings.Contains(got.Title, c.title) || got.Confidence > 0.5 || len(got.Remedies) == 0 {
			t.Errorf("%s: cause %q, confidence %v: %s", c.name, e.Cause, got.Confidence, got.Title)
		}
	}
}

// TestImpossibleCapacity leaves out a size of the device that the message contradicts.
func TestImpossibleCapacity(t *testing.T) {
	const text = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.00 GiB already allocated; 1.00 GiB free; 11.00 GiB reserved in total by PyTorch)"
	for capacity, refused := range map[int64]bool{8 << 30: true, 16 << 30: false} {
		f := alone(t, text, Options{Capacity: &capacity})
		if said := strings.Contains(strings.Join(f.Detail, "\n"), "8 GiB"); said != refused {
			t.Errorf("%d bytes: %s\n%q", capacity, f.Title, f.Detail)
		}
	}
}

// TestHoldersOfTheKernel names who else held memory by the kernel's table, in pages.
func TestHoldersOfTheKernel(t *testing.T) {
	f := failure.Failure{Line: 1, Kind: failure.KernelKill, Host: true, Source: failure.SourceKernel, Figures: map[failure.Figure]float64{}, Count: 1,
		Words: map[string]string{"victim": "python3", "others": "data loader 77 1048576\nidle 78 0\nnot a row\n"}}
	s := Statement{Text: &logs.Text{Failures: []failure.Failure{f}}}
	text := strings.Join(s.Judge(Options{})[0].Detail, "\n")
	if !strings.Contains(text, "data loader") || strings.Contains(text, "idle") || strings.Contains(text, "not a") {
		t.Error(text)
	}
}

// TestOneBlock advises pieces where the platform grants no block of that size.
func TestOneBlock(t *testing.T) {
	f := alone(t, "RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! Tried to allocate 5.00 GiB (GPU  0; 15.00 GiB total capacity; 1.00 GiB already allocated; 1.20 GiB reserved in total by PyTorch)", Options{})
	if !strings.Contains(f.Title, "no block larger than 4 GiB") || !strings.Contains(f.Remedies[0].Text, "in pieces below 4 GiB") {
		t.Errorf("%s: %+v", f.Title, f.Remedies)
	}
}
