package synth

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"strandline/torch/snapshot"
)

// Lengths are those of the histories that benchmarks run on, in events, the
// longest last. STRANDLINE_10M asks for ten million.
func Lengths() []int {
	lengths := []int{100_000, 1_000_000}
	if os.Getenv("STRANDLINE_10M") != "" {
		lengths = append(lengths, 10_000_000)
	}
	return lengths
}

// Each runs a benchmark on a file of every length, and on the one that
// STRANDLINE_BIG names.
func Each(b *testing.B, run func(b *testing.B, file []byte)) {
	for _, n := range Lengths() {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			var file bytes.Buffer
			if err := Trace(n).Write(&file); err != nil {
				b.Fatal(err)
			}
			run(b, file.Bytes())
		})
	}
	path := os.Getenv("STRANDLINE_BIG")
	if path == "" {
		return
	}
	b.Run("file", func(b *testing.B) {
		file, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		run(b, file)
	})
}

// Read decodes a file whole.
func Read(b *testing.B, file []byte) *snapshot.Snapshot {
	s, err := snapshot.Read(bytes.NewReader(file), snapshot.Options{Size: int64(len(file))})
	if err != nil {
		b.Fatal(err)
	}
	if s.Partial != nil {
		b.Fatal(s.Partial)
	}
	return s
}

// PerEvent reports the time for an event of a snapshot's first device.
func PerEvent(b *testing.B, s *snapshot.Snapshot) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.Traces[0].Len()), "ns/event")
}
