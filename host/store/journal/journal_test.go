package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"strandline/internal/budget"
)

func create(t *testing.T) *Writer {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "run.strandline"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w, err := NewWriter(f, Trace)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// name is that of the writer's file.
func name(w *Writer) string { return w.f.(*os.File).Name() }

func flush(t *testing.T, w *Writer, lines ...int) {
	t.Helper()
	for _, n := range lines {
		w.Line(n)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// taken keeps lines as they are.
type taken struct {
	lines []string
	bad   []error
}

func (t *taken) Header(line []byte) error {
	if string(line) != `"head"` {
		return errors.New("another header")
	}
	t.lines = append(t.lines, "head")
	return nil
}

func (t *taken) Line(line []byte) (bad, err error) {
	t.lines = append(t.lines, string(line))
	return nil, nil
}

func (t *taken) Unreadable(why error) { t.bad = append(t.bad, why) }

func read(t *testing.T, path string) *taken {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got taken
	if err := Read(bytes.NewReader(raw), Trace, budget.Of(int64(len(raw)), budget.Packed), &got); err != nil {
		t.Fatal(err)
	}
	return &got
}

func TestFrames(t *testing.T) {
	w := create(t)
	w.Begin("head")
	flush(t, w, 1, 2)
	if got := read(t, name(w)); !slices.Equal(got.lines, []string{"head", "1", "2"}) || got.bad != nil {
		t.Errorf("while it is written: %+v", got)
	}
	w.Begin("head")
	flush(t, w, 3)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, name(w)); !slices.Equal(got.lines, []string{"head", "1", "2", "head", "3"}) || got.bad != nil {
		t.Errorf("%+v", got)
	}
}

// TestIsZstd checks that other tools can decompress it.
func TestIsZstd(t *testing.T) {
	w := create(t)
	for range 2 {
		w.Begin("head")
		flush(t, w, 1, 2)
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name(w))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(z); err != nil || text.String() != strings.Repeat("\"head\"\n1\n2\n", 2) {
		t.Errorf("%v: %q", err, text.String())
	}
}

// full is a disk that takes only so many bytes more.
type full struct {
	file
	room int
}

func (f *full) WriteAt(b []byte, at int64) (int, error) {
	n, err := f.file.WriteAt(b[:min(len(b), f.room)], at)
	if f.room -= n; err == nil && n < len(b) {
		err = errors.New("no space left on device")
	}
	return n, err
}

// TestFullDisk checks that what could not be written is not there, not even a part of
// it, and that a new frame can be added.
func TestFullDisk(t *testing.T) {
	w := create(t)
	path := name(w)
	w.Begin("head")
	flush(t, w, 1)
	good := w.f
	w.f = &full{good, 3}
	w.Line(2)
	if err := w.Flush(); err == nil {
		t.Error("a full disk is not reported")
	}
	w.f = good
	w.Begin("head")
	flush(t, w, 3)
	if got := read(t, path); !slices.Equal(got.lines, []string{"head", "1", "head", "3"}) || got.bad != nil {
		t.Errorf("%+v", got)
	}
}

// TestNotJSON checks that what cannot be encoded leaves the file as it was.
func TestNotJSON(t *testing.T) {
	w := create(t)
	w.Begin("head")
	flush(t, w, 1)
	w.Line(func() {})
	if err := w.Flush(); err == nil {
		t.Error("a function is written")
	}
	if got := read(t, name(w)); !slices.Equal(got.lines, []string{"head", "1"}) {
		t.Errorf("%+v", got)
	}
}

func TestOtherKind(t *testing.T) {
	w := create(t)
	w.Begin("head")
	flush(t, w, 1)
	raw, err := os.ReadFile(name(w))
	if err != nil {
		t.Fatal(err)
	}
	if !Is(bytes.NewReader(raw), Trace) || Is(bytes.NewReader(raw), Watch) {
		t.Error("the kind is not known")
	}
	if _, err := NewWriter(w.f.(*os.File), Watch); !errors.Is(err, ErrOther) {
		t.Errorf("a watch continues a trace: %v", err)
	}
}
