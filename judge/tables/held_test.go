package tables

import (
	"testing"

	"strandline/finding"
	"strandline/profiles"
)

// TestHeld: of one reading only who holds the memory can be told.
func TestHeld(t *testing.T) {
	anonymous, cache, limit := int64(1<<30), int64(3<<30), int64(8<<30)
	column := func(process, name string, gib float64) profiles.Column {
		return profiles.Column{Process: process, Name: name, Times: []float64{0}, Bytes: []float64{gib * (1 << 30)}}
	}
	total := column("app", "MEM USAGE", 4)
	total.Limit = &limit
	a := Judge([]Series{{Files: []*profiles.File{{Name: "now.txt", Format: profiles.Levels, Host: &profiles.Host{Anonymous: &anonymous, Cache: &cache}, Columns: []profiles.Column{
		column("pid 7 worker", "RSS", 1), column("pid 8 worker", "RSS", 1), column("pid 9 server", "RSS", 1.5), total,
	}}}}})
	want := []string{
		"now.txt: 1 GiB anonymous, 3 GiB page cache, 75% is page cache, which the kernel takes back when memory is short: not a leak",
		"worker holds the most: 2 GiB in 2 processes; 3.5 GiB in all 3",
		"app holds the most: 4 GiB of 8 GiB",
	}
	if a.Verdict != finding.Unknown || len(a.Findings) != len(want) {
		t.Fatalf("%s: %+v", a.Verdict, a.Findings)
	}
	for i, f := range a.Findings {
		if f.Title != want[i] || f.Severity != finding.Info {
			t.Errorf("%q, want %q", f.Title, want[i])
		}
	}
}
