package ranks

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkMerged reads the log of a launcher that merges 4,096 ranks, each of which raises an
// error and begins anew. Bytes are of the log.
func BenchmarkMerged(b *testing.B) {
	var log strings.Builder
	for range 3 {
		for rank := range 4096 {
			fmt.Fprintf(&log, "[rank%d]: rank %d of world_size=4096 starts\n", rank, rank)
		}
		for rank := range 4096 {
			fmt.Fprintf(&log, "[rank%d]: RuntimeError: NCCL error: remote process exited or there was a network error\n", rank)
		}
	}
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		if _, err := Read(strings.NewReader(log.String()), "job.log", nil); err != nil {
			b.Fatal(err)
		}
	}
}
