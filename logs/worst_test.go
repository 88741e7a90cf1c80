package logs

import (
	_ "embed"
	"fmt"
	"strings"

	"strandline/logs/failure"
)

// worst are kinds of logs that are expensive to read: a line of each, by its number.
var worst = []struct {
	name string
	line func(n int) string
}{
	{"empty", func(int) string { return "\n" }},
	{"short", func(int) string { return "a\n" }},
	{"messages", func(n int) string { return strings.Replace(message26, "996.00", fmt.Sprint(n), 1) + "\n" }},
	{"ranks", func(n int) string { return fmt.Sprintf("[rank%d]: %s\n", n%64, message26) }},
	{"broken", func(n int) string { return fmt.Sprintf("[rank%d]: %s\n", n%64, wrapped(message26, 120, " ")) }},
	{"cut", func(int) string { return "CUDA out of memory. Tried to allocate\n" }},
	{"heads", func(int) string { return "CUDA error: out of memory\n" }},
	{"calloc", func(int) string { return "NCCL WARN Failed to CUDA calloc 1 bytes\n" }},
	{"tried", func(n int) string { return fmt.Sprintf("Tried %d of 100 ports\n", n) }},
	{"allocate", func(int) string { return "allocate 1 2 3 4 5 6 7 8 9\n" }},
	{"reserved", func(int) string { return "allocate: 1.00 GiB is reserved by PyTorch 2.00 GiB\n" }},
	{"hints", func(int) string { return "vllm sglang mlx wsl2 ggml gguf nvmap tpu_ k8s\n" }},
	{"statements", func(int) string {
		return "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
	}},
	{"keys", func(int) string { return strings.Join(keysOfAll, " ") + "\n" }},
	{"key", func(n int) string { return keysOfAll[n%len(keysOfAll)] + "\n" }},
	{"dump", func(n int) string { return fmt.Sprintf("BFC Allocator dump for x\nFree at %d of size %d\n", n, n) }},
	{"kernel", func(n int) string {
		return fmt.Sprintf("[5.1] [ %d]     0    10     9000      256    45056        0             0 invoked oom-killer\n", n)
	}},
	{"kills", func(n int) string {
		return fmt.Sprintf("[ %d.1] python3 invoked oom-killer: gfp_mask=0x140cca, order=0, oom_score_adj=0\n[ %d.2] Memory cgroup out of memory: Killed process %d (python3) total-vm:%dkB, anon-rss:9000000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:100kB oom_score_adj:0\n", n, n, n, n)
	}},
	{"table", func(int) string {
		return "| Allocated memory      |   1024 KiB |   1024 KiB |   1024 KiB |      0 B   |\n"
	}},
	{"tables", func(n int) string { return fmt.Sprintf("step %d of 9000\n", n) + summaryOfTorch }},
	{"training", func(n int) string {
		return fmt.Sprintf("2026-01-02 03:04:05,%03d - INFO - step: %d  loss: %.4f  memory: 61.02GiB(77.1%%)  tps: %d\n", n%1000, n, 9/float64(n+1), 5000+n%99)
	}},
	{"tracebacks", func(n int) string {
		return fmt.Sprintf("Traceback (most recent call last):\n  File \"/app/train.py\", line %d, in <module>\n    loss = model(batch)\n           ^^^^^^^^^^^^\nRuntimeError: shape '[%d]' is invalid for input of size 7\n", n%999, n)
	}},
	{"rules", func(int) string { return "|====\n" }},
	{"bars", func(int) string { return "|||||\n" }},
	{"times", func(int) string { return "1:2\n" }},
	{"long", func(int) string { return "GiB of words without a line's end " }},
	{"returns", func(n int) string { return fmt.Sprintf("step %d of 9000\r\n", n) }},
	{"painted", func(n int) string { return fmt.Sprintf("\x1b[31mERROR\x1b[0m \x1b[1;32m%d\x1b[m\n", n) }},
	{"escapes", func(int) string { return "\x1b\x1b\x1b[" }},
	{"wide", func(n int) string { return wideText(fmt.Sprintf("step %d: loss 1.5\n", n)) }},
	{"zeros", func(int) string { return "some text\n\x00\x00\x00\x00\x00\x00\x00\x00" }},
	{"objects", func(n int) string {
		return fmt.Sprintf(`{"log":"[rank%d]: loss 1.25 memory 20 GiB\n","stream":"stderr","time":"2026-01-02T03:04:05.%09dZ"}`+"\n", n%8, n)
	}},
	{"records", func(n int) string {
		opening := ","
		if n == 0 {
			opening = "["
		}
		return fmt.Sprintf("%s\n  {\n    \"time\": \"2026-01-02T03:04:05.%09dZ\",\n    \"level\": \"INFO\",\n    \"message\": \"step %d\"\n  }", opening, n, n)
	}},
	{"quoted", func(int) string { return `\n\n\n\n allocate: 1 \n` }},
	{"brackets", func(int) string { return "[[[[[(((((" }},
	{"starts", func(n int) string {
		return fmt.Sprintf("[2026-01-02 03:04:05 TP%d] Load weight begin. avail mem=78.81 GB\n", n%8)
	}},
	{"weights", func(n int) string {
		return fmt.Sprintf("Load weight end. type=X, avail mem=63.72 GB, mem usage=%d.00 GB.\n", n%80)
	}},
	{"gaps", func(int) string { return "Load weight end. avail mem=x avail mem=x avail mem=x\n" }},
	{"nothing but ends", func(int) string { return "Load weight end." }},
	{"summary", func(int) string {
		return "Actual usage is 1.00 GiB for weight, 2.44 GiB for peak activation, *** for non-torch memory, and 0.67 GiB for CUDAGraph memory.\n"
	}},
	{"arguments", func(int) string {
		return "args: Namespace(model='a/b', tp_size=2, dtype='auto', max_model_len=4096, quantization=None)\n"
	}},
	{"names", func(int) string { return "model='a' model='b' dtype=c tp_size=1\n" }},
	{"buffers", func(n int) string {
		return fmt.Sprintf("load_tensors:        CUDA%d model buffer size =  2048.00 MiB\n", n%8)
	}},
	{"messages of engines", func(int) string { return `msg="compute graph" device=CUDA0 buffer_type=CUDA0 size="64.0 MiB"` + "\n" }},
}

// summaryOfTorch is a table that PyTorch 2.6 printed.
//
//go:embed testdata/after.txt
var summaryOfTorch string

// wideText is a text with two bytes a character.
func wideText(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		b.Write([]byte{c, 0})
	}
	return b.String()
}

var keysOfAll = failure.Words()
