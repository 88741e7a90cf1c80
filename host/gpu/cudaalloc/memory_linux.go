package cudaalloc

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

var order = binary.LittleEndian

// take reads memory of the process, and returns nil if that fails.
func (r *stateReader) take(addr, size uint64) []byte {
	if r.bytes += int(min(size, maxTable)); size > maxTable || r.bytes > maxTable {
		return nil
	}
	b := make([]byte, size)
	if r.a.im.Read(b, addr) != nil {
		return nil
	}
	return b
}

// records reads memory of one size at each of many addresses, a few hundred at a time.
func (r *stateReader) records(at []uint64, size int) ([][]byte, error) {
	const maxBatch = 512 // the kernel's limit is 1024
	out := make([][]byte, 0, len(at))
	for len(at) > 0 {
		n := min(len(at), maxBatch)
		if r.bytes += n * size; r.bytes > maxTable {
			return nil, errState
		}
		data := make([]byte, n*size)
		remote := make([]unix.RemoteIovec, n)
		for i := range remote {
			remote[i] = unix.RemoteIovec{Base: uintptr(at[i]), Len: size}
			out = append(out, data[i*size:(i+1)*size])
		}
		local := unix.Iovec{Base: &data[0]}
		local.SetLen(len(data))
		if got, err := unix.ProcessVMReadv(r.pid, []unix.Iovec{local}, remote, 0); err != nil || got != len(data) {
			return nil, errState
		}
		at = at[n:]
	}
	return out, nil
}
