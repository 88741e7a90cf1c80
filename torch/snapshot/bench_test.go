package snapshot_test

import (
	"io"
	"testing"

	"strandline/internal/test/synth"
	"strandline/torch/snapshot"
)

// BenchmarkRead reads files: the time for an event should not depend on how many
// there are.
func BenchmarkRead(b *testing.B) {
	synth.Each(b, func(b *testing.B, file []byte) {
		b.SetBytes(int64(len(file)))
		b.ReportAllocs()
		var s *snapshot.Snapshot
		for b.Loop() {
			s = synth.Read(b, file)
		}
		synth.PerEvent(b, s)
	})
}

// BenchmarkWrite writes what they hold.
func BenchmarkWrite(b *testing.B) {
	synth.Each(b, func(b *testing.B, file []byte) {
		s := synth.Read(b, file)
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
		synth.PerEvent(b, s)
	})
}

type counting struct{ n int64 }

func (c *counting) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return io.Discard.Write(p)
}
