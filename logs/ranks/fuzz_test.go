package ranks

import (
	"strings"
	"testing"
)

func nothing(string, func(string, float64)) {}

// FuzzRead reads any text twice: it ends, and finds the same.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"", "[rank3]: Traceback (most recent call last):\n[rank3]: KeyError: 1\n",
		"Root Cause (first observed failure):\n[0]:\n  time : 2026-03-01_10:00:00\n  rank      : 3 (local_rank: 3)\n  exitcode  : -9 (pid: 77)\n====\n",
		"srun: error: n7: tasks 0-3,7: Out Of Memory\n", "Mar  1 10:00:00 n7 kernel: Memory cgroup out of memory: Killed process 4711 (python) anon-rss:1kB\n",
		"(W pid=3, ip=10.0.0.1) step:10 tokens=5 memory allocated (GB): 3.5\n", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 80.00 GiB\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Read(strings.NewReader(s), "a", nothing)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := Read(strings.NewReader(s), "a", nothing)
		if len(a.Voices) != len(b.Voices) || len(a.Exits) != len(b.Exits) || a.Lines != b.Lines {
			t.Errorf("%d voices, then %d", len(a.Voices), len(b.Voices))
		}
		for _, v := range a.Voices {
			if len(v.Events) > maxEvents || len(v.Sizes) > 64 {
				t.Errorf("%d events, %d series", len(v.Events), len(v.Sizes))
			}
		}
	})
}
