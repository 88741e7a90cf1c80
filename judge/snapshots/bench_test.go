package snapshots_test

import (
	"testing"

	"strandline/internal/test/synth"
	"strandline/judge/snapshots"
	"strandline/torch/compare"
	"strandline/torch/digest"
)

// BenchmarkDiagnose measures what follows on the decoding of a file, which is
// the timeline, the digest and all detectors, beside the decoding itself. The
// first must cost less.
func BenchmarkDiagnose(b *testing.B) {
	synth.Each(b, func(b *testing.B, file []byte) {
		b.Run("decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				synth.Read(b, file)
			}
		})
		b.Run("detect", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer() // a snapshot keeps what it was asked for
				s := synth.Read(b, file)
				b.StartTimer()
				book := digest.NewBook()
				p := []*compare.Process{compare.NewProcess("", []*digest.File{book.Digest(s)})}
				if a := snapshots.Files(book, p, snapshots.Options{}); len(a.Findings) == 0 {
					b.Fatal("nothing was found")
				}
			}
		})
	})
}
