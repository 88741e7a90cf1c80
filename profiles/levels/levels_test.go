package levels

import (
	"errors"
	"math"
	"strings"
	"testing"

	"strandline/profiles"
)

func read(t *testing.T, text string) []profiles.Column {
	t.Helper()
	if !Is([]byte(text)) {
		t.Fatalf("is not taken for a table:\n%s", text)
	}
	f, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f.Columns
}

func TestRead(t *testing.T) {
	nan := math.NaN()
	type column struct {
		process, name string
		times, bytes  []float64
		limit         int64
	}
	for _, c := range []struct {
		name, text string
		want       []column
	}{
		{"seconds and bytes", "seconds,bytes\n0,100\n1,?\n2,300\n", []column{{"", "bytes", []float64{0, 1, 2}, []float64{100, nan, 300}, 0}}},
		{"no header", "0,100\n1.5,200\n", []column{{"", "column 2", []float64{0, 1.5}, []float64{100, 200}, 0}}},
		{"dates and a unit in the header", "Date;RSS (KB)\n2026-11-22 10:00:00;1\n2026-11-22 10:01:00;\n2026-11-22 10:02:00;3\n",
			[]column{{"", "RSS (KB)", []float64{0, 60, 120}, []float64{1024, nan, 3072}, 0}}},
		{"milliseconds since 1970", "ts\trss_mb\n1763805600000\t1\n1763805600500\t2\n", []column{{"", "rss_mb", []float64{0, 0.5}, []float64{1 << 20, 2 << 20}, 0}}},
		{"minutes", "elapsed_min,value\n0,1\n1,2\n", []column{{"", "value", []float64{0, 60}, []float64{1, 2}, 0}}},
		{"numbers that are not sizes", "time,cpu %,loss,gpu_mem_gib,step\n0,12.5,3.1,1,0\n1,13,2.9,1.5,1\n",
			[]column{{"", "gpu_mem_gib", []float64{0, 1}, []float64{1 << 30, 1.5 * (1 << 30)}, 0}}},
		{"names of processes", "t,trainer,scheduler\n0,10,20\n1,11,20\n",
			[]column{{"", "trainer", []float64{0, 1}, []float64{10, 11}, 0}, {"", "scheduler", []float64{0, 1}, []float64{20, 20}, 0}}},
		{"nvidia-smi", "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n" +
			"2026/11/22 10:00:00.123, 0, 3 %, 10 MiB, 100 MiB\n2026/11/22 10:00:00.125, 1, 4 %, 20 MiB, 100 MiB\n" +
			"2026/11/22 10:00:05.123, 0, 3 %, 12 MiB, 100 MiB\n2026/11/22 10:00:05.125, 1, 4 %, [N/A], 100 MiB\n",
			[]column{{"index 0", "memory.used [MiB]", []float64{0, 5}, []float64{10 << 20, 12 << 20}, 100 << 20}, {"index 1", "memory.used [MiB]", []float64{0, 5}, []float64{20 << 20, nan}, 100 << 20}}},
		{"docker stats", "time,container,mem_usage\n10:00:00,a,1.5MiB / 2GiB\n10:00:10,a,2MiB / 2GiB\n", []column{{"", "mem_usage", []float64{0, 10}, []float64{1.5 * (1 << 20), 2 << 20}, 2 << 30}}},
		{"white space, comments, the header once more", "# by hand\ntime rss\n0 1\n\ntime rss\n5 2\n", []column{{"", "rss", []float64{0, 5}, []float64{1, 2}, 0}}},
		{"names in a comment", "# time, rss_kb\n0,1\n5,2\n", []column{{"", "rss_kb", []float64{0, 5}, []float64{1 << 10, 2 << 10}, 0}}},
		{"psrecord", "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)\n       0.000       50.000        2.000        9.000\n       5.000       50.000        3.000        9.000\n",
			[]column{{"", "Real (MB)", []float64{0, 5}, []float64{2 << 20, 3 << 20}, 0}, {"", "Virtual (MB)", []float64{0, 5}, []float64{9 << 20, 9 << 20}, 0}}},
		{"a comment of as many words", "# by hand\n0 1\n5 2\n", []column{{"", "column 2", []float64{0, 5}, []float64{1, 2}, 0}}},
		{"ps", "TIME PID RSS VSZ\n10:00:00 7 100 900\n10:00:05 7 200 900\n",
			[]column{{"", "RSS", []float64{0, 5}, []float64{100 << 10, 200 << 10}, 0}, {"", "VSZ", []float64{0, 5}, []float64{900 << 10, 900 << 10}, 0}}},
		{"decimal commas", "Zeit;RSS_MB\n01.11.2026 00:00:00;2002,5\n01.11.2026 00:01:00;2002,875\n",
			[]column{{"", "RSS_MB", []float64{0, 60}, []float64{2002.5 * (1 << 20), 2002.875 * (1 << 20)}, 0}}},
		{"nvidia-smi without its header", "2026/11/22 10:00:00.123, 0, NVIDIA H100 80GB HBM3, 3 %, 10 MiB, 100 MiB\n2026/11/22 10:00:05.123, 0, NVIDIA H100 80GB HBM3, [N/A], 12 MiB, 100 MiB\n",
			[]column{{"", "GPU memory, column 5", []float64{0, 5}, []float64{10 << 20, 12 << 20}, 100 << 20}}},
		{"what is left of a total", "timestamp, memory.free [MiB], memory.total [MiB]\n2026/11/22 10:00:00.123, 90 MiB, 100 MiB\n2026/11/22 10:00:05.123, 88 MiB, 100 MiB\n",
			[]column{{"", "memory.total [MiB] less memory.free [MiB]", []float64{0, 5}, []float64{10 << 20, 12 << 20}, 100 << 20}}},
		{"quotes and a byte order mark", "\ufefftime,\"rss, bytes\"\r\n0,\"1,024\"\r\n1,2048\r\n", []column{{"", "rss, bytes", []float64{0, 1}, []float64{1024, 2048}, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, c.text)
			if len(got) != len(c.want) {
				t.Fatalf("%d columns, want %d: %+v", len(got), len(c.want), got)
			}
			for i, w := range c.want {
				g := got[i]
				limit := int64(0)
				if g.Limit != nil {
					limit = *g.Limit
				}
				if g.Process != w.process || g.Name != w.name || limit != w.limit || !equal(g.Times, w.times) || !equal(g.Bytes, w.bytes) {
					t.Errorf("%q %q %v %v limit %d, want %+v", g.Process, g.Name, g.Times, g.Bytes, limit, w)
				}
			}
		})
	}
}

// TestStated checks which columns say that they are memory, by a name or a unit, and that a
// column that is below 0 is none.
func TestStated(t *testing.T) {
	for text, want := range map[string]bool{
		"0,100\n1,200\n":                  false,
		"0,1MiB\n1,2MiB\n":                true,
		"t,rss\n0,100\n1,200\n":           true,
		"t,trainer\n0,100\n1,200\n":       false,
		"t,trainer\n0,1.5 GiB\n1,2 GiB\n": true,
		"t,rss\n0,-1\n1,200\n2,300\n":     true, // -1 is missing
		"2026/11/22 10:00:00.123, 0, 10 MiB, 100 MiB\n2026/11/22 10:00:05.123, 0, 12 MiB, 100 MiB\n": true,
	} {
		if got := read(t, text); len(got) != 1 || got[0].Unstated == want {
			t.Errorf("%q: %+v, want %v", text, got, want)
		}
	}
	if f, err := Read(strings.NewReader("0,-32768\n1,200\n2,300\n")); !errors.Is(err, profiles.ErrOther) {
		t.Errorf("negative sizes: %+v, %v", f, err)
	}
}

func TestMoments(t *testing.T) {
	for _, c := range []struct {
		name, text, unit string
		times            []float64
	}{
		{"steps", "step,memory_allocated_gb\n100,1\n200,2\n300,3\n", "step", []float64{0, 100, 200}},
		{"steps of wandb", "_step,gpu_mem\n0,1\n1,2\n", "step", []float64{0, 1}},
		{"iterations", "iter,rss_mb\n0,1\n1,2\n", "iteration", []float64{0, 1}},
		{"epochs", "epoch,rss_mb\n0,1\n1,2\n", "epoch", []float64{0, 1}},
		{"seconds since 1970", "epoch,rss_mb\n1793534400,1\n1793534460,2\n", "", []float64{0, 60}},
		{"times beside the steps", "step,time,rss_mb\n0,5,1\n100,6,2\n", "", []float64{0, 1}},
		{"minutes and seconds", "elapsed,rss_mb\n00:00,1\n00:30,2\n01:00,3\n", "", []float64{0, 30, 60}},
		{"as ps prints them", "elapsed,rss_mb\n59:30,1\n01:00:00,2\n1-00:00:30,3\n", "", []float64{0, 30, 82860}},
		{"minutes, as is found out later", "time,rss_mb\n23:00,1\n23:30,2\n24:00,3\n100:00.5,4\n", "", []float64{0, 30, 60, 4620.5}},
		{"more hours than a day has", "time,rss_mb\n23:59:00,1\n24:00:00,2\n25:00:00,3\n", "", []float64{0, 60, 3660}},
		{"dates of the United States", "Time,rss_mb\n11/01/2026 11:59:00 AM,1\n11/01/2026 12:01:00 PM,2\n", "", []float64{0, 120}},
		{"times of the day", "time,rss_mb\n10:00,1\n10:30,2\n", "", []float64{0, 1800}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, c.text)
			if len(got) != 1 || got[0].Unit != c.unit || !equal(got[0].Times, c.times) {
				t.Errorf("%+v, want %v in %q", got, c.times, c.unit)
			}
		})
	}
}

func equal(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-6*max(1, math.Abs(b[i])) || math.IsNaN(a[i]) != math.IsNaN(b[i]) {
			return false
		}
	}
	return true
}

func TestIsNot(t *testing.T) {
	for _, text := range []string{
		"", "\n\n", "hello\n", "time,rss\n", "time,rss\n0,1\n",
		"2026-11-22 10:00:00,123 INFO loading\n2026-11-22 10:00:01,456 INFO done\n",
		"step 1 loss 2.3\nstep 2 loss 2.1\n",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
		"2026-11-22 10:00:00 step 5\n2026-11-22 10:00:01 step 6\n2026-11-22 10:00:02 step 7\n",
		"10:00:00 epoch 1 done 512\n10:00:05 epoch 2 done 512\n10:00:09 epoch 3 done 512\n",
		"t saved checkpoint\n1 2 3\n2 3 4\n3 4 5\n",
		"name,size\na,1\nb,2\n", "{\"a\": 1,\n\"b\": 2}\n", "1,a\n2,b\n3,c\n",
		"time,loss\n0,2.5\n1,2.4\n2,2.3\n",
	} {
		if Is([]byte(text)) {
			t.Errorf("is taken for a table: %q", text)
		}
	}
}

// TestColumns tells tables from other texts with commas.
func TestColumns(t *testing.T) {
	for text, want := range map[string]int{
		"id,model,gpus\n1,\"a, b\",8\n2,c,16\n":            3,
		"id\tmodel\tgpus\n1\ta\t8\n2\tb\t16\n3\tcu":        3, // the rest is not in this beginning
		"id,model,gpus\n1,a,8\n":                           0,
		"id,model,gpus\n1,a,8\n2,b\n":                      0,
		"id,model,id\n1,a,8\n2,b,16\n":                     0,
		"1,2,3\n4,5,6\n7,8,9\n":                            0,
		"10:00:01, a, b\n10:00:02, a, b\n10:00:03, c, d\n": 0,
		"one two three\none two three\none two three\n":    0,
		"": 0,
	} {
		if got := Columns([]byte(text)); got != want {
			t.Errorf("%d columns, want %d: %q", got, want, text)
		}
	}
}

// TestReasons: where it is clear what a table lacks, the error names the column and says
// what to do.
func TestReasons(t *testing.T) {
	for text, want := range map[string]string{
		"timestamp, memory.free [MiB]\n2026/11/22 10:00:00.123, 90 MiB\n2026/11/22 10:00:05.123, 88 MiB\n": `the column "memory.free [MiB]" states what is left, not what is held: add what is in use`,
		"2026/11/22 10:00:00.123, 0, 4000, 81559\n2026/11/22 10:00:05.123, 0, 4050, 81559\n":               "have neither names nor units: let nvidia-smi write them",
	} {
		if !Is([]byte(text)) {
			t.Errorf("is not taken for a table: %q", text)
		}
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestBadRows(t *testing.T) {
	f, err := Read(strings.NewReader("time,rss\n0,1\n1,2\noops\n2,x\n3,4\n4"))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "2 of 6 rows could not be read, the first in line 4") {
		t.Errorf("notes %q", f.Notes)
	}
	if c := f.Columns[0]; !equal(c.Times, []float64{0, 1, 3, 4}) || !equal(c.Bytes, []float64{1, 2, 4, math.NaN()}) {
		t.Errorf("%v %v", c.Times, c.Bytes)
	}
	f, err = Read(strings.NewReader("time,rss\n0,1\n1,2\n" + strings.Repeat("9", longest+10) + "\n2,3\n"))
	if err != nil || f.Partial == nil || len(f.Columns[0].Bytes) != 2 {
		t.Errorf("a long line: %v, %+v", err, f)
	}
}

// TestShortRows reads rows of one cell below a header of thousands, and counts the levels that
// come of them.
func TestShortRows(t *testing.T) {
	text := "time" + strings.Repeat(",rss_mb", 4000) + "\n1" + strings.Repeat(",1", 4000) + "\n" + strings.Repeat("1\n", 100_000)
	f, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	levels := 0
	for _, c := range f.Columns {
		levels += len(c.Bytes)
	}
	if f.Partial == nil || levels > 5_000_000 {
		t.Errorf("%d levels of %d bytes, %v", levels, len(text), f.Partial)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"seconds,bytes\n0,100\n1,?\n2,300\n", "t;a;b\n10:00;1GiB / 2GiB;x\n", "time,pid,rss\n0,1,2\n0,2,3\n1,1,\"2,000\"\n", "1 2\n3 4\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		is := Is(data)
		file, err := Read(strings.NewReader(string(data)))
		if is && errors.Is(err, profiles.ErrOther) {
			t.Errorf("is a table, and cannot be read: %v", err)
		}
		if err != nil {
			return
		}
		for _, c := range file.Columns {
			if len(c.Times) != len(c.Bytes) || len(c.Bytes) == 0 {
				t.Errorf("%d times and %d levels", len(c.Times), len(c.Bytes))
			}
			for _, x := range c.Times {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("at %v", x)
				}
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	text.WriteString("time,rss,gpu_mem\n")
	for range 100_000 {
		text.WriteString("1763805600.123,123456789,2345678912\n")
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := Read(strings.NewReader(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}
