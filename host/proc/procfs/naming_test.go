package procfs

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// TestContains looks for a text at each place of a longer one, whole and byte by byte, also
// across the parts in which it is read.
func TestContains(t *testing.T) {
	const name = "/libc10_cuda"
	for _, before := range []int{0, 1, 100, 16<<10 - 13, 16<<10 - 6, 16<<10 - 1, 16 << 10, 40 << 10} {
		text := strings.Repeat("x", before) + name
		for _, c := range []struct {
			in   io.Reader
			want bool
		}{
			{strings.NewReader(text), true},
			{iotest.OneByteReader(strings.NewReader(text)), true},
			{strings.NewReader(text[:len(text)-1]), false},
		} {
			if got, err := contains(c.in, name); got != c.want || err != nil {
				t.Errorf("after %d bytes: %v, %v; want %v", before, got, err, c.want)
			}
		}
	}
	if _, err := contains(iotest.ErrReader(os.ErrPermission), name); err == nil {
		t.Error("an error is not reported")
	}
}
