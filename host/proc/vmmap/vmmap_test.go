package vmmap

import (
	"testing"

	"strandline/host/proc/procfs"
)

func TestKinds(t *testing.T) {
	rw := func(start, end uint64, path string) procfs.Mapping {
		return procfs.Mapping{Start: start, End: end, Read: true, Write: true, Path: path}
	}
	none := func(start, end uint64) procfs.Mapping { return procfs.Mapping{Start: start, End: end} }
	file := rw(0x1000, 0x2000, "/lib/x.so")
	file.Inode = 5
	shm := rw(0x2000, 0x3000, "/dev/shm/torch_1")
	shm.Shared, shm.Inode = true, 6
	memfd := rw(0x3000, 0x4000, "/memfd:a")
	memfd.Inode = 7
	heapStart := uint64(ArenaSize * 3)
	m := New([]procfs.Mapping{
		rw(0x8000, 0x9000, "[stack]"), rw(0x7000, 0x8000, "[heap]"), file, shm, memfd,
		none(0x5000, 0x6000), rw(0x6000, 0x7000, ""),
		rw(heapStart, heapStart+0x1000, ""), none(heapStart+0x1000, heapStart+ArenaSize),
		rw(heapStart+2*ArenaSize, heapStart+2*ArenaSize+0x1000, ""),
	})
	for addr, want := range map[uint64]Kind{
		0x1000: File, 0x2000: Shared, 0x3000: Memfd, 0x6000: Thread, 0x7000: Heap, 0x8000: Stack,
		heapStart: Arena, heapStart + 2*ArenaSize: Anonymous,
	} {
		found, ok := m.Find(addr)
		if !ok {
			t.Errorf("nothing is found at %#x", addr)
		} else if got := m.Kind(found); got != want {
			t.Errorf("%#x is %s, want %s", addr, got, want)
		}
	}
	if _, ok := m.Find(0x9000); ok {
		t.Error("the end of a mapping is found in it")
	}
}

func TestNewDropsOverlaps(t *testing.T) {
	m := New([]procfs.Mapping{{Start: 10, End: 30}, {Start: 20, End: 40}, {Start: 40, End: 50}, {Start: 5, End: 5}})
	if len(m.Mappings) != 2 || m.Mappings[1].Start != 40 {
		t.Errorf("got %+v", m.Mappings)
	}
	total := uint64(0)
	m.Within(25, 45, func(a, b uint64) { total += b - a })
	if total != 10 {
		t.Errorf("%d bytes of [25, 45) are mapped, want 10", total)
	}
}
