package input

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestGrowingFile reads of a file what it had when it was opened.
func TestGrowingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	if err := os.WriteFile(path, []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := OpenPaths([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	r, err := files.List[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("5678"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "1234" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestUnpackedBytes reads of a small file no more than its size accounts for.
func TestUnpackedBytes(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	line := bytes.Repeat([]byte("GPU memory used: 3 MiB\n"), 1000)
	for range 1000 {
		w.Write(line)
	}
	w.Close()
	data := packed.Bytes()
	for _, size := range []int64{int64(len(data)), 0} {
		f := &File{Source: Source{Path: "a.log", Size: size, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data[:20_000])), nil }}}
		if size > 0 {
			f.Size = 1000 // as of a form that packs better
		}
		n := int64(0)
		err := f.unpackingQuietly(context.Background(), func(r io.Reader) (err error) {
			n, err = io.Copy(io.Discard, r)
			return err
		})
		if err == nil || n > 10<<20 || size > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}
