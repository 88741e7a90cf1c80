package logs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// worst are sorts of logs that are dear to read: a line of each, by its number.
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
	{"keys", func(int) string { return strings.Join(everyKey(), " ") + "\n" }},
	{"key", func(n int) string { keys := everyKey(); return keys[n%len(keys)] + "\n" }},
	{"dump", func(n int) string { return fmt.Sprintf("BFC Allocator dump for x\nFree at %d of size %d\n", n, n) }},
	{"kernel", func(n int) string {
		return fmt.Sprintf("[5.1] [ %d]     0    10     9000      256    45056        0             0 invoked oom-killer\n", n)
	}},
	{"table", func(int) string {
		return "| Allocated memory      |   1024 KiB |   1024 KiB |   1024 KiB |      0 B   |\n"
	}},
	{"rules", func(int) string { return "|====\n" }},
	{"bars", func(int) string { return "|||||\n" }},
	{"times", func(int) string { return "1:2\n" }},
}

func everyKey() (keys []string) {
	for _, f := range families {
		keys = append(append(keys, f.keys...), f.around...)
	}
	return keys
}

// BenchmarkWorst reads logs that hold nothing but what is dear to read.
func BenchmarkWorst(b *testing.B) {
	const size = 16 << 20
	for _, c := range worst {
		b.Run(c.name, func(b *testing.B) {
			var text bytes.Buffer
			for n := 0; text.Len() < size; n++ {
				text.WriteString(c.line(n))
			}
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				if _, err := Scan(bytes.NewReader(text.Bytes())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
