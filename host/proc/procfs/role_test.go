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

// TestLaunch tells the processes of one job from those of others.
func TestLaunch(t *testing.T) {
	type process struct {
		environment map[string]string
		command     string
		network     string
		parent      int
		parentName  string
	}
	of := func(p process) string { return launch(p.environment, p.command, p.network, p.parent, p.parentName) }
	torchrun := func(rank, port string) map[string]string {
		return map[string]string{"RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port}
	}
	again := func(environment map[string]string, restarts string) map[string]string {
		environment["TORCHELASTIC_RESTART_COUNT"] = restarts
		return environment
	}
	ranks := func(rank, world string) map[string]string {
		return map[string]string{"RANK": rank, "WORLD_SIZE": world}
	}
	for _, c := range []struct {
		name string
		a, b process
		want bool
	}{
		{"one torchrun", process{torchrun("0", "29500"), "python a.py", "net:1", 10, "torchrun"}, process{torchrun("1", "29500"), "python a.py", "net:1", 10, "torchrun"}, true},
		{"one address, from two shells", process{torchrun("0", "29500"), "python a.py", "net:1", 10, "bash"}, process{torchrun("1", "29500"), "python a.py", "net:1", 11, "bash"}, true},
		{"two of torchrun", process{torchrun("0", "29500"), "python a.py", "net:1", 10, "torchrun"}, process{torchrun("1", "29501"), "python a.py", "net:1", 11, "torchrun"}, false},
		{"a restart", process{again(torchrun("0", "29500"), "0"), "python a.py", "net:1", 10, "torchrun"}, process{again(torchrun("1", "29500"), "1"), "python a.py", "net:1", 10, "torchrun"}, false},
		{"two containers", process{torchrun("0", "29500"), "python a.py", "net:1", 10, "torchrun"}, process{torchrun("1", "29500"), "python a.py", "net:2", 11, "torchrun"}, false},
		{"a launcher", process{ranks("0", "2"), "python a.py", "", 10, "python3"}, process{ranks("1", "2"), "python a.py", "", 10, "python3"}, true},
		{"two launchers", process{ranks("0", "2"), "python a.py", "", 10, "python3"}, process{ranks("1", "2"), "python a.py", "", 11, "python3"}, false},
		{"two sizes", process{ranks("0", "2"), "python a.py", "", 10, "python3"}, process{ranks("1", "4"), "python a.py", "", 10, "python3"}, false},
		{"alone", process{ranks("0", "1"), "python a.py", "", 10, "python3"}, process{ranks("0", "1"), "python a.py", "", 10, "python3"}, false},
		{"a shell", process{ranks("0", "2"), "python a.py", "", 10, "bash"}, process{ranks("1", "2"), "python a.py", "", 10, "bash"}, false},
		{"orphans", process{ranks("0", "2"), "python a.py", "", 1, "systemd"}, process{ranks("1", "2"), "python a.py", "", 1, "systemd"}, false},
		{"workers", process{nil, "sglang::scheduler_TP0", "", 10, "python3"}, process{nil, "sglang::scheduler_TP1", "", 10, "python3"}, true},
		{"programs of one parent", process{nil, "python a.py", "", 10, "python3"}, process{nil, "python a.py", "", 10, "python3"}, false},
	} {
		if a, b := of(c.a), of(c.b); (a != "" && a == b) != c.want {
			t.Errorf("%s: %q and %q", c.name, a, b)
		}
	}
}
