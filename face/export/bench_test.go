package export_test

import (
	"context"
	"io"
	"path/filepath"
	"strconv"
	"testing"

	"strandline/face/export"
	"strandline/internal/test/synth"
	"strandline/torch/snapshot"
)

// BenchmarkExport writes a synthetic trace of 100,000 events in each format.
func BenchmarkExport(b *testing.B) {
	const events = 100_000
	s := synth.Trace(events)
	for _, f := range []struct {
		name  string
		write func(io.Writer, *snapshot.Snapshot) error
	}{
		{"pprof", export.Pprof}, {"folded", export.Folded}, {"csv", export.CSV}, {"perfetto", export.Perfetto},
	} {
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f.write(io.Discard, s); err != nil {
					b.Fatal(err)
				}
			}
			perEvent(b, events)
		})
	}
	b.Run("sqlite", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		dir := b.TempDir()
		for b.Loop() {
			n++
			if err := writeDatabase(context.Background(), filepath.Join(dir, strconv.Itoa(n)), s); err != nil {
				b.Fatal(err)
			}
		}
		perEvent(b, events)
	})
}

func perEvent(b *testing.B, events int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}
