package procfs

import "testing"

func TestRole(t *testing.T) {
	for _, c := range []struct {
		command     string
		environment map[string]string
		want        string
	}{
		{"VLLM::EngineCore", nil, "VLLM::EngineCore"},
		{"sglang::scheduler_TP1", map[string]string{"RANK": "1"}, "sglang::scheduler_TP1, rank 1"},
		{"ray::Worker.step()", nil, "ray::Worker.step"},
		{"nginx: worker process", nil, "worker process"},
		{"postgres: checkpointer ", nil, "checkpointer"},
		{"python3 train.py --local-rank=3", map[string]string{"RANK": "11"}, "rank 3"},
		{"python3 train.py", map[string]string{"RANK": "11", "LOCAL_RANK": "3"}, "rank 11"},
		{"python3 train.py", map[string]string{"LOCAL_RANK": "3"}, "rank 3"},
		{"python3 train.py", map[string]string{"RANK": "x"}, ""},
		{"python3 -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)", nil, "spawned worker"},
		{"python3 train.py", nil, ""},
		{"/usr/bin/java -cp a:b:c Main", nil, ""},
		{"", nil, ""},
	} {
		if got := Role(c.command, c.environment); got != c.want {
			t.Errorf("%q in %v is %q, want %q", c.command, c.environment, got, c.want)
		}
	}
}
