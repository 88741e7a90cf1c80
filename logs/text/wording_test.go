package text

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestWordings matches wordings with lines, and reads what is in their places.
func TestWordings(t *testing.T) {
	for _, c := range []struct{ wording, line, want string }{
		{"took {GiB}", "took 1.50 GiB and 3 s", "1.50 GiB"},
		{"took {GiB}", "took 1.50GB", "1.50GB"},
		{"took {GiB}", "took 1.50 MiB", ""},
		{"took {GiB}", "took -2 GiB", "-2 GiB"},
		{"took {GiB}", "took . GiB", ""},
		{"end.{…}mem={GiB}, of {digits}", "end. mem=x mem=2 GiB, of 7", "2 GiB|7"},
		{"end.{…}mem={GiB}, of {digits}", "end." + strings.Repeat(" mem=3", 200), ""},
		{"size{:signs}{bytes}", "size: 4 bytes", "4 bytes"},
		{"size{:signs}{bytes}", "size  =  4.5 MiB", "4.5 MiB"},
		{"cache{:tail}: {name} size", "cache_unified:   CUDA0   size", "CUDA0"},
		{"cache{:tail}: {name} size", "cache: CUDA0 sizes", "CUDA0"},
		{"cache{:tail}: {name} size", "cache:", ""},
		{"{count} tokens", "1,024 tokens", "1,024"},
		{"# {digits}", "#12345678901234567890", "123456789012345"},
	} {
		var m Match
		w := NewWording(c.wording)
		line := []byte(c.line)
		got := ""
		if m.MatchAfter(line, len(strings.TrimSpace(strings.SplitN(c.wording, "{", 2)[0])), w) {
			got = string(bytes.Join(m.Text[:m.Count], []byte("|")))
		}
		if got != c.want {
			t.Errorf("%s in %s: got %q, want %q", c.wording, c.line, got, c.want)
		}
	}
}

// TestLastWording finds the last place where a wording is in a text without white space.
func TestLastWording(t *testing.T) {
	for _, c := range []struct{ wording, text, want string }{
		{"allocate {n:size}", "allocate2.00gib,allocate3mib.", "allocate 16:3mib"},
		{"allocate {n:int}, then", "allocate2,000,thenallocate3", "allocate 0:2,000"},
		{"used {a:size} of {b:size}", "used3.0kof2.0ksflag", "used 0:3.0k|2.0k"},
		{"{lib:word}_failed", "error:x_failed", "_failed 0:error:x"},
		{"{n:gib} is needed", "(4096),(2.50gibisneeded", "isneeded 8:2.50gib"},
		{"process {pid:int}{…}({who:any})", "process12,uid(train)(x)", "process 0:12,|train"},
		{"rss:{n:kb}, file", "rss:2048kb,file", "rss: 0:2048kb"},
		{"rss:{n:kb}, file", "rss:2048,file", "rss: -"},
		{"end {who:word}", "end/a/b", "end 0:/"},
		{"allocate {n:size}", "allocate" + strings.Repeat("1", maxNumberLength), "allocate 0:" + strings.Repeat("1", maxNumberLength)},
		{"allocate {n:size}", "allocate" + strings.Repeat("1", maxNumberLength+1), "allocate -"}, // a row of digits is no number
	} {
		var m Match
		w := NewWording(c.wording).Compact()
		got := w.Key + " -"
		if at, ok := m.Last([]byte(c.text), w); ok {
			got = fmt.Sprintf("%s %d:%s", w.Key, at, bytes.Join(m.Text[:m.Count], []byte("|")))
		}
		if got != c.want {
			t.Errorf("%s in %s: got %q, want %q", c.wording, c.text, got, c.want)
		}
	}
}
