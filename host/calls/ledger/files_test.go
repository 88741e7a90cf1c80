//go:build linux

package ledger

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"strandline/host/calls/event"
	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// Files are known by who made them; their length is reported only for those whose maker
// was not seen.
func TestFiles(t *testing.T) {
	memfd := func() (int32, procfs.FileID) {
		fd, err := unix.MemfdCreate("strandline-test", 0)
		if err != nil {
			live.Missing(t, "memfd_create", err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		file, _ := procfs.Process(os.Getpid()).MemoryFile(int32(fd))
		return int32(fd), file.ID
	}
	f := newFiles()
	here, there := event.Place{IP: 1}, event.Place{IP: 2}
	enter := func(op event.Op, at uint64, fd int32, place event.Place) {
		f.enter(&event.Event{Op: op, Time: at, PID: uint32(os.Getpid()), FD: fd, Place: place})
	}
	copied := func(at uint64, stack int) {
		if m := f.by[call{uint32(os.Getpid()), at}]; m == nil {
			t.Errorf("no file is of the call at %d", at)
		} else {
			m.stack = stack
		}
	}
	first, firstID := memfd()
	second, secondID := memfd()
	third, thirdID := memfd()
	enter(event.Memfd, 10, first, here)
	enter(event.Truncate, 11, first, there)
	enter(event.Memfd, 20, second, here)
	enter(event.Truncate, 30, third, there)
	enter(event.Truncate, 31, 0x7fff, there) // nothing is open there
	copied(10, 1)
	copied(30, 3)
	want := map[procfs.FileID]int{firstID: 1, secondID: 1, thirdID: 3}
	if got := f.stacks(); len(got) != len(want) || got[firstID] != 1 || got[secondID] != 1 || got[thirdID] != 3 {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, was := f.by[call{uint32(os.Getpid()), 11}]; was {
		t.Error("the length of a file that is known is news")
	}
	for i := uint64(0); len(f.made) < maxFiles; i++ {
		f.made[procfs.FileID{Inode: 1<<60 + i}] = &madeFile{pid: uint32(os.Getpid()), at: 100 + i}
	}
	fourth, fourthID := memfd()
	enter(event.Memfd, 2*pruneEvery, fourth, here)
	if len(f.made) != 4 || f.made[fourthID] == nil || f.made[firstID] == nil {
		t.Errorf("%d files are known after those that are closed were forgotten", len(f.made))
	}
}
