package series

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"strandline/host/sampling/sample"
	"strandline/internal/test/live"
)

// made is the n-th sample of a made-up watch.
func made(n int) *sample.Sample {
	limit := int64(8 << 30)
	s := &sample.Sample{
		Schema: sample.Schema, Time: time.Unix(1_800_000_000+int64(n), 0).UTC(), Seconds: float64(n),
		Processes: []sample.Process{}, Devices: []sample.Device{}, Groups: []sample.Group{{Name: "/jobs", Limit: &limit}},
	}
	for pid := 1; pid <= 5; pid++ {
		if pid == 3 && n%7 == 0 { // comes and goes
			continue
		}
		p := sample.Process{PID: pid, Started: uint64(pid), Command: "serve", State: "sleeping", Host: &sample.Host{Anonymous: 1 << 20}, Devices: []sample.DeviceShare{}}
		if pid == 2 {
			p.Host.Anonymous += int64(n) << 12
			p.Devices = append(p.Devices, sample.DeviceShare{Device: 1, Used: &p.Host.Anonymous})
		}
		s.Processes = append(s.Processes, p)
	}
	return s
}

// marker is what stands before each frame.
const marker = "\x5e\x2a\x4d\x18\x0a\x00\x00\x00strandline"

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "run.strandline") }

func open(t *testing.T, path string, most int64) *Writer {
	t.Helper()
	w, err := Open(path, most)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func add(t *testing.T, w *Writer, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := w.Add(made(n)); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) (out []*sample.Sample, partial error) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	partial, err = Read(bytes.NewReader(text), func(s *sample.Sample) error {
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, partial
}

func TestRoundTrip(t *testing.T) {
	path := file(t)
	w := open(t, path, 1<<30)
	const n = perFrame + 10
	add(t, w, 0, n)
	for range 2 { // while it is written, and closed
		got, partial := read(t, path)
		if len(got) != n || partial != nil {
			t.Fatalf("%d samples, %v", len(got), partial)
		}
		for i, s := range got {
			if want := made(i); !reflect.DeepEqual(s, want) {
				t.Fatalf("sample %d: %+v\nwant %+v", i, s, want)
			}
		}
		w.Close()
	}
}

// TestCutAnywhere checks that a recording opens wherever its writer was killed, and
// that what was whole is read.
func TestCutAnywhere(t *testing.T) {
	path := file(t)
	w := open(t, path, 1<<30)
	var ends []int64
	for n := range 40 {
		add(t, w, n, n+1)
		ends = append(ends, w.out.Size())
	}
	w.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := int64(0); cut <= ends[len(ends)-1]; cut += 31 {
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		samples := 0
		partial, err := Read(bytes.NewReader(text[:cut]), func(*sample.Sample) error { samples++; return nil })
		if whole == 0 {
			continue // nothing was written whole
		}
		if err != nil || partial != nil || samples < whole {
			t.Fatalf("cut at %d of %d: %d samples of %d, %v, %v", cut, len(text), samples, whole, partial, err)
		}
	}
}

// TestGoOn checks that another watch goes on with a recording, also behind a torn
// frame, and counts the time on.
func TestGoOn(t *testing.T) {
	path := file(t)
	w := open(t, path, 1<<30)
	add(t, w, 0, 10)
	w.f.Close() // it is killed
	if err := os.Truncate(path, w.out.Size()-3); err != nil {
		t.Fatal(err)
	}
	w = open(t, path, 1<<30)
	for n := range 10 {
		s := made(100 + n)
		s.Seconds = float64(n)
		if err := w.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	got, partial := read(t, path)
	if len(got) != 19 || partial != nil {
		t.Fatalf("%d samples, %v", len(got), partial)
	}
	if a, b := got[8].Seconds, got[9].Seconds; a != 8 || b != 100 {
		t.Errorf("it goes on from %v at %v", a, b)
	}
}

// TestDamaged checks that what is behind a damaged frame is read.
func TestDamaged(t *testing.T) {
	path := file(t)
	w := open(t, path, 1<<30)
	add(t, w, 0, 2*perFrame)
	w.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second := bytes.LastIndex(text, []byte(marker))
	clear(text[second/2 : second/2+100])
	var got []*sample.Sample
	partial, err := Read(bytes.NewReader(text), func(s *sample.Sample) error { got = append(got, s); return nil })
	if err != nil || partial == nil || len(got) < perFrame+1 || got[len(got)-1].Seconds != 2*perFrame-1 {
		t.Errorf("%d samples, %v, %v", len(got), partial, err)
	}
}

func TestClockWentBack(t *testing.T) {
	path := file(t)
	for _, began := range []int{1000, 500} {
		w := open(t, path, 1<<30)
		for n := range 5 {
			s := made(began + n)
			s.Seconds = float64(n)
			if err := w.Add(s); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
	}
	got, _ := read(t, path)
	for i := 1; i < len(got); i++ {
		if got[i].Seconds < got[i-1].Seconds {
			t.Errorf("sample %d is at %v, the one before at %v", i, got[i].Seconds, got[i-1].Seconds)
		}
	}
	if len(got) != 10 {
		t.Errorf("%d samples", len(got))
	}
}

func TestBounded(t *testing.T) {
	path := file(t)
	w := open(t, path, minSize)
	for n := range 4_000 {
		add(t, w, n, n+1)
		if w.out.Size() > minSize+4<<10 {
			t.Fatalf("%d bytes after %d samples", w.out.Size(), n)
		}
	}
	w.Close()
	got, partial := read(t, path)
	if partial != nil || len(got) < 100 {
		t.Fatalf("%d samples, %v", len(got), partial)
	}
	if first, last := got[0].Seconds, got[len(got)-1].Seconds; first > 1000 || last != 3_999 {
		t.Errorf("from %v to %v", first, last)
	}
	for i := 1; i < len(got); i++ {
		if got[i].Seconds <= got[i-1].Seconds || !reflect.DeepEqual(got[i].Processes, made(int(got[i].Seconds)).Processes) {
			t.Fatalf("sample %d is %+v", i, got[i])
		}
	}
	if rest, _ := filepath.Glob(path + "?*"); len(rest) > 0 {
		t.Errorf("%v is left", rest)
	}
}

func TestOneWriter(t *testing.T) {
	if runtime.GOOS == "windows" {
		live.Missing(t, "a lock of files", errors.ErrUnsupported)
	}
	path := file(t)
	w := open(t, path, 1<<30)
	if _, err := Open(path, 1<<30); !errors.Is(err, errBusy) {
		t.Errorf("a second writer: %v", err)
	}
	w.Close()
	open(t, path, 1<<30).Close()
}

func TestOther(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "text": "hello", "a marker alone": marker, "another schema": other(t)} {
		if _, err := Read(strings.NewReader(text), func(*sample.Sample) error { return nil }); !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := file(t)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, 1<<30); !errors.Is(err, ErrOther) {
		t.Errorf("another file is written to: %v", err)
	}
}

// other is a file whose frame has another schema.
func other(t *testing.T) string { return framed(t, `{"schema":"strandline.recording/9"}`) }

// framed is a file of one frame.
func framed(t *testing.T, lines ...string) string {
	var b bytes.Buffer
	b.WriteString(marker)
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		fmt.Fprintln(z, l)
	}
	z.Close()
	return b.String()
}

// TestFormer reads a file of the version before, whose header does not say what it is of.
func TestFormer(t *testing.T) {
	text := framed(t, `{"schema":"strandline.recording/2","run":5}`, `{"time":"2026-01-01T00:00:00Z","at_seconds":1,"processes":[{"pid":7}]}`)
	var got []*sample.Sample
	partial, err := Read(strings.NewReader(text), func(s *sample.Sample) error { got = append(got, s); return nil })
	if err != nil || partial != nil || len(got) != 1 || got[0].Processes[0].PID != 7 {
		t.Errorf("%+v, %v, %v", got, partial, err)
	}
}

func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "run")
	w, err := Open(path, 1<<30)
	if err != nil {
		f.Fatal(err)
	}
	for n := range 3 {
		w.Add(made(n))
	}
	w.Close()
	text, _ := os.ReadFile(path)
	f.Add(text)
	f.Add(append(text, text...))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		last := -1.0
		Read(bytes.NewReader(text), func(s *sample.Sample) error {
			if s == nil {
				t.Error("no sample")
			}
			last = s.Seconds
			return nil
		})
		_ = last
	})
}

// TestOver keeps what control groups count after the last processes have ended, also when
// the file is thinned, and goes on with another watch.
func TestOver(t *testing.T) {
	for _, most := range []int64{1 << 20, minSize} {
		path := file(t)
		w := open(t, path, most)
		add(t, w, 0, 40)
		kills := int64(1)
		over := []sample.Group{{Name: "/jobs", Kills: &kills}}
		if err := w.Add(&sample.Sample{Time: time.Unix(1_800_000_040, 0).UTC(), Seconds: 40, Over: over}); err != nil {
			t.Fatal(err)
		}
		if most == minSize {
			if err := w.thin(); err != nil {
				t.Fatal(err)
			}
		}
		add(t, w, 41, 50)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var samples, ends int
		if _, err := Read(bytes.NewReader(data), func(s *sample.Sample) error {
			if s.Over == nil {
				samples++
			} else if ends++; len(s.Processes) > 0 || !reflect.DeepEqual(s.Over, over) || samples != 40 && samples != 20 {
				t.Errorf("after %d samples: %+v", samples, s)
			}
			return nil
		}); err != nil || ends != 1 || samples != 49 && samples != 29 {
			t.Errorf("%v, %d samples, %d ends", err, samples, ends)
		}
	}
}
