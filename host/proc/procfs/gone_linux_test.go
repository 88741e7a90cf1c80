package procfs

import (
	"os"
	"os/exec"
	"testing"

	"strandline/internal/test/live"
)

// TestGone tells a process that has ended from one that cannot be read now.
func TestGone(t *testing.T) {
	if !live.Alone(t) {
		return
	}
	self := Process(os.Getpid())
	started, err := self.Started()
	if err != nil {
		t.Fatal(err)
	}
	release := live.Exhaust(t)
	_, unread := self.Started()
	ended := self.Ended(started)
	_, children := self.Descendants()
	release()
	if HasExited(unread) || !Lacks(unread) || ended {
		t.Errorf("itself: %v, ended %v", unread, ended)
	}
	if !Lacks(children) {
		t.Errorf("children that cannot be read: %v", children)
	}
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	p := Process(c.Process.Pid)
	if _, err := p.Started(); !HasExited(err) || !p.Ended(started) || Lacks(err) {
		t.Errorf("a process that has ended: %v", err)
	}
	if !self.Ended(started + 1) {
		t.Error("another process of the same number")
	}
}
