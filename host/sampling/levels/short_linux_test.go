package levels

import (
	"errors"
	"os"
	"testing"

	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// TestShortOfFiles takes no sample that lacks a process because no file can be opened.
func TestShortOfFiles(t *testing.T) {
	if !live.Alone(t) {
		return
	}
	self := procfs.Process(os.Getpid())
	s := &Sampler{root: self, known: map[uint64]int{}}
	s.take(0)
	release := live.Exhaust(t)
	s.take(0)
	_, err := Held(self)
	release()
	if !procfs.Lacks(err) || errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a process that cannot be read now: %v", err)
	}
	if n := len(s.Samples().Samples); n != 1 {
		t.Errorf("%d samples", n)
	}
}
