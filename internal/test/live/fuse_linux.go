package live

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
)

// A FileSystem holds one file, `file`, until it no longer answers.
type FileSystem struct {
	Dir    string
	silent atomic.Bool
	data   []byte
	dev    int
}

// Mount mounts a file system with a file of some content, until the test ends. It
// skips the test where that is not allowed.
func Mount(t testing.TB, data []byte) *FileSystem {
	t.Helper()
	Waits(t)
	dev, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		Missing(t, "FUSE", err)
	}
	fs := &FileSystem{Dir: t.TempDir(), data: data, dev: dev}
	if err := syscall.Mount("strandline", fs.Dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", dev)); err != nil {
		syscall.Close(dev)
		Missing(t, "mounting", err)
	}
	t.Cleanup(fs.Close)
	go fs.serve()
	return fs
}

// Close unmounts it: processes that wait for it get an error. Until then they cannot
// even be killed.
func (fs *FileSystem) Close() {
	const now, later = 1, 2 // processes that have it open keep it
	syscall.Unmount(fs.Dir, now|later)
}

// Silence makes it answer no more, as if its server were away.
func (fs *FileSystem) Silence() { fs.silent.Store(true) }

func (fs *FileSystem) serve() {
	defer syscall.Close(fs.dev)
	buf := make([]byte, 1<<18)
	for {
		n, err := syscall.Read(fs.dev, buf)
		if err == syscall.EINTR || err == syscall.ENOENT {
			continue
		}
		if err != nil {
			return
		}
		if fs.silent.Load() {
			continue
		}
		fs.answer(buf[:n])
	}
}

// The operations of the kernel's protocol (include/uapi/linux/fuse.h).
func (fs *FileSystem) answer(b []byte) {
	order := binary.LittleEndian
	op, unique, node := order.Uint32(b[4:]), order.Uint64(b[8:]), order.Uint64(b[16:])
	body := b[40:]
	var out bytes.Buffer
	put := func(v any) { binary.Write(&out, order, v) }
	failed := int32(0)
	attr := func(node uint64) {
		size, mode := uint64(len(fs.data)), uint32(syscall.S_IFREG|0o755)
		if node == 1 {
			size, mode = 0, syscall.S_IFDIR|0o755
		}
		put([]uint64{node, size, (size + 511) / 512, 0, 0, 0})
		put([]uint32{0, 0, 0, mode, 1, 0, 0, 0, 4096, 0})
	}
	const forever = 3600
	switch op {
	case 26: // init
		put([]uint32{7, 31, 1 << 16, 0})
		put([]uint16{0, 0})
		put([]uint32{1 << 16, 1})
		put([]uint16{32, 0})
		put([8]uint32{})
	case 1: // lookup
		if string(bytes.TrimRight(body, "\x00")) != "file" {
			failed = -int32(syscall.ENOENT)
			break
		}
		put([]uint64{2, 0, forever, forever})
		put([]uint32{0, 0})
		attr(2)
	case 3: // getattr
		put(uint64(forever))
		put([]uint32{0, 0})
		attr(node)
	case 14: // open
		put(uint64(1))
		put([]uint32{1 << 1, 0}) // the cache is kept
	case 15: // read
		at, n := order.Uint64(body[8:]), uint64(order.Uint32(body[16:]))
		at = min(at, uint64(len(fs.data)))
		out.Write(fs.data[at:min(at+n, uint64(len(fs.data)))])
	case 18, 25: // release, flush
	case 2, 42: // forget
		return
	default:
		failed = -int32(syscall.ENOSYS)
	}
	head := make([]byte, 16, 16+out.Len())
	order.PutUint32(head, uint32(16+out.Len()))
	order.PutUint32(head[4:], uint32(failed))
	order.PutUint64(head[8:], unique)
	syscall.Write(fs.dev, append(head, out.Bytes()...))
}
