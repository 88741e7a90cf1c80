//go:build unix

package logs

import (
	"bytes"
	"io"
	"syscall"
	"testing"
	"time"

	"strandline/logs/engine"
)

// BenchmarkWorst reads logs that contain only what is expensive to read. It reports the speed by
// processor time too, since other programs slow down what the clock measures.
func BenchmarkWorst(b *testing.B) {
	const size, times = 16 << 20, 16
	for _, c := range worst {
		var log bytes.Buffer
		run := func(name string, read func() error) {
			b.Run(name, func(b *testing.B) {
				for n := 0; log.Len() < size; n++ {
					log.WriteString(c.line(n))
				}
				b.ResetTimer()
				b.SetBytes(int64(log.Len()) * times)
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					if err := read(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(log.Len())*times*float64(b.N)/1e6/(cpuTime()-before).Seconds(), "MB/cpu-s")
			})
		}
		run(c.name, func() error { _, err := Scan(again(log.Bytes(), times)); return err })
		run("engine "+c.name, func() error { _, err := engine.Scan(again(log.Bytes(), times)); return err })
	}
}

// again is a text some times over: what is done once at its end counts for little in a long log.
func again(text []byte, times int) io.Reader {
	parts := make([]io.Reader, times)
	for i := range parts {
		parts[i] = bytes.NewReader(text)
	}
	return io.MultiReader(parts...)
}

// cpuTime is what the process has taken of the processors.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
