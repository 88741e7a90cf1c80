package recording

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A disk that takes long does not stop the writer, and what was asked for last is
// flushed before the file is closed.
func TestSlowDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	w, err := Create(path, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.disk.close(); err != nil {
		t.Fatal(err)
	}
	slow, flushed := make(chan struct{}), int64(0)
	w.disk = newFlusher(func() error {
		<-slow
		at, err := w.f.Stat()
		if err == nil {
			flushed = at.Size()
		}
		return err
	})
	if err := w.Begin(Header{PID: 1}); err != nil {
		t.Fatal(err)
	}
	for range 3 { // each would wait for ever
		if err := w.Sample(Sample{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	close(slow)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	at, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if flushed != at.Size() {
		t.Errorf("%d bytes were flushed last, of %d", flushed, at.Size())
	}
}

// A disk that fails is reported by the next call.
func TestDiskThatFails(t *testing.T) {
	began := make(chan struct{})
	f := newFlusher(func() error { close(began); return os.ErrPermission })
	if err := f.flush(); err != nil {
		t.Error(err)
	}
	<-began
	if err := f.close(); !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v", err)
	}
}
