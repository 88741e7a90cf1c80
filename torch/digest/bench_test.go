package digest

import "testing"

func BenchmarkDigest(b *testing.B) {
	s := open(b, "examples/image-leak/step-4.pickle")
	b.ReportMetric(float64(s.Traces[0].Len()), "events/op")
	for b.Loop() {
		NewBook().Digest(s)
	}
}
