package text

import (
	"bytes"
	"strings"
	"testing"
)

// TestForms matches wordings with lines, and reads what is in their places.
func TestForms(t *testing.T) {
	for _, c := range []struct{ form, line, want string }{
		{"took {gib}", "took 1.50 GiB and 3 s", "1.50 GiB"},
		{"took {gib}", "took 1.50GB", "1.50GB"},
		{"took {gib}", "took 1.50 MiB", ""},
		{"took {gib}", "took -2 GiB", "-2 GiB"},
		{"took {gib}", "took . GiB", ""},
		{"end.{…}mem={gib}, of {int}", "end. mem=x mem=2 GiB, of 7", "2 GiB|7"},
		{"end.{…}mem={gib}, of {int}", "end." + strings.Repeat(" mem=3", 200), ""},
		{"size{signs}{size}", "size: 4 bytes", "4 bytes"},
		{"size{signs}{size}", "size  =  4.5 MiB", "4.5 MiB"},
		{"cache{tail}: {word} size", "cache_unified:   CUDA0   size", "CUDA0"},
		{"cache{tail}: {word} size", "cache: CUDA0 sizes", "CUDA0"},
		{"cache{tail}: {word} size", "cache:", ""},
		{"{many} tokens", "1,024 tokens", "1,024"},
		{"# {int}", "#12345678901234567890", "123456789012345"},
	} {
		var m Match
		f := NewForm(c.form)
		line := []byte(c.line)
		got := ""
		if m.Match(line[len(strings.TrimSpace(strings.SplitN(c.form, "{", 2)[0])):], f.Steps) {
			got = string(bytes.Join(m.Text[:m.Count], []byte("|")))
		}
		if got != c.want {
			t.Errorf("%s in %s: got %q, want %q", c.form, c.line, got, c.want)
		}
	}
}
