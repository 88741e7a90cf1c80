package procfs

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"strandline/internal/test/live"
)

// TestScan finds what is in memory of a terabyte of addresses, as reading it page
// by page does of a part of it.
func TestScan(t *testing.T) {
	const all, part = 1 << 40, 64 << 20
	m, err := syscall.Mmap(-1, 0, all, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		live.Missing(t, "a terabyte of addresses", err)
	}
	defer syscall.Munmap(m)
	page := int(PageSize)
	for i := 0; i < 2000; i++ { // more ranges than fit in one answer
		m[2*i*page] = 1
	}
	m[all-1] = 1
	start := uint64(uintptr(unsafe.Pointer(&m[0])))
	pages, err := Process(os.Getpid()).Pages()
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close()
	want, err := pages.count(start, start+part)
	if err != nil || want < 2000*PageSize {
		t.Fatalf("%d bytes are in memory, %v", want, err)
	}
	n, err := pages.scan(start, start+part)
	if errors.Is(err, syscall.ENOTTY) {
		if _, err := pages.Resident(start, start+all); !errors.Is(err, errTooLarge) {
			t.Errorf("a terabyte without the kernel's scan: %v", err)
		}
		live.Missing(t, "PAGEMAP_SCAN", err)
	}
	if err != nil || n != want {
		t.Errorf("%d bytes are in memory by the scan, %d page by page; %v", n, want, err)
	}
	if n, err := pages.Resident(start, start+all); err != nil || n < want+PageSize || n > want+(2<<20) {
		t.Errorf("%d bytes of all are in memory, of the part %d; %v", n, want, err)
	}
	// Ends that are not those of pages.
	if n, err := pages.Resident(start+1, start+3); err != nil || n != 2 {
		t.Errorf("%d of 2 bytes, %v", n, err)
	}
}
