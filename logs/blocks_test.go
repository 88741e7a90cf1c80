package logs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"strandline/internal/test/live"
	"strandline/logs/text"
)

// mixed is a log of lines that are quiet and of messages, statements and tables.
func mixed(t testing.TB, r *rand.Rand) []byte {
	tables, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(tables) == 0 {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for range 30 {
		switch r.IntN(8) {
		case 0: // quiet lines, some of them with times
			for range r.IntN(100) {
				b.WriteString([]string{"\n", "a\n", "12:30:01 step\n", "2026-01-02 03:04:05 INFO loss 1.0\r\n", "CUDA out of\n"}[r.IntN(5)])
			}
		case 1:
			b.WriteString(message26[:r.IntN(len(message26)+1)] + "\n")
		case 2:
			table, err := os.ReadFile(tables[r.IntN(len(tables))])
			if err != nil {
				t.Fatal(err)
			}
			b.Write(table)
		case 3:
			b.WriteString(strings.Repeat("x", r.IntN(3)*text.LongestLine+r.IntN(9)) + "\n")
		case 4: // the same at several times, and of several ranks
			m := []string{message26, messageAsync, "CUDA error: out of memory", "[rank1]: " + message26, "CUDA out of memory. Tried to allocate"}[r.IntN(5)]
			for i := range r.IntN(5) {
				fmt.Fprintf(&b, "%s%d 12:0%d:01 %s%s\n", []string{"", "rank ", "[2026] "}[r.IntN(3)], r.IntN(2), i, m, []string{"", " x 3.00 GiB is reserved"}[r.IntN(2)])
			}
		default:
			w := worst[r.IntN(len(worst))]
			for n := range 1 + r.IntN(6) {
				b.WriteString(w.line(n))
			}
		}
	}
	return b.Bytes()
}

// TestQuickReadingChangesNothing reads generated logs with and without passing over
// lines, and in pieces of any size. Short tests read two of them: the race detector sees
// the same in each.
func TestQuickReadingChangesNothing(t *testing.T) {
	live.Unraced(t, "TestScanMessages starts the same goroutines")
	seeds := uint64(10)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		text := mixed(t, rand.New(rand.NewPCG(seed, 1)))
		want, err := scan(bytes.NewReader(text), vocabulary().Thorough())
		if err != nil {
			t.Fatal(err)
		}
		lines := int64(bytes.Count(text, []byte("\n")))
		if !bytes.HasSuffix(text, []byte("\n")) {
			lines++
		}
		if want.Lines != lines || want.Empty() {
			t.Fatalf("seed %d: %d lines, %d messages, %d statements", seed, want.Lines, want.OOM.Count, len(want.Failures))
		}
		for name, r := range map[string]func() (Text, error){
			"quick":  func() (Text, error) { return Scan(bytes.NewReader(text)) },
			"halves": func() (Text, error) { return Scan(iotest.HalfReader(bytes.NewReader(text))) },
			"bytes":  func() (Text, error) { return Scan(iotest.OneByteReader(bytes.NewReader(text))) },
		} {
			if got, err := r(); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d, %s: %v\n%+v\nwant\n%+v", seed, name, err, got, want)
			}
		}
	}
}

// TestRepeatedLinesChangeNothing reads lines that come again and again in an open message, between
// others, with and without passing over them.
func TestRepeatedLinesChangeNothing(t *testing.T) {
	live.Unraced(t, "TestScanMessages starts the same goroutines")
	again := []string{
		"CUDA out of memory. Tried to allocate", "[rank1]: CUDA out of memory. Tried to allocate", "12:00:01 CUDA out of memory. Tried to allocate", "allocate: 1.00 GiB is reserved by PyTorch 2.00 GiB",
		"CUDA out of memory. Tried to allocate 2.00 GiB", "x CUDA out of memory. Tried to allocate. CUDA error: out of memory", "Process 7 has 3.00 GiB memory in use", "capacity of 8", "allocate 1", "Tried to", "a", "7", "",
		message26, "OutOfMemoryError", "GPU 1 has a total", message26[:150], strings.Repeat("allocate 3.00 GiB ", 40),
	}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 2))
		var b bytes.Buffer
		for range 6 {
			line := again[r.IntN(len(again))]
			for range 1 + r.IntN(70) {
				b.WriteString(line + "\n")
			}
			if r.IntN(2) == 0 {
				b.WriteString(message26[r.IntN(len(message26)):] + "\n")
			}
		}
		want, err := scan(bytes.NewReader(b.Bytes()), vocabulary().Thorough())
		if err != nil {
			t.Fatal(err)
		}
		got, err := Scan(bytes.NewReader(b.Bytes()))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: %v\n%+v\nwant\n%+v\n%q", seed, err, got, want, b.String()[:min(b.Len(), 600)])
		}
	}
}
