package soak

import (
	"os"
	"syscall"
	"testing"

	"strandline/face/api"
)

// TestCompiled counts executable memory without a file, as far as it is there.
func TestCompiled(t *testing.T) {
	own := []api.SoakProcess{{PID: os.Getpid()}}
	before := compiled(own)
	const size, touched = 4 << 20, 1 << 20
	for _, exec := range []int{0, syscall.PROT_EXEC} {
		b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE|exec, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Munmap(b)
		syscall.Madvise(b, syscall.MADV_NOHUGEPAGE)
		for i := 0; i < touched; i += os.Getpagesize() {
			b[i] = 1
		}
	}
	if got := compiled(own) - before; got != touched {
		t.Errorf("%d bytes, want %d", got, touched)
	}
}
