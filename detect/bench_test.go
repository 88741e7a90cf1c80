package detect_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"strandline/compare"
	"strandline/detect"
	"strandline/internal/synth"
	"strandline/snapshot"
)

// BenchmarkDiagnose measures what follows on the decoding of a file, which is
// the timeline, the digest and all detectors, beside the decoding itself. The
// first must cost less. STRANDLINE_10M asks for ten million events, and
// STRANDLINE_BIG names a file to be judged as well.
func BenchmarkDiagnose(b *testing.B) {
	lengths := []int{100_000, 1_000_000}
	if os.Getenv("STRANDLINE_10M") != "" {
		lengths = append(lengths, 10_000_000)
	}
	for _, n := range lengths {
		var file bytes.Buffer
		if err := synth.Trace(n).Write(&file); err != nil {
			b.Fatal(err)
		}
		bench(b, fmt.Sprintf("events=%d", n), file.Bytes())
	}
	if path := os.Getenv("STRANDLINE_BIG"); path != "" {
		file, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		bench(b, "file", file)
	}
}

func bench(b *testing.B, name string, file []byte) {
	read := func(b *testing.B) *snapshot.Snapshot {
		s, err := snapshot.Read(bytes.NewReader(file), snapshot.Options{Size: int64(len(file))})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	b.Run(name+"/decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			read(b)
		}
	})
	b.Run(name+"/detect", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer() // a snapshot keeps what it was asked for
			s := read(b)
			b.StartTimer()
			book := compare.NewBook()
			p := []*compare.Process{compare.NewProcess("", []*compare.Digest{book.Digest(s)})}
			if a := detect.Files(book, p, detect.Options{}); len(a.Findings) == 0 {
				b.Fatal("nothing was found")
			}
		}
	})
}
