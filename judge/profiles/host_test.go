package profiles

import (
	"fmt"
	"testing"

	"strandline/finding"
	"strandline/profiles"
)

func TestGrown(t *testing.T) {
	const mib = 1 << 20
	size := func(n int64) *int64 { n *= mib; return &n }
	var s Series
	for i := range int64(8) {
		s.Files = append(s.Files, &profiles.File{Name: fmt.Sprintf("smaps-%d", i), Format: "smaps", Host: &profiles.Host{
			RSS: size(1000 + 12*i), Anonymous: size(500 + 10*i), Heap: size(100 + 10*i), // all growth is the heap's
			Shared: size(50 + 8*(i%2)), File: size(200 + 2*i), Kernel: size(1),
		}})
	}
	a := Judge([]Series{s})
	if a.Verdict != finding.Leaking {
		t.Errorf("verdict %s", a.Verdict)
	}
	var got []string
	for _, f := range a.Findings {
		got = append(got, fmt.Sprintf("%s %s", f.Kind, f.Severity))
	}
	if text := fmt.Sprint(got); text != "[heap-leak problem file-mapping info usage info]" {
		t.Errorf("findings %s", text)
	}
	if f := a.Findings[0]; *f.Bytes != 70*mib || *f.BytesPerStep != 10*mib {
		t.Errorf("the heap: %d, %d a text", *f.Bytes, *f.BytesPerStep)
	}
	for _, f := range s.Files { // nothing grows
		f.Host = s.Files[0].Host
	}
	if a := Judge([]Series{s}); a.Verdict != finding.OK {
		t.Errorf("without growth: %s, %v", a.Verdict, a.Findings)
	}
}

// TestEarlier judges one text that states its figures several times.
func TestEarlier(t *testing.T) {
	f := &profiles.File{Name: "rss.txt", Format: "pmap"}
	for i := range int64(8) {
		n := (100 + 10*i) << 20
		f.Earlier = append(f.Earlier, profiles.Host{RSS: &n})
	}
	f.Host = &f.Earlier[7]
	f.Earlier = f.Earlier[:7]
	a := Judge([]Series{{Files: []*profiles.File{f}}})
	if len(a.Findings) == 0 || a.Findings[0].Kind != finding.Unexplained || *a.Findings[0].Bytes != 70<<20 {
		t.Errorf("%s: %+v", a.Verdict, a.Findings)
	}
}
