package text

import "testing"

func TestSourceOf(t *testing.T) {
	for line, want := range map[string]string{
		"[rank0]: x": "[rank0]:", "  [rank12] x": "  [rank12]", "[3]: x": "[3]:", "[default0]:x": "[default0]:", "[worker 7] x": "[worker 7]",
		"[2026-11-21] x": "", "[INFO] x": "", "[rank]: x": "", "[": "", "[7": "", "": "", " ": "",
		"(Worker pid=77) x": "(Worker pid=77)", "(W pid=7, ip=10.0.0.1) x": "(W pid=7, ip=10.0.0.1)", "(a, ip=1) x": "(a, ip=1)",
		"(stupid=1) x": "", "(x) y": "", "(pid=1": "", "(most of it) pid=1": "",
		"rank 3: x": "rank 3:", "Rank_3 x": "Rank_3", "RANK:3: x": "RANK:3:", "rank3x": "", "rank x": "", "ranking": "", "running": "",
	} {
		if got := string(SourceOf([]byte(line))); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
