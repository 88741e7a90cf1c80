package procfs

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"strandline/internal/test/live"
)

// TestVitalsAreStatus compares both readers of a real status.
func TestVitalsAreStatus(t *testing.T) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var v Vitals
	if err := ParseVitals(text, &v); err != nil {
		t.Fatal(err)
	}
	if !v.Resident || v.Anon <= 0 || v.Threads < 1 || v.Parent != os.Getppid() {
		t.Errorf("%+v", v)
	}
}

// TestMappedIsStatus compares what statm and status state of a process whose memory does
// not change: one that waits to be continued.
func TestMappedIsStatus(t *testing.T) {
	live.Waits(t)
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		c.Process.Kill()
		c.Wait()
	}()
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var v Vitals
	for v.State != 'T' {
		text, err := os.ReadFile(Process(c.Process.Pid).file("status"))
		if err != nil {
			t.Fatal(err)
		}
		if err := ParseVitals(text, &v); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(Process(c.Process.Pid).file("statm"))
	if err != nil {
		t.Fatal(err)
	}
	resident, mapped, ok := ParseMapped(text)
	if !ok || resident != v.Anon+v.File+v.Shared || mapped != v.File+v.Shared {
		t.Errorf("statm has %d and %d, status %+v", resident, mapped, v)
	}
}
