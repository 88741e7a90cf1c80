package tables

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/profiles"
)

// TestCacheGrows tells PyTorch's cache from its tensors where a table has both levels.
func TestCacheGrows(t *testing.T) {
	column := func(name string, grows float64) profiles.Column {
		c := profiles.Column{Name: name}
		for i := range 60 {
			c.Times = append(c.Times, float64(i))
			c.Bytes = append(c.Bytes, 200<<20+float64(i%3)*(1<<20)+float64(i)*grows)
		}
		return c
	}
	for name, c := range map[string]struct {
		allocated, reserved float64
		first, remedy       string
	}{
		"cache":   {0, 40 << 20, "Memory reserved", "that gives back at most 2.3"},
		"tensors": {40 << 20, 41 << 20, "Memory allocated", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &profiles.File{Format: profiles.Levels, Columns: []profiles.Column{column("Memory allocated", c.allocated), column("Memory reserved", c.reserved)}}
			found := Judge([]Series{{Files: []*profiles.File{f}}}).Findings
			if len(found) == 0 || found[0].Severity != finding.Problem || !strings.HasPrefix(found[0].Title, c.first) {
				t.Fatalf("%+v, want %s", found, c.first)
			}
			text := ""
			for _, x := range found {
				for _, r := range x.Remedies {
					text += r.Text
				}
			}
			if strings.Contains(text, "return it regularly") != (c.remedy != "") || !strings.Contains(text, c.remedy) {
				t.Errorf("%s, want %s", text, c.remedy)
			}
		})
	}
}
