package snapshot_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"strandline/internal/synth"
	"strandline/snapshot"
)

// BenchmarkRead reads generated snapshots: the time for an event should not
// depend on how many there are. STRANDLINE_10M asks for ten million events, and
// STRANDLINE_BIG names a file to be read as well.
func BenchmarkRead(b *testing.B) {
	for _, n := range lengths() {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			in := written(b, synth.Trace(n))
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				s, err := snapshot.Read(bytes.NewReader(in), snapshot.Options{Size: int64(len(in))})
				if err != nil || s.Partial != nil {
					b.Fatal(err, s.Partial)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
		})
	}
	b.Run("file", func(b *testing.B) {
		path := os.Getenv("STRANDLINE_BIG")
		if path == "" {
			b.Skip("STRANDLINE_BIG names no file")
		}
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(info.Size())
		b.ReportAllocs()
		for b.Loop() {
			if _, err := snapshot.Open(path, snapshot.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWrite writes generated snapshots.
func BenchmarkWrite(b *testing.B) {
	for _, n := range lengths() {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			s := synth.Trace(n)
			var size int64
			b.ReportAllocs()
			for b.Loop() {
				w := &counting{}
				if err := s.Write(w); err != nil {
					b.Fatal(err)
				}
				size = w.n
			}
			b.SetBytes(size)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
		})
	}
}

func lengths() []int {
	out := []int{100_000, 1_000_000}
	if os.Getenv("STRANDLINE_10M") != "" {
		out = append(out, 10_000_000)
	}
	return out
}

type counting struct{ n int64 }

func (c *counting) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return io.Discard.Write(p)
}
