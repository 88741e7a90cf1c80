package logs

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"strandline/internal/test/live"
	"strandline/logs/failure"
	"strandline/logs/table"
	"strandline/logs/text"
	"strandline/units"
)

const (
	message113 = "RuntimeError: CUDA out of memory. Tried to allocate 36.00 MiB (GPU 0; 7.93 GiB total capacity; 130.35 MiB already allocated; 47.06 MiB free; 188.00 MiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
	message21  = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 472.00 MiB. GPU 3 has a total capacty of 23.70 GiB of which 114.56 MiB is free. Including non-PyTorch memory, this process has 23.58 GiB memory in use. Of the allocated memory 18.26 GiB is allocated by PyTorch, and 3.69 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation."
	message26  = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 996.00 MiB. GPU 0 has a total capacity of 44.43 GiB of which 9.06 GiB is free. Process 2102129 has 17.54 GiB memory in use. Including non-PyTorch memory, this process has 17.81 GiB memory in use. 17.69 GiB allowed; Of the allocated memory 17.44 GiB is allocated by PyTorch, with 32.00 MiB allocated in private pools (e.g., CUDA Graphs), and 59.88 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
	messageXPU = "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 192.00 MiB. GPU 3 has a total capacity of 31.89 GiB of which 13.22 GiB is free. Of the allocated memory 15.20 GiB is allocated by PyTorch, and 96.00 MiB is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory."
)

const (
	messageAsync = "torch.OutOfMemoryError: Allocation on device 1 would exceed allowed memory. (out of memory)\n" +
		"Currently allocated     : 4.86 GiB\nRequested               : 10.12 GiB\nDevice limit            : 24.00 GiB\n" +
		"Free (according to CUDA): 0 bytes\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB\n"
	messageSilent = "RuntimeError: XPU out of memory, please use `empty_cache` to release all unoccupied cached memory."
	messageMPS    = "RuntimeError: MPS backend out of memory (MPS allocated: 14.29 GiB, other allocations: 3.65 GiB, max allowed: 20.13 GiB). Tried to allocate 2.67 GiB on shared pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure)."
	messageNCCL   = "ng30903:3063028:3066152 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n\n" +
		"ng30903:3063028:3066152 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes\n"
)

// figuresOf returns what a message states, in MiB.
func figuresOf(o *failure.OOM) string {
	if o == nil {
		return "none"
	}
	var b strings.Builder
	add := func(name string, n *int64) {
		if n != nil {
			fmt.Fprintf(&b, "%s=%.4g ", name, float64(*n)/(1<<20))
		}
	}
	b.WriteString(o.Backend)
	if o.Device != nil {
		fmt.Fprintf(&b, ":%d", *o.Device)
	}
	b.WriteString(" ")
	add("request", o.Request)
	add("total", o.Total)
	add("free", o.Free)
	add("allowed", o.Allowed)
	add("allocated", o.Allocated)
	add("reserved", o.Reserved)
	add("unallocated", o.Unallocated)
	add("private", o.Private)
	add("in-use", o.InUse)
	add("others", o.Others)
	for _, p := range o.Processes {
		add(fmt.Sprint("pid-", p.PID), &p.Bytes)
	}
	return strings.TrimSpace(b.String())
}

const (
	figures113   = "CUDA:0 request=36 total=8120 free=47.06 allocated=130.4 reserved=188 unallocated=57.65"
	figures21    = "CUDA:3 request=472 total=2.427e+04 free=114.6 allocated=1.87e+04 reserved=2.248e+04 unallocated=3779 in-use=2.415e+04"
	figures26    = "CUDA:0 request=996 total=4.55e+04 free=9277 allowed=1.811e+04 allocated=1.783e+04 reserved=1.792e+04 unallocated=91.88 private=32 in-use=1.824e+04 pid-2102129=1.796e+04"
	figuresAsync = "CUDA:1 request=1.036e+04 total=2.458e+04 free=0 allocated=4977"
	figuresMPS   = "MPS request=2734 allowed=2.061e+04 reserved=1.463e+04 others=3738"
	figuresXPU   = "XPU:3 request=192 total=3.266e+04 free=1.354e+04 allocated=1.556e+04 reserved=1.566e+04 unallocated=96"
)

// TestScanMessages is long because it is one table of messages and their figures.
//
// long: one row a message
func TestScanMessages(t *testing.T) {
	live.Concurrent(t)
	for _, c := range []struct {
		name, text string
		count      int
		line       int64
		figures    string
	}{
		{"nothing", "INFO starting\nloss 0.5, memory 12 GiB\n", 0, 0, "none"},
		{"of the runtime", "RuntimeError: CUDA error: out of memory\n", 1, 1, "CUDA"},
		{"PyTorch 1.13", "INFO\n" + message113 + "\nINFO\n", 1, 2, figures113},
		{"PyTorch 2.1", message21, 1, 1, figures21},
		{"PyTorch 2.6 with a limit and pools", message26, 1, 1, figures26},
		{"XPU", messageXPU, 1, 1, figuresXPU},
		{"HIP, in bytes", "HIP out of memory. Tried to allocate 978 bytes. GPU 0 has a total capacity of 15.98 GiB of which 0 bytes is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 1 bytes is reserved by PyTorch but unallocated.", 1, 1,
			"HIP:0 request=0.0009327 total=1.636e+04 free=0 allocated=0 reserved=9.537e-07 unallocated=9.537e-07"},
		{"a limit before 2.1", "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 1; 8.00 GiB total capacity; 1.00 GiB already allocated; 6.00 GiB free; 1.50 GiB allowed; 1.20 GiB reserved in total by PyTorch)", 1, 1,
			"CUDA:1 request=1024 total=8192 free=6144 allowed=1536 allocated=1024 reserved=1229 unallocated=204.8"},
		{"an unknown size that wraps around", "CUDA out of memory. Tried to allocate 3.98 GiB. GPU 0 has a total capacity of 31.84 GiB of which 16.30 GiB is free. Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. 17.51 GiB allowed; Of", 1, 1,
			"CUDA:0 request=4076 total=3.26e+04 free=1.669e+04 allowed=1.793e+04"},
		{"of the driver", "RuntimeError: CUDA driver error: out of memory\n", 1, 1, "CUDA"},
		{"of an error about something else", "RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA error: invalid argument", 0, 0, "none"},
		{"another library's words", "numpy: Unable to allocate 3.00 GiB, the job ran out of memory; 2.00 GiB allowed", 0, 0, "none"},
		{"another program's table", "Currently allocated     : 13.24 GiB\nRequested               : 721.15 MiB\n", 0, 0, "none"},
		{"a program that looks for them", "if 'CUDA error: out of memory' in text or \"Cuda failure 2 'out of memory'\" in text:\n    WARN(\"Failed to CUDA calloc async %ld bytes\")", 0, 0, "none"},
		{"quoted with more behind it", `{"error": "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"}`, 1, 1, "CUDA"},
		{"cudaMallocAsync", messageAsync, 1, 1, figuresAsync},
		{"cudaMallocAsync with a limit", strings.ReplaceAll(messageAsync, "17179869184.00", "12.00"), 1, 1, strings.Replace(figuresAsync, "free=0 ", "free=0 allowed=1.229e+04 ", 1)},
		{"cudaMallocAsync, quoted", `{"exception_message": "` + strings.ReplaceAll(strings.TrimSpace(messageAsync), "\n", `\n`) + `"}`, 1, 1, figuresAsync},
		{"cudaMallocAsync, in a log", prefixed("2025-08-06 15:24:5%d ERROR ", strings.TrimSpace(messageAsync)), 1, 1, figuresAsync},
		{"cudaMallocAsync, cut before the first figure", strings.SplitAfter(messageAsync, "\n")[0], 0, 0, "none"},
		{"cudaMallocAsync, the first line cut off", messageAsync[strings.Index(messageAsync, "memory)"):], 1, 1, strings.Replace(figuresAsync, "CUDA:1 ", "", 1)},
		{"XPU at first", messageSilent, 1, 1, "XPU"},
		{"XPU at first, wrapped", wrapped(messageSilent, 40, ""), 1, 1, "XPU"},
		{"MPS", messageMPS, 1, 1, figuresMPS},
		{"MPS of PyTorch 2.0", strings.ReplaceAll(messageMPS, "GiB", "GB"), 1, 1, figuresMPS},
		{"MPS without a limit", strings.Replace(messageMPS, ", max allowed: 20.13 GiB", "", 1), 1, 1, strings.Replace(figuresMPS, "allowed=2.061e+04 ", "", 1)},
		{"MPS, wrapped anywhere", wrapped(messageMPS, 29, ""), 1, 1, figuresMPS},
		{"NCCL", messageNCCL, 1, 1, "CUDA:3 request=6"},
		{"NCCL's last error", "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3384, unhandled cuda error\nLast error:\nFailed to CUDA calloc async 608 bytes\n", 1, 3, "CUDA request=0.0005798"},
		{"NCCL, of one failure", "NCCL WARN Failed to CUDA calloc 4194304 bytes\nNCCL WARN Failed to CUDA calloc async 608 bytes\n", 1, 1, "CUDA request=4"},
		{"NCCL, of one failure, the largest last", "NCCL WARN Cuda failure 2 'out of memory'\nNCCL WARN Failed to CUDA calloc async 608 bytes\nFailed to CUDA calloc 4194304 bytes\n", 1, 1, "CUDA request=4"},
		{"NCCL, of two failures", "Failed to CUDA calloc 4194304 bytes\n1\n2\n3\n4\nFailed to CUDA calloc async 608 bytes\n", 2, 6, "CUDA request=0.0005798"},
		{"NCCL 2.21", "Last error:\nCuda failure 2 'out of memory'", 1, 2, "CUDA"},
		{"more than there can be", "CUDA out of memory. Tried to allocate more than 1EB memory.", 1, 1, "CUDA"},
		{"Ascend", "RuntimeError: NPU out of memory. Tried to allocate 260.00 MiB (NPU 2; 28.50 GiB total capacity; 10.24 GiB already allocated; 10.24 GiB current active; 149.57 MiB free; 10.28 GiB reserved in total by PyTorch)", 1, 1,
			"NPU:2 request=260 total=2.918e+04 free=149.6 allocated=1.049e+04 reserved=1.053e+04 unallocated=40.96"},
		{"decimal commas", strings.NewReplacer("472.00", "472,00", "18.26", "18,26", "114.56", "114,6").Replace(message21), 1, 1, figures21},
		{"commas that can be of thousands", strings.Replace(message21, "472.00", "1,472", 1), 1, 1, strings.Replace(figures21, "request=472 ", "", 1)},
		{"prefix", "(EngineCore pid=78) ERROR 05-19 00:53:24 [core.py:1138] " + message21 + "\n", 1, 1, figures21},
		{"color", "\x1b[31m" + strings.ReplaceAll(message21, "GPU 3", "\x1b[1mGPU 3\x1b[0m") + "\x1b[0m", 1, 1, figures21},
		{"wrapped at words", "x\n" + wrapped(message26, 80, " "), 1, 2, figures26},
		{"wrapped anywhere", "x\n" + wrapped(message26, 37, ""), 1, 2, figures26},
		{"wrapped behind a prefix", prefixed("[rank0]: ", wrapped(message26, 60, " ")), 1, 1, figures26},
		{"wrapped behind times", prefixed("2025-08-06 15:24:5%d ERROR ", wrapped(message26, 60, " ")), 1, 1, figures26},
		{"two ranks, line by line", interleaved(prefixed("[rank0]: ", wrapped(message26, 60, " ")), prefixed("[rank3]: ", wrapped(message21, 60, " "))), 2, 2, figures21},
		{"two ranks, the first last to end", interleaved(prefixed("[rank3]: ", wrapped(message21, 60, " ")), prefixed("[rank0]: ", wrapped(message26, 60, " "))), 2, 2, figures26},
		{"two in one line", `{"errors": ["` + message21 + `", "` + message26 + `"]}`, 2, 1, figures26},
		{"cut in half", message26[:220], 1, 1, "CUDA:0 request=996 total=4.55e+04 free=9277 pid-2102129=1.796e+04"},
		{"cut in a number", message26[:strings.Index(message26, ".43 GiB")], 1, 1, "CUDA:0 request=996"},
		{"cut in the middle of a word, at the end", message26[:strings.Index(message26, "ee. Process")], 1, 1, "CUDA:0 request=996 total=4.55e+04 free=9277"},
		{"cut in the middle of a word, at the beginning", message26[strings.Index(message26, "ied to"):], 1, 1, strings.TrimPrefix(figures26, "CUDA")},
		{"cut in the middle of the last figure's words", message26[strings.Index(message26, "ity of"):strings.Index(message26, "ch but")], 1, 1,
			"free=9277 allowed=1.811e+04 allocated=1.783e+04 reserved=1.792e+04 unallocated=91.88 private=32 in-use=1.824e+04 pid-2102129=1.796e+04"},
		{"cut in the middle of its name, before the first figure", "ERROR\n" + message26[:39], 0, 0, "none"},
		{"cut before the first figure", message26[:60], 0, 0, "none"},
		{"cut right before the first figure", message26[:strings.Index(message26, "996.00")], 0, 0, "none"},
		{"the head is cut off", message26[strings.Index(message26, "GPU 0"):], 1, 1, strings.Replace(strings.TrimPrefix(figures26, "CUDA"), "request=996 ", "", 1)},
		{"cut, and another", message26[:220] + "\nrestarting\n" + message21, 2, 3, figures21},
		{"on lines that follow each other", strings.Repeat(message21+"\n", 6), 6, 6, figures21},
		{"of several ranks, on lines that follow each other", "[rank0]: " + message26 + "\n[rank1]: " + message21 + "\n[rank0]: " + message26 + "\n[rank1]: " + message21 + "\n", 4, 4, figures21},
		{"of a container's log", containerLog(wrapped(message26, 60, " ")), 1, 1, figures26},
		{"in a list of lines", `['` + strings.ReplaceAll(wrapped(message26, 60, " "), "\n", `\n', '`) + `\n']`, 1, 1, figures26},
		{"in a comment", "2026-11-22T10:00:00Z # " + strings.ReplaceAll(wrapped(message26, 60, " "), "\n", "\n2026-11-22T10:00:01Z  # "), 1, 1, figures26},
		{"in a table", "| " + strings.ReplaceAll(wrapped(message26, 60, " "), "\n", " |\n| ") + " |", 1, 1, figures26},
		{"a line of others in it", inside(message26, "2025-08-06 15:24:55 INFO step 1234, loss 0.52\n"), 1, 1, figures26},
		{"lines of others in it", inside(message26, "INFO step 1234, loss 0.52\nWARN 12 retries\nINFO step 1235\n"), 1, 1, figures26},
		{"lines of others in it, twice", inside(inside(message26, "INFO step 1234\nWARN 12 retries\n"), "INFO 9.06 GiB read\n"), 1, 1, figures26},
		{"behind a very long line", strings.Repeat("memory ", 50000) + message21, 1, 1, figures21},
		{"Windows", utf16le(strings.ReplaceAll("x\n"+message21+"\n", "\n", "\r\n")), 1, 2, figures21},
	} {
		scanned, err := Scan(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		found := scanned.OOM
		if got := figuresOf(found.Last()); got != c.figures || found.Count != c.count {
			t.Errorf("%s: %d messages, the last\n%s, want %d,\n%s", c.name, found.Count, got, c.count, c.figures)
		}
		if found.Last() != nil && found.Last().Line != c.line {
			t.Errorf("%s: on line %d, want %d", c.name, found.Last().Line, c.line)
		}
		if cut := strings.HasSuffix(c.name, "before the first figure"); (found.Cut > 0) != cut {
			t.Errorf("%s: a message without figures on line %d", c.name, found.Cut)
		}
	}
}

// wrapped breaks a text into lines of at most n bytes, before a word or anywhere.
func wrapped(text string, n int, at string) string {
	var lines []string
	for len(text) > n {
		cut := n
		if at != "" {
			cut = strings.LastIndex(text[:n], at)
		}
		lines = append(lines, text[:cut])
		text = text[cut:]
	}
	return strings.Join(append(lines, text), "\n")
}

// inside breaks a text in the middle of a word, and puts lines of others there.
func inside(text, lines string) string {
	for _, word := range []string{"capacity", "allocated by"} {
		if before, after, ok := strings.Cut(text, word); ok {
			return before + word[:3] + "\n" + lines + word[3:] + after
		}
	}
	panic("no such word")
}

func prefixed(prefix, text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		p := prefix
		if strings.Contains(p, "%d") {
			p = fmt.Sprintf(p, i%10)
		}
		lines[i] = p + lines[i]
	}
	return strings.Join(lines, "\n")
}

// containerLog is a text in the form in which Docker keeps it.
func containerLog(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text + "\n") {
		fmt.Fprintf(&b, `{"log":"%s\n","stream":"stderr","time":"2026-11-22T10:00:00.123456789Z"}`+"\n", strings.TrimSuffix(line, "\n"))
	}
	return b.String()
}

func interleaved(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out []string
	for i := range max(len(x), len(y)) {
		if i < len(x) {
			out = append(out, x[i])
		}
		if i < len(y) {
			out = append(out, y[i])
		}
	}
	return strings.Join(out, "\n")
}

func utf16le(text string) string {
	out := []byte{0xff, 0xfe}
	for _, c := range utf16.Encode([]rune(text)) {
		out = append(out, byte(c), byte(c>>8))
	}
	return string(out)
}

// repeated is a long log, made while it is read.
type repeated struct {
	line string
	left int
	rest string
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.left == 0 {
			return 0, io.EOF
		}
		r.left--
		r.rest = r.line
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestMemoryIsBounded(t *testing.T) {
	for _, line := range []string{
		"INFO step 12, memory 12 GiB\n",
		"CUDA out of memory. Tried to allocate 2.00 GiB ",
		"CUDA out of memory. Tried to allocate ",
		"| Allocated memory      |   12",
		"|====\n| PyTorch CUDA memory summary, device ID 0 |\n| Allocated memory      | 12 B | 12 B |\n",
	} {
		log := &repeated{line: line}
		allocs := testing.AllocsPerRun(1, func() {
			log.left = 1000
			if _, err := Scan(log); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 100_000 {
			t.Errorf("%.0f allocations for 1000 times %q", allocs, line)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range []string{message113, message21, message26, messageXPU, messageAsync, messageMPS, messageNCCL, inside(message26, "INFO 12 GiB\n"), prefixed("[rank0]: ", wrapped(message26, 40, "")), message26[:100], utf16le(message21)} {
		f.Add([]byte(text))
	}
	for _, name := range []string{"small.txt", "two-devices.txt", "cached.txt"} {
		text := tableOf(f, name)
		f.Add([]byte("2026-05-01 10:00:00 INFO " + text))
		f.Add([]byte(interleaved(prefixed("[rank0]: ", text), prefixed("[rank1]: ", text))))
		f.Add([]byte(jsonLine(text)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := Scan(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, all)
		found := all.OOM
		if (found.Count > 0) != (found.Last() != nil) {
			t.Fatalf("%d messages, the last %v", found.Count, found.Last())
		}
		if o := found.Last(); o != nil {
			if o.Line < 1 {
				t.Errorf("line %d", o.Line)
			}
			for _, n := range []*int64{o.Request, o.Total, o.Free, o.Allowed, o.Allocated, o.Reserved, o.Unallocated, o.Private, o.InUse} {
				if n != nil && *n < 0 {
					t.Errorf("%d bytes", *n)
				}
			}
		}
	})
}

// wellFormed holds what is true of all series.
func wellFormed(t *testing.T, found Text) {
	for _, s := range found.Series {
		if len(s.Tables) == 0 || len(s.Tables) > s.Count || len(s.Tables) > table.MaxTables+1 || s.Count < 1 || s.Earlier < 0 {
			t.Errorf("%d tables, %d kept, %d before", s.Count, len(s.Tables), s.Earlier)
		}
		for j, m := range s.Tables {
			if m.Line < 1 || !slices.ContainsFunc(usagesOf(m), func(u table.Usage) bool { return u.Current != nil }) || j > 0 && !s.Tables[j-1].Before(m) {
				t.Errorf("table %d, on line %d: %+v", j, m.Line, m)
			}
			for row, u := range usagesOf(m) {
				for _, n := range []*int64{u.Current, u.Peak, u.Gained, u.Freed} {
					if n != nil && *n < 0 {
						t.Errorf("row %d: %d", row, *n)
					}
				}
			}
		}
	}
}

func BenchmarkScan(b *testing.B) {
	for name, line := range map[string]string{
		"plain": "2025-08-06 15:24:55 INFO step 1234 of 10000, loss 0.52, 1.2 s\n",
		"bars":  " 12%|█▎        | 120/1000 [00:12<01:30,  9.8it/s, loss=0.52, memory=12 GiB]\n",
		"table": tableOf(b, "small.txt"),
		"ooms":  message26 + "\n",
		"ranks": "[rank3]: " + message21 + "\n",
		"cut":   message26[:220] + "\n",
		"hot":   "2025-08-06 15:24:55 INFO step 1234 of 10000, loss 0.52, allocated 12.1 GiB\n",
	} {
		b.Run(name, func(b *testing.B) {
			lines := 1 << 20 / len(line)
			b.SetBytes(int64(lines * len(line)))
			for b.Loop() {
				if _, err := Scan(&repeated{line: line, left: lines}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleScan() {
	found, _ := Scan(strings.NewReader(message21))
	fmt.Fprintln(os.Stdout, found.OOM.Count, *found.OOM.Last().Request>>20, "MiB on device", *found.OOM.Last().Device)
	// Output: 1 472 MiB on device 3
}

// TestFailures distinguishes the messages of ranks and devices.
func TestFailures(t *testing.T) {
	var log strings.Builder
	for i := range 200 {
		fmt.Fprintf(&log, "INFO step %d\n[rank%d]: %s\n", i, i%2, strings.Replace(message21, "GPU 3", fmt.Sprint("GPU ", i%2), 1))
	}
	log.WriteString(messageNCCL)
	found, err := Scan(strings.NewReader(log.String()))
	if err != nil {
		t.Fatal(err)
	}
	if found.OOM.Count != 201 || found.Lines != 403 {
		t.Errorf("%d messages in %d lines", found.OOM.Count, found.Lines)
	}
	var got []string
	for _, f := range found.OOM.Failures {
		got = append(got, fmt.Sprintf("%s:%d %d× until line %d, %v", f.Rank, *f.Device, f.Count, f.Last().Line, len(f.Messages) <= failure.MaxMessages))
	}
	want := "rank0:0 100× until line 398, true; rank1:1 100× until line 400, true; :3 1× until line 401, true"
	if strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, o := range found.OOM.Failures[0].Messages {
		if o.Line%4 != 2 {
			t.Errorf("a message of rank 0 on line %d", o.Line)
		}
	}
}

// TestVeryLongLines are read in pieces, and a message can begin in one and end in
// the next, in which there are others. Short tests break it at each seventh place.
func TestVeryLongLines(t *testing.T) {
	live.Unraced(t, "TestScanMessages starts the same goroutines")
	message := strings.TrimPrefix(message21, "torch.cuda.OutOfMemoryError: ") + `", "`
	step := 1
	if testing.Short() {
		step = 7
	}
	for cut := 0; cut < len(message); cut += step {
		line := strings.Repeat("x", text.LongestLine-len(message)-cut) + strings.Repeat(message, 3)
		found, err := Scan(strings.NewReader(line))
		if err != nil || found.OOM.Count != 3 || found.OOM.Last().Line != 1 {
			t.Errorf("broken behind %d bytes: %d messages, %v", cut, found.OOM.Count, err)
		}
	}
}

// TestListOfLines reads a message that is broken into the strings of a list in JSON.
func TestListOfLines(t *testing.T) {
	text := "[\n  \"CUDA out of memory. Tried to allocate 2.11 GiB (GPU 0; 8.00 GiB total capacity; 19.84 GiB already allocated; 0 bytes free; 22.26 GiB\",\n  \" reserved in total by PyTorch)\"\n]\n"
	found, err := Scan(strings.NewReader(text))
	if err != nil || found.OOM.Count != 1 {
		t.Fatal(err, found.OOM.Count)
	}
	if o := found.OOM.Last(); o.Missing() != 0 || o.Reserved == nil || units.Bytes(*o.Reserved) != "22.3 GiB" {
		t.Errorf("%+v", o)
	}
}

// usagesOf are the rows of a table.
func usagesOf(m *table.Summary) []table.Usage {
	return []table.Usage{m.Allocated, m.Active, m.Requested, m.Reserved, m.NonReleasable, m.Allocations, m.Segments}
}
