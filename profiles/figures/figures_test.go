package figures

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"strandline/profiles"
)

// TestRead reads lines that programs print about their memory.
func TestRead(t *testing.T) {
	const gib, mib = 1 << 30, 1 << 20
	repeat := func(format string, values ...float64) string {
		var b strings.Builder
		for i, v := range values {
			fmt.Fprintf(&b, strings.ReplaceAll(format, "#", fmt.Sprint(i+1))+"\n", v)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, text    string
		process, said string
		unit          string
		bytes         []float64
	}{
		{"mmcv", repeat("2019-12-31 00:2#:04,166 - INFO - Epoch [1][1550/23454]\tlr: 0.00050, time: 0.429, memory: %g, loss: 5.5632", 6814, 6814, 6815), "", "memory", "", []float64{6814 * mib, 6814 * mib, 6815 * mib}},
		{"DeepSpeed", repeat("[2023-12-05 20:24:2#,817] [INFO] [utils.py:810:see_memory_usage] CPU Virtual Memory:  used = %.2f GB, percent = 23.9%%", 44.74, 63.86, 81.1), "CPU", "used", "", []float64{44.74 * gib, 63.86 * gib, 81.1 * gib}},
		{"sleep mode", repeat("- After Step #: `%.2f GiB memory is still in use`", 4.11, 11.57, 25), "", "memory is still in use", "step", []float64{4.11 * gib, 11.57 * gib, 25 * gib}},
		{"a unit before", repeat("(WorkerDict pid=393228, ip=10.0.0.3) step # memory allocated (GB): %.2f, x", 45.5, 65.75, 66), "WorkerDict 393228", "memory allocated (GB)", "step", []float64{45.5 * gib, 65.75 * gib, 66 * gib}},
		{"getrusage", repeat("iter #: maxrss = %.0f", 222688, 274084, 300000), "", "maxrss", "step", []float64{222688 << 10, 274084 << 10, 300000 << 10}},
		{"TensorFlow", repeat("Memory info of GPU /physical_device:GPU:0: current: %.2f", 0.25, 0.5, 0.75), "GPU:0", "current", "reading", []float64{gib / 4, gib / 2, gib * 3 / 4}},
		{"one phase", repeat("After offload, memory allocated (GB): %.2f, x", 0.5, 20.5, 40), "", "memory allocated (GB) after offload", "reading", []float64{gib / 2, 20.5 * gib, 40 * gib}},
		{"bytes", repeat("step #: torch.cuda.memory_allocated()=%.0f", 168654098432, 168654098432, 168654098432), "", "torch.cuda.memory_allocated()", "step", []float64{168654098432, 168654098432, 168654098432}},
		{"alone", "Sleep mode freed 19.50 GiB memory, 26.25 GiB memory is still in use.\n", "", "memory is still in use.", "reading", []float64{26.25 * gib}},
		{"a figure like a date", repeat("device memory used/total (GB): %g/60.96", 10.25, 28.75, 28.5), "", "device memory used/total (GB)", "reading", []float64{10.25 * gib, 28.75 * gib, 28.5 * gib}},
		{"of so much", repeat("step #: memory in use: %.1f GB / 79.10 GB.", 66.5, 7.5, 66.5), "", "memory in use", "step", []float64{66.5 * gib, 7.5 * gib, 66.5 * gib}},
		{"rows of Markdown", "| | t+10s | t+70s | t+130s |\n|---|---|---|---|\n| server RSS | 604 MB | 2629 MB | **5304 MB** |\n", "", "server RSS", "reading", []float64{604 * mib, 2629 * mib, 5304 * mib}},
		{"columns of Markdown", "| Step | fixed |\n|---|---|\n| 2 | 941 MB |\n| 3 | 941 MB (=) |\n| 4 | — |\n", "", "fixed", "reading", []float64{941 * mib, 941 * mib}},
	} {
		f, err := Read(strings.NewReader(c.text))
		if err != nil || len(f.Columns) != 1 || !Is([]byte(c.text)) {
			t.Errorf("%s: %v, %+v", c.name, err, f)
			continue
		}
		got := f.Columns[0]
		same := len(got.Bytes) == len(c.bytes)
		for i := range got.Bytes {
			same = same && math.Abs(got.Bytes[i]-c.bytes[i]) < 1
		}
		if !same || got.Name != c.said || got.Process != c.process || got.Unit != c.unit {
			t.Errorf("%s: %q of %q by %q: %v", c.name, got.Name, got.Process, got.Unit, got.Bytes)
		}
	}
}

// Lines that are about one device or another are a series of each; where all are about one, it
// is not named.
func TestDevices(t *testing.T) {
	for _, c := range []struct {
		line string // with a device and a level, in MiB
		want []string
	}{
		{"device=%d step=3 large_pool reserved: %d MiB", []string{"device 0", "device 3"}},
		{"cuda:%d memory allocated %d MiB", []string{"device 0", "device 3"}},
		{"local_rank %d: memory_reserved %d MiB", []string{"0", "3"}},
		{"GPU 1 memory: 7 MiB, GPU %d memory: %d MiB", []string{"device 0", "device 1", "device 3"}},
		{"[device=5] on GPU 5%% %d: memory %d MiB", []string{""}},
		{"GPU use of gpu_id '%d', memory allocated: %d MiB", []string{"device 0", "device 3"}},
	} {
		var text strings.Builder
		for i := range 12 {
			fmt.Fprintf(&text, c.line+"\n", 3*(i%2), 100+i)
		}
		f, err := Read(strings.NewReader(text.String()))
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		var got []string
		for _, column := range f.Columns {
			got = append(got, column.Process)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: of %q, want %q", c.line, got, c.want)
		}
	}
}

// TestLongLines keeps the beginnings of long lines alone, also of rows with a figure in each cell.
func TestLongLines(t *testing.T) {
	for name, line := range map[string]string{
		"row":  "|" + strings.Repeat(" 1 GiB |", 1000) + "\n",
		"line": "GPU 1 memory: 7 MiB, GPU 2 memory: 8 MiB" + strings.Repeat(", é 1", 3000) + "\n",
	} {
		f, err := Read(strings.NewReader(strings.Repeat(line, 6)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, c := range f.Columns {
			if kept := c.Lines[1]; len(kept) > maxQuote || len(kept) < maxQuote-3 || !utf8.ValidString(kept) {
				t.Errorf("%s: %d bytes are kept of a line", name, len(kept))
			}
		}
	}
}

// TestKeys reads the figure of a key as that of no other key of its line.
func TestKeys(t *testing.T) {
	f, err := Read(strings.NewReader(strings.Repeat(`msg=state memory.available="[22.4 GiB]" memory.used="[4.0 GiB]" heap="1.0 GiB"`+"\n", 3)))
	if err != nil || len(f.Columns) != 2 || f.Columns[0].Name != "memory.used" || f.Columns[1].Name != "heap" {
		t.Errorf("%v, %+v", err, f)
	}
}

// TestLogged tells what a program logs from a table that somebody made of it.
func TestLogged(t *testing.T) {
	for text, want := range map[string]bool{
		"memory: 4 GiB\nmemory: 5 GiB\nmemory: 6 GiB\n":                               true,
		"| Step | memory |\n|---|---|\n| 2 | 4 GiB |\n| 3 | 5 GiB |\n| 4 | 6 GiB |\n": false,
	} {
		f, err := Read(strings.NewReader(text))
		if err != nil || len(f.Columns) != 1 || f.Columns[0].Logged != want {
			t.Errorf("%q: %v, %+v", text, err, f)
		}
	}
}

// TestNeeds tells what something needs from levels beside a remark about needs.
func TestNeeds(t *testing.T) {
	for line, want := range map[string]bool{
		"step # gc needed memory allocated: %d MiB":                               true,
		"step # loss 2.1 no sync required gpu memory allocated %d MiB":            true,
		"2026-11-29 10:0#:00,000 INFO: Memory before GC (GC not required): %d MB": true,
		"2026-11-29 10:0#:00 No compaction needed - RSS %d MB":                    true,
		"2026-11-29 10:0#:00 warmup no longer needed. rss=%d MB":                  true,
		"2026-11-29 10:0#:00 requires_grad=False memory allocated: %d MB":         true,
		"2026-11-29 10:0#:00 requires_grad tensors memory: %d MB":                 true,
		"2026-11-29 10:0#:00 [INFO] auth required=true mem=%dMB":                  true,
		`msg=offload memory.required.full="%d MiB"`:                               false,
		`msg=offload memory.required.allocations="[%d MiB]"`:                      false,
		"llama_model_load_internal: mem required  = %d MB (+ 1026.00 MB)":         false,
		"memory needed: %d MiB":                                                   false,
		"worker: memory_required=%d MiB":                                          false,
		"gpu_memory_required_mb=%d MiB":                                           false,
		"required GPU memory: %d MiB":                                             false,
		"cuda memory required by optimizer: %d MB":                                false,
		"this model requires at least %d MiB":                                     false,
	} {
		var b strings.Builder
		for i := range 6 {
			fmt.Fprintf(&b, strings.ReplaceAll(line, "#", fmt.Sprint(i+1))+"\n", 2000+150*i)
		}
		f, err := Read(strings.NewReader(b.String()))
		if got := err == nil && len(f.Columns) == 1 && len(f.Columns[0].Bytes) == 6; got != want || want != Is([]byte(b.String())) {
			t.Errorf("%s: %v, %+v", line, err, f)
		}
	}
}

// TestIsNot passes over texts that state no level again and again, or a failure.
func TestIsNot(t *testing.T) {
	for name, text := range map[string]string{
		"throughput":   strings.Repeat("copied at 12.5 GB/s\n", 5),
		"file sizes":   strings.Repeat("wrote checkpoint size 4.5 GiB\n", 5),
		"a start":      "Model loading took 95.63 GiB memory\nAvailable KV cache memory: 10.1 GiB\n",
		"losses":       strings.Repeat("step 4 loss 2.25 lr 0.001\n", 9),
		"versions":     strings.Repeat("torch 2.11.0 cuda 13.0\n", 9),
		"a failure":    strings.Repeat("memory: 6814\n", 5) + "RuntimeError: CUDA out of memory.\n",
		"a page":       "# Memory\n\n```\n" + strings.Repeat("memory: 6814\n", 5) + "```\n",
		"limits":       strings.Repeat("memory limit: 8 GiB\n", 5),
		"free memory":  strings.Repeat("free memory: 8 GiB\n", 5),
		"one moment":   "loaded in 4 s\n" + `level=INFO msg="offload to cuda" memory.available="[78.6 GiB]" memory.required.full="3.7 GiB" memory.weights.total="2.4 GiB"` + "\n",
		"numbers only": strings.Repeat("1 2 3\n", 5),
		"loads": strings.Repeat(`msg="offload to cuda" layers.offload=33 memory.available="[22.4 GiB]" memory.required.full="4.0 GiB" memory.required.kv="1.0 GiB" memory.weights.repeating="4.4 GiB" memory.graph.full="560.0 MiB"`+"\n"+
			"llama_new_context_with_model: KV self size  =  512.00 MiB, K (f16):  256.00 MiB, V (f16):  256.00 MiB\n", 5),
	} {
		if Is([]byte(text)) {
			f, _ := Read(strings.NewReader(text))
			t.Errorf("%s: %+v", name, f)
		}
		if _, err := Read(strings.NewReader(text)); name != "a failure" && name != "a page" && !errors.Is(err, profiles.ErrOther) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("| a | b |\n|---|---|\n| 1 | 2 MB |\n"))
	f.Add([]byte("step 1: memory: 12.5 GiB / 80 GiB\nstep 2: memory: 13 GiB\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, c := range file.Columns {
			if len(c.Times) != len(c.Bytes) || len(c.Bytes) > len(data) {
				t.Fatalf("%d times of %d levels in %d bytes", len(c.Times), len(c.Bytes), len(data))
			}
			for i, b := range c.Bytes {
				if b < 0 || math.IsNaN(b) || math.IsNaN(c.Times[i]) {
					t.Fatalf("%s: level %g at %g", c.Name, b, c.Times[i])
				}
			}
		}
	})
}

// BenchmarkRead reads the log of a trainer.
func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&text, "2019-12-31 %02d:%02d:%02d,166 - INFO - Epoch [1][%d/23454]\tlr: 0.00050, time: 0.429, memory: %d, loss: 5.5632\n", n/3600%24, n/60%60, n%60, n, 6814+n%7)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := Read(strings.NewReader(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}
