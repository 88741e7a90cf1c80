package ranks

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"strandline/logs/text"
)

// TestWorld takes the number of ranks that a line states, unless no job has as many.
func TestWorld(t *testing.T) {
	for line, want := range map[string]map[int]int{
		"[rank0]: world size: 64":                                                                {64: 1},
		"[rank0]: world size: 2000000000":                                                        {},
		"[rank0]: world size: 99999999999999999999999":                                           {},
		"[rank0]: nnodes=4 nproc_per_node=8":                                                     {32: 1},
		"[rank0]: nnodes=2000000 nproc_per_node=2000000":                                         {},
		"[rank0]: nnodes=9223372036854775807 nproc_per_node=8":                                   {},
		"[rank0]: Building 2-D device mesh with ['pp', 'tp'], [4, 8]":                            {32: 1},
		"[rank0]: Building 3-D device mesh with ['pp', 'tp', 'dp'], [4194304, 4194304, 4194304]": {},
	} {
		found, err := Read(strings.NewReader(line+"\n"), "job.log", func(string, func(string, float64)) {})
		if err != nil || !maps.Equal(found.World, want) {
			t.Errorf("%s: %v, want %v (%v)", line, found.World, want, err)
		}
	}
}

// TestKillOfLongLine takes a kill from the first piece of a line that is longer than a piece, and
// from each other line.
func TestKillOfLongLine(t *testing.T) {
	kill := func(pid int) string {
		return fmt.Sprintf("n1 kernel: Memory cgroup out of memory: Killed process %d (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0", pid)
	}
	pieces := kill(1)
	for pid := 2; len(pieces) < 3*text.LongestLine; pid++ {
		pieces += " " + kill(pid)
	}
	got, err := Read(strings.NewReader(pieces+"\n"+kill(7)+"\n"+kill(8)+"\n"), "kern.log", func(string, func(string, float64)) {})
	if err != nil {
		t.Fatal(err)
	}
	lines := map[int64]int{}
	for _, k := range got.Kills {
		lines[k.Line]++
	}
	if want := map[int64]int{1: 1, 2: 1, 3: 1}; !maps.Equal(lines, want) {
		t.Errorf("kills by line: %v, want %v", lines, want)
	}
}

// TestKillsAmongFailures finds a kill behind thousands of lines that state other failures, of which
// those that differ in their digits are read a few times.
func TestKillsAmongFailures(t *testing.T) {
	var log strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&log, "ggml_gallocr_reserve_n_impl: failed to allocate CUDA0 buffer of size %d\n", 1<<30+i)
	}
	log.WriteString("n1 kernel: Memory cgroup out of memory: Killed process 7 (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0\n")
	got, err := Read(strings.NewReader(log.String()), "job.log", func(string, func(string, float64)) {})
	if err != nil || len(got.Kills) != 1 || got.Kills[0].PID != 7 || got.Kills[0].Line != 3001 {
		t.Errorf("kills: %+v (%v)", got.Kills, err)
	}
}
