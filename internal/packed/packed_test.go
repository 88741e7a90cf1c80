package packed

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestOpen(t *testing.T) {
	text := strings.Repeat("memory ", 100_000)
	var g, z bytes.Buffer
	gw := gzip.NewWriter(&g)
	zw, err := zstd.NewWriter(&z)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{gw, zw} {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, data, compression, want string }{
		{"plain", text, "", text},
		{"nothing", "", "", ""},
		{"gzip", g.String(), "gzip", text},
		{"zstd", z.String(), "zstd", text},
	} {
		r, compression, err := Open(bufio.NewReader(strings.NewReader(c.data)), int64(len(c.data)))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != c.want || compression != c.compression {
			t.Errorf("%s: %d bytes of %q, %v", c.name, len(got), compression, err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, _, err := Open(bufio.NewReader(strings.NewReader("\x1f\x8b\x00")), 0); err == nil {
		t.Error("a broken head of gzip is none")
	}
}

// TestWindow holds that a small file cannot ask for much memory.
func TestWindow(t *testing.T) {
	var z bytes.Buffer
	w, err := zstd.NewWriter(&z, zstd.WithWindowSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 80<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size int64
		ok   bool
	}{{0, true}, {4 << 20, true}, {int64(z.Len()), false}} {
		r, _, err := Open(bufio.NewReader(bytes.NewReader(z.Bytes())), c.size)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if (err == nil) != c.ok {
			t.Errorf("a window of 64 MiB in a file of %d bytes: %v", c.size, err)
		}
	}
}
