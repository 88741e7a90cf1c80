package procfs

import (
	"os"
	"slices"
	"syscall"
	"testing"

	"strandline/internal/test/live"
)

func TestDescriptors(t *testing.T) {
	p := Process(os.Getpid())
	before, err := p.Descriptors()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp("/dev/shm", "strandline-test")
	if err != nil {
		live.Missing(t, "/dev/shm", err)
	}
	defer f.Close()
	os.Remove(f.Name())
	if _, err := f.Write(make([]byte, 100<<10)); err != nil {
		t.Fatal(err)
	}
	again, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(again)
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pair[0])
	defer syscall.Close(pair[1])
	after, err := p.Descriptors()
	if err != nil {
		t.Fatal(err)
	}
	if after.Sockets != before.Sockets+2 || after.Total < before.Total+4 {
		t.Errorf("got %+v after %+v: want 2 sockets and at least 4 descriptors more", after, before)
	}
	own, ok := p.MemoryFile(int32(f.Fd()))
	if socket, is := p.MemoryFile(int32(pair[0])); !ok || is {
		t.Errorf("the file is in memory: %v; the socket: %+v", ok, socket)
	}
	want := MemoryFile{own.ID, f.Name(), 100 << 10}
	if !slices.Contains(after.Memory, want) || len(after.Memory) != len(before.Memory)+1 {
		t.Errorf("got the files %+v, want %+v among them", after.Memory, want)
	}
}
