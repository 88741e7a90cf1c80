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

// TestWordsTellExpressions reads lines of launchers whose words must let their expressions match.
func TestWordsTellExpressions(t *testing.T) {
	exits := func(x *Text) int { return len(x.Exits) }
	ended := func(x *Text) int { return len(x.Ended) }
	for line, count := range map[string]func(*Text) int{
		"srun: error: n7: tasks 0-3,7: Out Of Memory":                                                exits,
		"failed (exitcode: -9) local_rank: 3 (pid: 77) of binary: python":                            exits,
		"mpirun noticed that process rank 3 with PID 77 on node n7 exited on signal 9 (Killed).":     exits,
		"MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD":                             exits,
		"[launch.py:325] python exits with return code = -9":                                         exits,
		"flux-job: task(s) 3: exited with exit code 1":                                               exits,
		"slurmstepd: error: *** JOB 77 ON n7 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT ***": ended,
		"TERM_RUNLIMIT: job killed after reaching LSF run time limit.":                               ended,
		"Received 15 death signal":                                                                   ended,
		"spot interruption notice for task":                                                          ended,
		"[rank3]: got SIGTERM":                                                                       ended,
		"Sending process 77 closing signal SIGTERM":                                                  func(x *Text) int { return map[bool]int{true: 1}[x.Aborted] },
		"Killing subprocess 4711":                                                                    func(x *Text) int { return len(x.Children) },
	} {
		x, err := Read(strings.NewReader(line+"\n"), "a", nothing)
		if err != nil || count(x) != 1 {
			t.Errorf("%q: %d, %v", line, count(x), err)
		}
	}
	for line, step := range map[string]int64{
		"2026-03-01 10:00:00,000 - some words before - optimizer step 77/100 done": 77, "(after 20 iterations) memory": 20, "global_step: 7, loss 2": 7, "Train: step=12, x": 12, "30|5|Loss: 2.0": 5, "9%|x | 5/30 [00:01<00:02, 3it/s]": 5,
	} {
		if x, err := Read(strings.NewReader(line+"\n"), "a", nothing); err != nil || len(x.Voices) != 1 || x.Voices[0].Step != step {
			t.Errorf("%q: %+v, %v", line, x.Voices, err)
		}
	}
}
