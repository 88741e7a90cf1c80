package printed

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkRead reads logs of engines that serve.
func BenchmarkRead(b *testing.B) {
	const lines = 50_000
	for name, line := range map[string]func(n int) string{
		"vllm": func(n int) string {
			return fmt.Sprintf("INFO 11-24 12:%02d:%02d [loggers.py:116] Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: 0.0%%\n", n/60%60, n%60, float64(n%1000)/3, float64(n%800)/3, n%64, float64(n%100))
		},
		"sglang": func(n int) string {
			return fmt.Sprintf("[2026-01-02 03:%02d:%02d TP%d] Decode batch. #running-req: %d, #token: %d, token usage: 0.%02d, cuda graph: True, gen throughput (token/s): %d.2, #queue-req: 0, \n", n/60%60, n%60, n%8, n%64, n*7%99999, n%100, n%5000)
		},
	} {
		var text strings.Builder
		for n := range lines {
			text.WriteString(line(n))
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Read(strings.NewReader(text.String())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
