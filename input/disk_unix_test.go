//go:build unix

package input

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestOpenedOnce looks at files again that are no longer there under their names.
func TestOpenedOnce(t *testing.T) {
	d := newDisk(Options{})
	defer d.closeAll()
	for _, size := range []int{0, 10, keptOfFile, keptOfFile + 1, 3 * keptOfFile} {
		data := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, most := range []int64{18, 4096, keptOfFile, 1 << 20, 18, 1 << 20} {
			r, err := d.open(path, true)
			if err != nil {
				t.Fatal(err)
			}
			os.Remove(path)
			got, err := io.ReadAll(io.LimitReader(r, most))
			if want := data[:min(most, int64(size))]; err != nil || !bytes.Equal(got, want) {
				t.Errorf("of %d bytes: %d instead of %d: %v", size, len(got), len(want), err)
			}
		}
	}
}
