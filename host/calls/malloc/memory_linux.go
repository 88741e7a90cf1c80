//go:build amd64 || arm64

package malloc

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"strandline/host/proc/procfs"
)

// sharedWith returns where a process has what is shared, 0 if it has not. No other process is read:
// a program may write any number, to learn what it could not read itself.
func (s *Sampling) sharedWith(pid uint32) uint64 {
	var own unix.Stat_t
	if unix.Fstat(int(s.file.Fd()), &own) != nil {
		return 0
	}
	all, _ := procfs.Process(pid).Maps()
	for _, m := range all {
		if m.Inode == own.Ino && m.Shared && m.Offset == 0 && strings.HasPrefix(m.Path, "/memfd:"+samplesName) {
			return m.Start
		}
	}
	return 0
}

const page = 4096

// memory is that of a process.
type memory uint32

// Read fills b with what is at an address.
func (m memory) Read(b []byte, addr uint64) error { return procfs.Process(m).Peek(b, addr) }

// pages returns the pages of a stack from an address on, up to 64 KiB.
func (m memory) pages(at uint64) []byte {
	const most = 16
	out := make([]byte, most*page)
	remote := make([]unix.RemoteIovec, most)
	for i := range remote {
		remote[i] = unix.RemoteIovec{Base: uintptr(at) + uintptr(i)*page, Len: page}
	}
	n, err := unix.ProcessVMReadv(int(m), []unix.Iovec{{Base: &out[0], Len: uint64(len(out))}}, remote, 0)
	if err != nil {
		return nil
	}
	return out[:n]
}

// paged is the memory of a process, of which each page is read once.
type paged struct {
	memory
	pages map[uint64][]byte
}

// Read fills b with what is at an address.
func (m *paged) Read(b []byte, addr uint64) error {
	at := addr &^ (page - 1)
	if addr+uint64(len(b)) > at+page {
		return m.memory.Read(b, addr)
	}
	p, known := m.pages[at]
	if !known {
		if p = make([]byte, page); m.memory.Read(p, at) != nil {
			p = nil
		}
		if m.pages == nil {
			m.pages = map[uint64][]byte{}
		}
		m.pages[at] = p
	}
	if p == nil {
		return syscall.EFAULT
	}
	copy(b, p[addr-at:])
	return nil
}
