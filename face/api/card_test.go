package api_test

import (
	"reflect"
	"strings"
	"testing"

	"strandline/face/api"
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
		if got := api.Sum(&c.account); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestNames cuts files as long as they differ.
func TestNames(t *testing.T) {
	frame := func(file string) finding.Frame { return finding.Frame{File: file, Line: 1} }
	site := finding.Site(frame("/a/model/train.py"))
	names := api.NamesOf([]finding.Finding{{Site: &site, Stack: []finding.Frame{frame("/a/data/train.py"), frame(`C:\b\run.py`), frame("train.py")}}})
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
		if got := api.Amounts(values); got != want {
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
		if got := api.Pasted(setting); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if strings.Contains(api.EffectText(&finding.Finding{}, &finding.Effect{PeakReserved: 1 << 30, Saves: 1 << 30, Exact: true}), "approximately") {
		t.Error("an exact replay is called approximate")
	}
}

// TestCard states a leak, an error and a calm verdict in the words of a first screen.
func TestCard(t *testing.T) {
	mib := func(n int64) *int64 { n <<= 20; return &n }
	site := finding.Site{File: "/w/train.py", Line: 39, Function: "normalise"}
	leak := finding.Finding{
		Kind: finding.Leak, Severity: finding.Problem, Confidence: 0.91, Title: "48 allocations at train.py:39 are kept", Site: &site,
		Stack: []finding.Frame{site, {File: "/w/train.py", Line: 76, Function: "main"}}, Bytes: mib(205), BytesPerStep: mib(58), Trend: []int64{88 << 20, 145 << 20, 205 << 20},
		Evidence: &finding.LeakEvidence{}, Basis: "grew in 2 of 2 intervals", Remedies: []finding.Remedy{finding.CodeChange("drop them")},
	}
	oom := finding.Finding{Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Site: &site, Brief: finding.Brief{Title: "fragmentation: 1.5 GiB requested", Fact: "2.73 GiB was free", Next: "strandline inspect"}}
	setting := finding.SettingChange("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "enable expandable segments")
	setting.Effect = &finding.Effect{Left: mib(1024), Exact: true}
	oom.Remedies = []finding.Remedy{setting}
	peak := finding.Finding{Kind: finding.Peak, Severity: finding.Info, Brief: finding.Brief{Title: "peak 258 MiB", Next: "strandline inspect"}}
	history := finding.Finding{Kind: finding.History, Severity: finding.Info, Brief: finding.Brief{Title: "growth not judged: 1 file", Next: "strandline record"}}
	saving := finding.Finding{Kind: finding.Fragmentation, Severity: finding.Info, Process: "rank 1", Evidence: &finding.FragmentationEvidence{SavedBytes: 334 << 20}, Brief: finding.Brief{Title: "expandable segments would lower the peak", Next: "strandline simulate"}}
	saving.Remedies = []finding.Remedy{finding.SettingChange("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "enable expandable segments")}
	saving.Remedies[0].Effect = &finding.Effect{PeakReserved: 764 << 20, Saves: 334 << 20, Exact: true}
	for _, c := range []struct {
		name      string
		got, want api.Card
	}{
		{"leak", api.NewCard(&leak, api.NamesOf([]finding.Finding{leak})), api.Card{
			Word: "LEAK", Title: "keeps tensors: +58 MiB a snapshot, now 205 MiB", Line: "train.py:39 normalise", Course: "88 → 145 → 205 MiB", Sure: "91% sure", Via: ":76 main",
			Fix: "drop them", Why: "grew in 2 of 2 intervals",
		}},
		{"oom", api.NewCard(&oom, api.NamesOf([]finding.Finding{oom})), api.Card{
			Word: "OOM", Title: "fragmentation: 1.5 GiB requested", Line: "train.py:39 normalise", Fact: "2.73 GiB was free", Fix: "enable expandable segments",
			Paste: []string{"export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}, Effect: "replayed: succeeds, 1 GiB to spare", Next: "strandline inspect",
		}},
		{"calm", api.CalmCard(finding.OK, "3 files", []finding.Finding{peak}), api.Card{Word: "OK", Title: "no leak in 3 files; peak 258 MiB", Next: "strandline inspect"}},
		{"saving", api.CalmCard(finding.OK, "1 file", []finding.Finding{saving, peak}), api.Card{
			Word: "OK", Title: "no leak in 1 file; peak 258 MiB", Note: "rank 1: expandable segments would lower the peak", Fix: "enable expandable segments",
			Paste: []string{"export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}, Effect: "replayed: peak 764 MiB instead of 1.07 GiB", Next: "strandline simulate",
		}},
		{"unknown", api.CalmCard(finding.Unknown, "1 file", []finding.Finding{history}), api.Card{Word: "UNKNOWN", Title: "growth not judged: 1 file", Next: "strandline record"}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, c.got, c.want)
		}
	}
}

// TestVia names the line of the program that calls a package, however far out it is.
func TestVia(t *testing.T) {
	const packages = "/venv/lib/python3.11/site-packages/"
	frame := func(file string, line int64) finding.Frame {
		return finding.Frame{File: file, Line: line, Function: "f"}
	}
	peft := func(line int64) finding.Frame { return frame(packages+"peft/layer.py", line) }
	program := frame("/w/train.py", 23)
	for _, c := range []struct {
		name  string
		stack []finding.Frame
		want  string
	}{
		{"near", []finding.Frame{peft(1), peft(2), program, frame("/w/train.py", 30)}, ":2 f ← train.py:23 f ← :30 f"},
		{"next", []finding.Frame{peft(1), peft(2), peft(3), peft(4), program}, ":2 f ← :3 f ← :4 f ← train.py:23 f"},
		{"far", []finding.Frame{peft(1), peft(2), peft(3), peft(4), peft(5), program, frame("/w/train.py", 30)}, ":2 f ← :3 f ← :4 f ← … ← train.py:23 f ← …"},
		{"a program of packages", []finding.Frame{peft(1), peft(2), peft(3), peft(4), peft(5)}, ":2 f ← :3 f ← :4 f ← …"},
		{"lines without functions", []finding.Frame{{File: packages + "numpy/numeric.py", Line: 232}, {File: "/w/nump.py", Line: 3}, {File: "/usr/lib/python3.11/runpy.py", Line: 9}, {File: "/w/nump.py", Line: 6}}, "nump.py:3 ← :6"},
		{"neither line nor function", []finding.Frame{program, {File: "/w/a.py"}}, ""},
		{"own code alone", []finding.Frame{program, frame("/w/a.py", 1), frame("/w/b.py", 2), frame("/w/c.py", 3), frame("/w/d.py", 4)}, "a.py:1 f ← b.py:2 f ← c.py:3 f ← …"},
	} {
		f := finding.Finding{Kind: finding.Leak, Site: &c.stack[0], Stack: c.stack}
		if got := api.NamesOf([]finding.Finding{f}).Via(&f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
