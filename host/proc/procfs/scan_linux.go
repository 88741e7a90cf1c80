package procfs

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"
)

// A pageScan asks the kernel for the ranges of pages of one kind: struct pm_scan_arg in
// linux/fs.h, since Linux 6.7.
type pageScan struct {
	size, flags, start, end, until uint64
	ranges                         uint64 // where to put them
	room, most                     uint64
	inverted, all, some, report    uint64 // kinds
}

type pageRange struct{ start, end, kinds uint64 }

const (
	pagemapScan = 3<<30 | uint(unsafe.Sizeof(pageScan{}))<<16 | 'f'<<8 | 16
	pagePresent = 1 << 3
)

// scan returns how many bytes of a range are in memory. It skips what is not there, and
// so is fast where next to nothing is.
func (p *Pages) scan(start, end uint64) (bytes uint64, err error) {
	ranges := make([]pageRange, 512)
	var pin runtime.Pinner // the kernel writes to them
	pin.Pin(&ranges[0])
	defer pin.Unpin()
	first, last := start&^(PageSize-1), (end+PageSize-1)&^(PageSize-1)
	for first < last {
		s := pageScan{start: first, end: last, ranges: uint64(uintptr(unsafe.Pointer(&ranges[0]))), room: uint64(len(ranges)), all: pagePresent, report: pagePresent}
		s.size = uint64(unsafe.Sizeof(s))
		n, _, failed := syscall.Syscall(syscall.SYS_IOCTL, p.f.Fd(), uintptr(pagemapScan), uintptr(unsafe.Pointer(&s)))
		switch {
		case failed != 0:
			return 0, failed
		case int(n) > len(ranges) || s.until <= first:
			return 0, errors.New("the kernel does not go on")
		}
		for _, r := range ranges[:n] {
			bytes += min(r.end, end) - max(r.start, start)
		}
		first = s.until
	}
	return bytes, nil
}
