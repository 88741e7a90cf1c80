package jobs

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"strandline/logs/ranks"
	"strandline/profiles/figures"
	"strandline/torch/flight"
)

// oom is PyTorch's message of a rank, of a device of 80 GiB.
func oom(device int, request, free, allocated, unallocated string) string {
	return fmt.Sprintf("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of 80.00 GiB of which %s is free. "+
		"Including non-PyTorch memory, this process has 79.00 GiB memory in use. Of the allocated memory %s is allocated by PyTorch, and %s is reserved by PyTorch but unallocated.", request, device, free, allocated, unallocated)
}

// raised is a traceback of a rank, as PyTorch prints it.
func raised(rank int, message string) string {
	p := fmt.Sprintf("[rank%d]: ", rank)
	return p + "Traceback (most recent call last):\n" + p + "  File \"/home/u/train.py\", line 88, in forward\n" + p + "    step()\n" + p + message + "\n"
}

// lost is what a rank prints that lost a peer.
func lost(rank int) string {
	return raised(rank, "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, remote process exited or there was a network error, NCCL version 2.21.5")
}

// steps are the lines of a rank that prints its memory in GiB at each tenth step.
func steps(rank int, memory ...float64) (s string) {
	for i, m := range memory {
		s += fmt.Sprintf("2026-03-01 10:%02d:00 INFO [rank %d] step %d loss 2.5 memory allocated: %.2f GiB\n", i, rank, (i+1)*10, m)
	}
	return s
}

// files are logs of ranks, each with the end of those that a job draws.
func files(world int, of func(rank int) string) map[string]string {
	out := map[string]string{}
	for r := range world {
		out[fmt.Sprintf("rank_%d.log", r)] = fmt.Sprintf("2026-03-01 09:59:00 INFO rank %d of world_size=%d starts\n", r, world) + of(r)
	}
	return out
}

// one is a job of four of which one rank ends otherwise than those that follow it.
func one(rank int, text string) map[string]string {
	return files(4, func(r int) string {
		if r == rank {
			return text
		}
		return steps(r, 40, 40.1, 39.9, 40, 40.1, 40) + lost(r)
	})
}

func read(t testing.TB, texts map[string]string) (out []*ranks.Text) {
	t.Helper()
	for name, s := range texts {
		x, err := ranks.Read(strings.NewReader(s), name, figures.Sizes())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// TestJudge judges jobs of each cause.
func TestJudge(t *testing.T) {
	flat := []float64{60, 60.1, 60, 59.9, 60.1, 60}
	merged := func(texts map[string]string, prefix string) map[string]string {
		var all string
		for r := range len(texts) {
			for line := range strings.Lines(texts[fmt.Sprintf("rank_%d.log", r)]) {
				all += fmt.Sprintf(prefix, r) + line
			}
		}
		return map[string]string{"all.log": all}
	}
	leak := one(2, steps(2, 40, 47, 54, 61, 68, 75)+raised(2, oom(2, "2.00 GiB", "1.00 GiB", "77.00 GiB", "500.00 MiB")))
	for name, c := range map[string]struct {
		texts map[string]string
		cause Cause
		first int
	}{
		"leak":          {leak, Leak, 2},
		"srun":          {merged(leak, "%d: "), Leak, 2},
		"mpirun":        {merged(leak, "[1,%d]<stderr>:"), Leak, 2},
		"containers":    {merged(leak, "trainer-%d  | "), Leak, 2},
		"fragmentation": {one(1, steps(1, flat...)+raised(1, oom(1, "3.00 GiB", "1.00 GiB", "50.00 GiB", "28.00 GiB"))), Fragmentation, 1},
		"other process": {one(1, steps(1, flat...)+raised(1, strings.Replace(oom(1, "3.00 GiB", "1.00 GiB", "50.00 GiB", "1.00 GiB"), "Including", "Process 77 has 26.00 GiB memory in use. Including", 1))), OtherProcess, 1},
		"limit":         {one(1, steps(1, flat...)+raised(1, strings.Replace(oom(1, "3.00 GiB", "39.00 GiB", "38.00 GiB", "1.00 GiB"), "Of the", "40.00 GiB allowed; Of the", 1))), Limit, 1},
		"long input":    {one(3, steps(3, flat...)+"rank 3 step 61 tokens=60000\n"+raised(3, oom(3, "30.00 GiB", "10.00 GiB", "60.00 GiB", "1.00 GiB"))), LongInput, 3},
		"exception":     {one(0, steps(0, flat...)+raised(0, "KeyError: 'labels'")), NotMemory, 0},
		"disk":          {one(0, steps(0, flat...)+raised(0, "OSError: [Errno 28] No space left on device")), NotMemory, 0},
		"broken GPU":    {one(0, steps(0, flat...)+raised(0, "RuntimeError: CUDA error: uncorrectable ECC error encountered")), NotMemory, 0},
		"all alike":     {files(4, func(r int) string { return raised(r, oom(r, "3.00 GiB", "1.00 GiB", "78.00 GiB", "100.00 MiB")) }), TooLarge, -1},
		"hang": {files(4, func(r int) string {
			if r == 1 {
				return steps(r, flat...)
			}
			return steps(r, flat...) + fmt.Sprintf("[rank%d]:[E301 10:16:00.1 ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600014 milliseconds before timing out.\n", r, r)
		}), NotMemory, 1},
		"lived": {files(4, func(r int) string {
			return steps(r, flat...) + "2026-03-01 10:07:00 WARNING rank 1: CUDA out of memory. Tried to allocate 2.00 GiB, retrying\n2026-03-01 10:09:00 INFO Training completed\n"
		}), None, -1},
		"followers alone": {files(4, lost), Unknown, -1},
	} {
		t.Run(name, func(t *testing.T) {
			j := Judge(read(t, c.texts), Evidence{})
			if j == nil {
				t.Fatal("no job")
			}
			if j.Cause != c.cause || j.First.Rank != c.first || j.World != 4 {
				t.Errorf("%s of rank %d of %d, want %s of %d: %+v", j.Cause, j.First.Rank, j.World, c.cause, c.first, j)
			}
		})
	}
}

// TestHostMemory judges a kill by the kernel, whose log names the process.
func TestHostMemory(t *testing.T) {
	texts := one(1, "n7:4711:4800 [1] NCCL INFO ncclCommInitRank comm 0x1 rank 1 nranks 4 cudaDev 1 nvmlDev 1 busId 1000 - Init COMPLETE\n"+steps(1, 60, 60, 60))
	texts["kern.log"] = "Mar  1 10:07:00 n7 kernel: Memory cgroup out of memory: Killed process 4711 (python) total-vm:389887536kB, anon-rss:125770173kB, file-rss:148845kB, shmem-rss:1682090kB, UID:1000 pgtables:292488kB oom_score_adj:0\n"
	j := Judge(read(t, texts), Evidence{})
	if j == nil || j.Cause != HostMemory || j.First.Rank != 1 || j.First.Node != "n7" || j.Followers != 3 {
		t.Errorf("%+v", j)
	}
}

// TestMissing names the rank without a text, without more confidence than that is worth.
func TestMissing(t *testing.T) {
	texts := files(4, lost)
	delete(texts, "rank_2.log")
	j := Judge(read(t, texts), Evidence{})
	if j == nil || j.Cause != Unknown || !slices.Equal(j.Missing, []int{2}) || j.Confidence >= 0.5 || j.First.Confidence >= 0.5 {
		t.Errorf("%+v", j)
	}
}

// TestRowsOfLargeJobs keeps the ranks that texts tell of, where one of them has a large number.
func TestRowsOfLargeJobs(t *testing.T) {
	const starts = "2026-03-01 09:59:00 INFO rank %d of world_size=120001 starts\n"
	texts := map[string]string{"rank_1.log": fmt.Sprintf(starts, 1) + lost(1)}
	texts["rank_120000.log"] = fmt.Sprintf(starts, 120_000) + raised(120_000, oom(2, "2.00 GiB", "1.00 GiB", "77.00 GiB", "500.00 MiB"))
	j := Judge(read(t, texts), Evidence{})
	if j == nil || j.World != 120_001 || len(j.Rows) == 0 || len(j.Rows) > maxRows || j.Rows[0].Rank != 120_000 {
		t.Errorf("%+v", j)
	}
}

// TestOrderOfFiles judges texts in each of several orders, under other names.
func TestOrderOfFiles(t *testing.T) {
	texts := read(t, one(2, steps(2, 40, 47, 54, 61, 68, 75)+raised(2, oom(2, "2.00 GiB", "1.00 GiB", "77.00 GiB", "500.00 MiB"))))
	judged := func() string {
		j := Judge(texts, Evidence{})
		for i := range j.Rows {
			j.Rows[i].Text = ""
		}
		j.Text = ""
		return fmt.Sprintf("%+v %+v", *j.Differs, *j)
	}
	want := judged()
	want, _, _ = strings.Cut(want, "Differs:0x")
	for i := range texts {
		texts[i].Name = fmt.Sprintf("x%d.log", i)
		texts = append(texts[1:], texts[0])
		if got := judged(); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestDifference measures since which step, and by how much, the memory of a rank rises.
func TestDifference(t *testing.T) {
	course := func(rise int, peers ...float64) map[string]string { // of rank 1 from that step on, by 2 GiB a line
		return files(4, func(r int) string {
			var levels []float64
			for i := range 16 {
				level := 40 + 0.1*float64(i%3)
				if len(peers) > 0 && r != 1 {
					level += peers[0] * float64(i)
				}
				if r == 1 && i > rise {
					level += 2 * float64(i-rise)
				}
				levels = append(levels, level)
			}
			if r == 1 {
				return steps(r, levels...) + raised(r, oom(r, "2.00 GiB", "1.00 GiB", "77.00 GiB", "500.00 MiB"))
			}
			return steps(r, levels...) + lost(r)
		})
	}
	for name, c := range map[string]struct {
		texts map[string]string
		since int64
		peers int
		per   float64 // GiB a step
	}{
		"from the beginning": {course(0), 10, 3, 0.2},
		"later":              {course(5), 60, 3, 0.2},
		"all alike":          {course(0, 2), 10, 0, 0.2},
	} {
		j := Judge(read(t, c.texts), Evidence{})
		d := j.Differs
		if j.Cause != Leak || d == nil || math.Abs(float64(d.Since-c.since)) > 10 || d.Peers != c.peers || math.Abs(d.PerStep/(1<<30)-c.per) > 0.02 {
			t.Errorf("%s: %s, %+v: %s", name, j.Cause, d, j.Why)
		}
	}
}

// TestNoJob has no verdict on a text of one process.
func TestNoJob(t *testing.T) {
	for _, s := range []string{"", "step 1 loss 2.0\n", "step 1\n" + strings.TrimPrefix(raised(0, oom(0, "1.00 GiB", "0 bytes", "79.00 GiB", "0 bytes")), "[rank0]: ")} {
		if j := Judge(read(t, map[string]string{"a.log": s}), Evidence{}); j != nil {
			t.Errorf("%q: %+v", s, j)
		}
	}
}

// TestDumps judges a hang by the dumps of flight recorders: the rank that did not enqueue the
// collective in which the others wait, with texts that do not tell and without any.
func TestDumps(t *testing.T) {
	group := func(enqueued, waiting int64) map[string]*flight.Group {
		return map[string]*flight.Group{"0": {World: 4, Members: 7, Enqueued: enqueued, Waiting: waiting}}
	}
	var dumps []*flight.Dump
	for r := range 4 {
		d := &flight.Dump{Rank: r, Groups: group(77, 77)}
		if r == 2 {
			d.Groups = group(76, -1)
		}
		dumps = append(dumps, d)
	}
	quiet := files(4, func(r int) string { return steps(r, 60, 60, 60) })
	for name, c := range map[string]struct {
		texts map[string]string
		dumps []*flight.Dump
		first int
	}{
		"dumps alone":    {nil, dumps, 2},
		"with texts":     {quiet, dumps, 2},
		"one is missing": {quiet, slices.Delete(slices.Clone(dumps), 2, 3), 2},
		"all wait":       {nil, []*flight.Dump{dumps[0], dumps[1]}, -1},
	} {
		j := Judge(read(t, c.texts), Evidence{Dumps: c.dumps})
		if j == nil || j.First.Rank != c.first || j.World != 4 || c.first >= 0 && j.Cause != NotMemory {
			t.Errorf("%s: %+v", name, j)
		}
	}
	if j := Judge(read(t, quiet), Evidence{Dumps: append(dumps, dumps[2])}); j == nil || !strings.Contains(j.Why, "left out: 2") {
		t.Errorf("two dumps of a rank: %+v", j)
	}
	if j := Judge(nil, Evidence{Dumps: dumps[:1]}); j != nil {
		t.Errorf("one dump: %+v", j)
	}
}

// TestRuns judges the last of two runs in one folder, and says so.
func TestRuns(t *testing.T) {
	texts := one(1, steps(1, 60, 60, 60)+raised(1, "KeyError: 'labels'"))
	for name, s := range one(2, steps(2, 40, 47, 54, 61, 68, 75)+raised(2, oom(2, "2.00 GiB", "1.00 GiB", "77.00 GiB", "500.00 MiB"))) {
		texts["before/"+name] = strings.ReplaceAll(s, "2026-03-01", "2026-02-27")
	}
	j := Judge(read(t, texts), Evidence{})
	if j == nil || j.First.Rank != 1 || j.Cause != NotMemory || !strings.Contains(j.Why, "earlier run are left out: 4") {
		t.Errorf("%+v", j)
	}
}

// TestAgain judges the last of two attempts whose texts tell it only by the lines with which the
// processes begin, and ignores the steps that wandb warns of.
func TestAgain(t *testing.T) {
	j := Judge(read(t, files(4, func(r int) string {
		first := lost(r)
		if r == 2 {
			first = raised(2, oom(2, "2.00 GiB", "1.00 GiB", "77.00 GiB", "500.00 MiB"))
		}
		last := lost(r)
		if r == 1 {
			last = raised(1, "KeyError: 'labels'") + "wandb: WARNING Step must only increase in log calls.  Step 77 < 78; dropping {'loss': 2.1}.\n"
		}
		return steps(r, 40, 41) + first + fmt.Sprintf("2026-03-01 11:00:00 INFO rank %d of world_size=4 starts\n", r) + steps(r, 40, 41) + last
	})), Evidence{})
	if j == nil || j.Cause != NotMemory || j.First.Rank != 1 || j.Attempts != 2 {
		t.Errorf("%+v", j)
	}
}

// TestMixed blames nobody for texts of two jobs at the same time, and names two of them.
func TestMixed(t *testing.T) {
	texts := one(2, steps(2, 40, 47, 54, 61, 68, 75)+raised(2, oom(2, "2.00 GiB", "1.00 GiB", "77.00 GiB", "500.00 MiB")))
	for name, s := range one(1, steps(1, 40, 40, 40, 40, 40, 40)+raised(1, "KeyError: 'labels'")) {
		texts["other/"+name] = strings.ReplaceAll(s, " 10:0", " 10:1")
	}
	for name, s := range texts { // both write until 10:20
		texts[name] = s + "2026-03-01 10:20:00 INFO end\n"
	}
	j := Judge(read(t, texts), Evidence{})
	if j == nil || j.Cause != Unknown || j.First.Rank >= 0 || j.Confidence >= 0.5 || !strings.Contains(j.Why, "two jobs at the same time") {
		t.Errorf("%+v", j)
	}
	for name := range texts { // one job, of which each rank has two texts with the same steps
		if after, ok := strings.CutPrefix(name, "other/"); ok {
			texts[name] = texts[after]
		}
	}
	if j := Judge(read(t, texts), Evidence{}); j == nil || j.Cause != Leak || j.First.Rank != 2 {
		t.Errorf("copies: %+v", j)
	}
}
