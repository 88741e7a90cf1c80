package report

import (
	"strings"
	"testing"

	"strandline/finding"
)

// TestSum checks that the figures of an account add up as they are printed.
func TestSum(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	part := func(n int64, name string) finding.Part { return finding.Part{Bytes: n, Name: name} }
	for _, c := range []struct {
		account finding.Account
		want    string
	}{
		{finding.Account{Bytes: 4 * gib, Parts: []finding.Part{part(900*mib, "used"), part(2700*mib, "stranded"), part(96*mib, "free"), part(400*mib, "outside")}},
			"4 GiB = 0.88 used + 2.64 stranded + 0.09 free + 0.39 outside"},
		{finding.Account{Bytes: 3, Name: "live", Parts: []finding.Part{part(1, "a"), part(2, "b")}}, "3 B live = 1 a + 2 b"},
		{finding.Account{Bytes: 192 * mib, Name: "peak", Parts: []finding.Part{part(64*mib, "a"), part(63*mib, "b"), part(62*mib, "c"), part(1*mib, "d"), part(1*mib, "e"), part(1*mib, "f")}},
			"192 MiB peak = 64 a + 63 b + 62 c + 3 other"},
		{finding.Account{Bytes: 10 * gib, Parts: []finding.Part{part(10*gib-1, "a"), part(1, "b")}}, "10 GiB = 10.0 a"},
	} {
		if got := sum(&c.account); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestShortNames cuts files as long as they differ.
func TestShortNames(t *testing.T) {
	frame := func(file string) finding.Frame { return finding.Frame{File: file, Line: 1} }
	site := finding.Site(frame("/a/model/train.py"))
	names := shortest(filesOf([]finding.Finding{{Site: &site, Stack: []finding.Frame{frame("/a/data/train.py"), frame(`C:\b\run.py`), frame("train.py")}}}))
	for file, want := range map[string]string{"/a/model/train.py": "model/train.py", "/a/data/train.py": "data/train.py", `C:\b\run.py`: "run.py", "train.py": "train.py"} {
		if names[file] != want {
			t.Errorf("%s is %q, want %q", file, names[file], want)
		}
	}
}

// TestAmounts states the unit once.
func TestAmounts(t *testing.T) {
	for want, values := range map[string][]int64{
		"88 → 145 → 205 MiB": {88 << 20, 145 << 20, 205 << 20},
		"0 B → 900 MiB":      {0, 1 << 20, 2 << 20, 900 << 20},
		"512 KiB → 2 MiB":    {512 << 10, 2 << 20},
	} {
		if got := amounts(values); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestPasted exports variables of the environment and nothing else.
func TestPasted(t *testing.T) {
	for setting, want := range map[string]string{
		"PYTORCH_CUDA_ALLOC_CONF=a:True": "export PYTORCH_CUDA_ALLOC_CONF=a:True",
		"foreach=False":                  "foreach=False",
		"--max-num-seqs 16":              "--max-num-seqs 16",
		"pool = torch()":                 "pool = torch()",
	} {
		if got := pasted(setting); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if strings.Contains(replayed(&finding.Finding{}, &finding.Effect{PeakReserved: 1 << 30, Saves: 1 << 30, Exact: true}), "approximately") {
		t.Error("an exact replay is called approximate")
	}
}

// TestLinks opens the file of a place, in terminals that can, and leaves its text.
func TestLinks(t *testing.T) {
	f := finding.Finding{Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Site: &finding.Site{File: "/home/me/a b.py", Line: 3, Function: "f"}, Brief: finding.Brief{Title: "fragmentation"}}
	for links, want := range map[bool]string{
		true:  "OOM   fragmentation at \x1b]8;;file:///home/me/a%20b.py\x1b\\a b.py:3 f\x1b]8;;\x1b\\\n",
		false: "OOM   fragmentation at a b.py:3 f\n",
	} {
		var out strings.Builder
		b := newBrief(PrintableWriter(&out), Style{Links: links}, []finding.Finding{f}, func(*finding.Finding) string { return "" })
		b.findings("OOM", []*finding.Finding{&f}, "")
		if got := out.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
