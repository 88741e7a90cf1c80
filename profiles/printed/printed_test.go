package printed

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"strandline/profiles"
)

const mib = 1 << 20

// smiTable is what nvidia-smi prints: %d is the memory of the device, and of a process.
const smiTable = `+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:18:00.0 Off |                    0 |
| N/A   30C    P0             70W /  700W |  %7dMiB /  81559MiB |      0%%      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   30C    P0             70W /  700W |          Not Supported |      0%%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
| MIG devices:                                                                            |
|  0    7   0   0  |              4404MiB /  4864MiB  | 14      0 |  1   0    0    0    0 |
|                  |                 2MiB /  8191MiB  |           |                       |
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A            4242      C   python train.py                     %6dMiB |
|    1   N/A  N/A              77      G   /usr/bin/gnome-shell                      N/A  |
+-----------------------------------------------------------------------------------------+
`

// smiOld is the same of an older release.
const smiOld = `| NVIDIA-SMI 418.67       Driver Version: 418.67       CUDA Version: 10.1     |
|   0  Tesla V100-SXM2...  Off  | 00000000:00:1E.0 Off |                    0 |
| N/A   41C    P0    54W / 300W |  %5dMiB / 16130MiB |      0%%      Default |
+-------------------------------+----------------------+----------------------+
|    0      4242      C   python                                      %5dMiB |
`

const smiQuery = `
==============NVSMI LOG==============

Timestamp                                 : Sun Nov  1 12:0%d:00 2026
Driver Version                            : 550.54.15
Attached GPUs                             : 1
GPU 00000000:18:00.0
    FB Memory Usage
        Total                             : 81559 MiB
        Reserved                          : 551 MiB
        Used                              : %d MiB
        Free                              : 77000 MiB
    BAR1 Memory Usage
        Total                             : 131072 MiB
        Used                              : 3 MiB
    Processes
        Process ID                        : 4242
            Type                          : C
            Name                          : python
            Used GPU Memory               : %d MiB
`

type want struct {
	process, name string
	times, levels []float64
	limit         float64
}

func TestRead(t *testing.T) {
	nan := math.NaN()
	used, minutes := []float64{4000 * mib, 4050 * mib}, []float64{0, 60}
	device, process := want{"GPU 0", ofDevice, minutes, used, 81559 * mib}, want{"GPU 0, pid 4242 python", ofProcess, minutes, []float64{3500 * mib, 3550 * mib}, 0}
	table := func(form string, i int) string { return fmt.Sprintf(form, 4000+50*i, 3500+50*i) }
	for _, c := range []struct {
		name, unit string
		text       string
		want       []want
	}{
		{"nvidia-smi", "", "Sun Nov  1 12:00:00 2026\n" + table(smiTable, 0) + "Sun Nov  1 12:01:00 2026\n" + table(smiTable, 1), []want{
			device, {"GPU 1", ofDevice, minutes, []float64{nan, nan}, 0}, {"GPU 0, MIG instance 7/0", ofDevice, minutes, []float64{4404 * mib, 4404 * mib}, 4864 * mib},
			{"GPU 0, pid 4242 python train.py", ofProcess, minutes, process.levels, 0}, {"GPU 1, pid 77 /usr/bin/gnome-shell", ofProcess, minutes, []float64{nan, nan}, 0},
		}},
		{"an older nvidia-smi, without times", "table", "garbage\x00\xff\nNVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.\n" + strings.Repeat("-", 2000) + "\n" + table(smiOld, 0) + table(smiOld, 1), []want{
			{"GPU 0", ofDevice, []float64{0, 1}, used, 16130 * mib}, {"GPU 0, pid 4242 python", ofProcess, []float64{0, 1}, process.levels, 0},
		}},
		{"nvidia-smi -q", "", fmt.Sprintf(smiQuery, 0, 4000, 3500) + fmt.Sprintf(smiQuery, 1, 4050, 3550), []want{
			{"GPU 00000000:18:00.0", ofDevice, minutes, used, 81559 * mib}, {"GPU 00000000:18:00.0, pid 4242 python", ofProcess, minutes, process.levels, 0},
		}},
		{"dmon", "", "#Date       Time        gpu     fb   bar1   ccpm\n#YYYYMMDD   HH:MM:SS    Idx     MB     MB     MB\n 20261101   12:00:00      0   4000      4      0\n 20261101   12:00:00      1      -      4      0\n" +
			"#Date       Time        gpu     fb   bar1   ccpm\n 20261101   12:01:00      0   4050      4      0\n 20261101   12:01:00      1      -      4      0\n",
			[]want{{"GPU 0", ofDevice, minutes, used, 0}, {"GPU 1", ofDevice, minutes, []float64{nan, nan}, 0}}},
		{"dmon without times", "sample", "# gpu     fb   bar1\n# Idx     MB     MB\n    0   4000      4\n    1      7      4\n    0   4050      4\n    1      7      4\n",
			[]want{{"GPU 0", ofDevice, []float64{0, 1}, used, 0}, {"GPU 1", ofDevice, []float64{0, 1}, []float64{7 * mib, 7 * mib}, 0}}},
		{"pmon", "", "# Time        gpu         pid   type     fb   ccpm    command\n# HH:MM:SS    Idx           #    C/G     MB     MB    name\n 12:00:00       0       4242      C   3500      0    python\n 12:00:00       1          -      -      -      -    -\n 12:01:00       0       4242      C   3550      0    python\n",
			[]want{process}},
		{"ps in a loop", "", "Sun Nov  1 12:00:00 UTC 2026\n    PID USER        RSS CMD\n   4242 root    4096000 python train.py --lr 1\n     77 root          - [kworker]\nSun Nov  1 12:01:00 UTC 2026\n    PID USER        RSS CMD\n   4242 root    4147200 python train.py --lr 1\n",
			[]want{{"pid 4242 python train.py --lr 1", "RSS", minutes, used, 0}}},
		{"top", "", topAt("12:00:00", "4.0g", 77) + topAt("12:01:00", "4194304", 78),
			[]want{{"pid 4242 python", "RES", minutes, []float64{4096 * mib, 4096 * mib}, 0}, {"pid 7 init", "RES", minutes, []float64{77 << 10, 78 << 10}, 0}}},
		{"one listing of ps", "table", "USER   PID %CPU %MEM    VSZ   RSS TTY   STAT START   TIME COMMAND\nroot     9  1.8 13.0 807005 4096000 ?  Sl   10:00   0:07 python serve.py\n",
			[]want{{"pid 9 python serve.py", "RSS", []float64{0}, used[:1], 0}}},
		{"ps aux without names, beside docker stats", "table", "$ ps aux | head -1\nlong-us+171  1.8 13.0 807005 4096000 ?  Sl  python serve.py\n\nMEM USAGE / LIMIT     MEM %\n4000MiB / 64GiB   6.1%\nanon 3\nanon 40000\nfile 50000\n",
			[]want{{"pid 171 python serve.py", "RSS", []float64{0}, used[:1], 0}, {"", "MEM USAGE", []float64{0}, used[:1], 64 << 30}}},
		{"Ray's list", "table", "Top 2 memory users:\nPID     MEM(GB) COMMAND\n40126   3.90625   ray::Worker.step\n",
			[]want{{"pid 40126 ray::Worker.step", "MEM(GB)", []float64{0}, used[:1], 0}}},
		{"tegrastats", "", "11-01-2026 12:00:00 RAM 4000/7620MB (lfb 4x1MB) SWAP 0/3810MB (cached 0MB) CPU [1%@1510]\n11-01-2026 12:01:00 RAM 4050/7620MB (lfb 4x1MB) SWAP 0/3810MB (cached 0MB) CPU [1%@1510]\n",
			[]want{{"", "RAM", minutes, used, 7620 * mib}, {"", "SWAP", minutes, []float64{zero, zero}, 3810 * mib}}},
		{"docker stats on a terminal", "table", dockerAt("3.906GiB", "4000MiB") + dockerAt("3.955GiB", "4050MiB"),
			[]want{{"vllm", "MEM USAGE", []float64{0, 1}, []float64{3.906 * 1024 * mib, 3.955 * 1024 * mib}, 64 << 30}, {"my db", "MEM USAGE", []float64{0, 1}, used, 64 << 30}}},
		{"kubectl top", "", "2026-11-01T12:00:00Z\nNAMESPACE   NAME     CPU(cores)   MEMORY(bytes)   \nllm         vllm-0   250m         4000Mi          \n\n2026-11-01T12:01:00Z\nNAMESPACE   NAME     CPU(cores)   MEMORY(bytes)   \nllm         vllm-0   250m         4050Mi          \n",
			[]want{{"llm vllm-0", "MEMORY(bytes)", minutes, used, 0}}},
		{"sar over noon", "", "Linux 6.1.0 (host)  11/01/2026  _x86_64_  (2 CPU)\n\n11:59:00 AM kbmemfree   kbavail kbmemused  %memused\n11:59:30 AM  4000000   4000000   4096000     50.00\n\n12:00:20 PM kbmemfree   kbavail kbmemused  %memused\n12:00:30 PM  4000000   4000000   4147200     50.00\nAverage:     4000000   4000000   4121600     50.00\n",
			[]want{{"", "kbmemused", minutes, used, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, read(t, c.text), c.unit, c.want)
		})
	}
}

// topAt is what top -b prints, at a time.
func topAt(clock, python string, init int) string {
	return fmt.Sprintf("top - %s up 1 day,  1 user,  load average: 0.10, 0.10, 0.10\nTasks:   2 total,   1 running,   1 sleeping\nMiB Mem :  24000.0 total,  19000.0 free,   1500.0 used,   3500.0 buff/cache\n\n"+
		"    PID USER      PR  NI    VIRT    RES    SHR S  %%CPU  %%MEM     TIME+ COMMAND\n   4242 root      20   0   20.1g %6s  12000 S   0.0   2.0   0:01.00 python\n      7 root      20   0    9000 %6d     12 S   0.0   2.0   0:01.00 init\n\n", clock, python, init)
}

// dockerAt is what docker stats prints on a terminal, which it clears first.
func dockerAt(vllm, db string) string {
	return fmt.Sprintf("\x1b[2J\x1b[HCONTAINER ID   NAME      CPU %%     MEM USAGE / LIMIT   MEM %%     NET I/O       BLOCK I/O     PIDS\n"+
		"0a1b2c3d4e5f   vllm      12.30%%    %s / 64GiB   6.10%%     1kB / 2kB     0B / 0B       12\n0a1b2c3d4e60   my db     0.30%%     %s / 64GiB   6.10%%     1kB / 2kB     0B / 0B       2\n0a1b2c3d4e61   gone      --        -- / --   --     --     --       --\n", vllm, db)
}

func read(t *testing.T, text string) []profiles.Column {
	t.Helper()
	if !Is([]byte(text)) {
		t.Fatal("is not known")
	}
	f, err := Read(strings.NewReader(text))
	if err != nil || f.Partial != nil {
		t.Fatal(err, f.Partial)
	}
	return f.Columns
}

func check(t *testing.T, got []profiles.Column, unit string, all []want) {
	t.Helper()
	if len(got) != len(all) {
		t.Fatalf("%d columns, want %d: %+v", len(got), len(all), got)
	}
	for i, w := range all {
		g := got[i]
		limit := 0.0
		if g.Limit != nil {
			limit = float64(*g.Limit)
		}
		if g.Process != w.process || g.Name != w.name || g.Unit != unit || limit != w.limit || !equal(g.Times, w.times) || !equal(g.Bytes, w.levels) {
			t.Errorf("%q %q in %q, %v %v, limit %v; want %+v", g.Process, g.Name, g.Unit, g.Times, g.Bytes, limit, w)
		}
	}
}

func equal(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.IsNaN(a[i]) != math.IsNaN(b[i]) || math.Abs(a[i]-b[i]) > 1e-6*math.Abs(b[i])+zero {
			return false
		}
	}
	return true
}

const (
	vllmStart  = "(EngineCore pid=258) INFO 11-01 11:59:00 [gpu_worker.py:440] Available KV cache memory: 20.00 GiB\n(EngineCore pid=258) INFO 11-01 11:59:01 [kv_cache_utils.py:1708] GPU KV cache size: 20,992 tokens\n"
	vllmLine   = "(APIServer pid=1) INFO 11-01 12:0%d:00 [loggers.py:111] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: %d.0%%, Prefix cache hit rate: 0.0%%\n"
	vllmOld    = "INFO 11-01 12:0%d:00 metrics.py:334] Avg prompt throughput: 1.0 tokens/s, Running: %d reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: %d.0%%, CPU KV cache usage: 0.0%%\n"
	sglangLine = "[2026-11-01 12:0%d:00 TP0] Decode batch, #running-req: %d, #token: %d0, token usage: 0.%02d, cuda graph: True, gen throughput (token/s): 144.95, #queue-req: 0\n"
)

func TestEngines(t *testing.T) {
	minutes := []float64{0, 60}
	for _, c := range []struct {
		name, text string
		percent    bool
		want       want
	}{
		{"vLLM", fmt.Sprintf(vllmLine, 0, 3, 10) + fmt.Sprintf(vllmLine, 1, 4, 0), true, want{"engine 000", ofCache, minutes, []float64{10, 0}, 100}},
		{"vLLM with its start", vllmStart + fmt.Sprintf(vllmLine, 0, 3, 10) + fmt.Sprintf(vllmLine, 1, 4, 20), false, want{"engine 000", ofCache, minutes, []float64{2 << 30, 4 << 30}, 20 << 30}},
		{"an older vLLM", fmt.Sprintf(vllmOld, 0, 3, 10) + fmt.Sprintf(vllmOld, 1, 4, 20), true, want{"", ofCache, minutes, []float64{10, 20}, 100}},
		{"SGLang", fmt.Sprintf(sglangLine, 0, 3, 10, 10) + fmt.Sprintf(sglangLine, 1, 4, 20, 20), true, want{"TP0", ofCache, minutes, []float64{10, 20}, 100}},
		{"SGLang with its start", "[2026-11-01 11:59:00 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1000, K size: 5.00 GB, V size: 5.00 GB\n" +
			fmt.Sprintf(sglangLine, 0, 3, 10, 10) + fmt.Sprintf(sglangLine, 1, 4, 25, 26), false, want{"TP0", ofCache, minutes, []float64{1 << 30, 2.5 * (1 << 30)}, 10 << 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, c.text)
			check(t, got, "", []want{c.want})
			if g := got[0]; g.Percent != c.percent || !g.Cache || !equal(g.Requests, []float64{3, 4}) {
				t.Errorf("percent %v, cache %v, requests %v", g.Percent, g.Cache, g.Requests)
			}
		})
	}
}

// TestIsNot: a text without levels is of another kind, or its error states what to run.
func TestIsNot(t *testing.T) {
	for _, text := range []string{"", "hello\n", "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.\n", "step 5 GPU memory 12 MiB / 80 MiB\n", strings.Repeat("\x00| NVIDIA-SMI 550.54\n", 9)} {
		if Is([]byte(text)) {
			t.Errorf("is taken: %q", text)
		}
	}
	long := "INFO [loggers.py:111] start\n" + strings.Repeat("a line of the start of an engine\n", maxBefore/10)
	for _, text := range []string{vllmStart, long, "[2026-11-01 11:59:00] server_args=ServerArgs(model='x')\n"} {
		if _, err := Read(strings.NewReader(text)); !errors.Is(err, profiles.ErrOther) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	for text, what := range map[string]string{
		"# gpu    pwr  gtemp  mtemp     sm    mem\n# Idx      W      C      C      %      %\n    0     70     30      -      1      0\n": "-s m",
		"\n==============NVSMI LOG==============\n\nTimestamp : Sun Nov  1 12:00:00 2026\nGPU 00000000:18:00.0\n    Temperature\n":       "-d MEMORY",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v does not say %q", err, what)
		}
	}
}

// TestBounds: what would fill memory ends the reading.
func TestBounds(t *testing.T) {
	var text strings.Builder
	text.WriteString("# gpu        pid  type    fb   command\n")
	for i := range maxColumns + 5 {
		fmt.Fprintf(&text, "    0       %d     C   10   python\n", i)
	}
	f, err := Read(strings.NewReader(text.String()))
	if err != nil || f.Partial == nil || len(f.Columns) != maxColumns {
		t.Errorf("%v, partial %v", err, f.Partial)
	}
	f, err = Read(strings.NewReader(fmt.Sprintf(vllmLine, 0, 1, 1) + strings.Repeat("x", 3*longest) + "\n" + fmt.Sprintf(vllmLine, 1, 1, 2)))
	if err != nil || f.Partial != nil || len(f.Columns[0].Bytes) != 2 {
		t.Errorf("a long line: %v, %+v", err, f)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"Sun Nov  1 12:00:00 2026\n" + fmt.Sprintf(smiTable, 1, 2), fmt.Sprintf(smiOld, 1, 2), fmt.Sprintf(smiQuery, 1, 2, 3), vllmStart + fmt.Sprintf(vllmLine, 1, 2, 3), fmt.Sprintf(sglangLine, 1, 2, 3, 4), "# gpu     fb   bar1\n    0   4000      4\n", topAt("12:00:00", "4g", 7), dockerAt("3GiB", "4MiB")} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Read(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		for _, c := range file.Columns {
			if len(c.Times) != len(c.Bytes) || len(c.Bytes) == 0 || c.Requests != nil && len(c.Requests) != len(c.Bytes) {
				t.Errorf("%d times, %d levels, %d requests", len(c.Times), len(c.Bytes), len(c.Requests))
			}
			for _, x := range c.Times {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("at %v", x)
				}
			}
		}
	})
}

// TestManyLevels adds more levels to a column than are kept: those that stay are evenly spread,
// with their times and requests.
func TestManyLevels(t *testing.T) {
	l := &levels{byKey: map[key]*column{}}
	c := cache{levels: l}
	const many = 5*maxOf + 7
	for i := range many {
		l.begin(float64(i))
		if k := l.add("", "x", float64(i), 0); k != nil {
			k.Requests = append(k.Requests, float64(i))
		}
		l.add("", "y", 1, 0) // twice in a round, which is summed
		l.add("", "y", 1, 0)
	}
	columns := c.columns("line")
	x, y := columns[0], columns[1]
	if len(x.Bytes) <= maxOf/2 || len(x.Bytes) > maxOf || len(x.Requests) != len(x.Bytes) || l.kept != len(x.Bytes)+len(y.Bytes) {
		t.Fatalf("%d levels, %d requests, %d kept", len(x.Bytes), len(x.Requests), l.kept)
	}
	for i := range x.Bytes {
		if want := float64(8 * i); x.Bytes[i] != want || x.Times[i] != want || x.Requests[i] != want || y.Bytes[i] != 2 {
			t.Fatalf("level %d: %g at %g with %g requests, and %g", i, x.Bytes[i], x.Times[i], x.Requests[i], y.Bytes[i])
		}
	}
}
