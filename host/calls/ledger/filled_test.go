//go:build linux

package ledger

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// Shared memory that another process filled is in memory, though this one has touched
// none of it.
func TestFilledByOthers(t *testing.T) {
	const size = 16 << 12
	fd, err := unix.MemfdCreate("filled", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.Pwrite(fd, make([]byte, size/2), 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	self := procfs.Process(os.Getpid())
	maps, err := self.Maps()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range maps {
		if !strings.Contains(at.Path, "memfd:filled") {
			continue
		}
		_, err := self.Stored(at.Start, at.End)
		live.Need(t, "reading the memory of another process", err)
		x := newSurvey(3)
		x.fill(self, &Interval{Start: at.Start, End: at.End, kind: Shared, Cause: 2}, 1<<12)
		x.fill(self, &Interval{Start: at.Start, End: at.End, kind: FileBacked, Cause: 1}, 0)
		if x.filled[2] != size/2-1<<12 || x.filled[1] != 0 {
			t.Errorf("got %v", x.filled)
		}
		return
	}
	t.Fatal("the mapping is not in the list")
}
