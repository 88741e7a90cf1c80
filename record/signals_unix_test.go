//go:build unix

package record

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSignals passes a signal on to the command, keeps one for itself, and reports
// by which the command ended.
func TestSignals(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	done := make(chan struct{})
	c := Command{
		Args: []string{"sh", "-c", `trap 'echo passed; kill -KILL $$' USR1; trap 'echo wrong' USR2; echo ready; while :; do sleep 0.05; done`},
		Env:  os.Environ(), Stdout: out,
		Signal: SignalNamed("usr2"), Do: func() { close(done) },
	}
	go func() {
		for !strings.HasPrefix(read(out.Name()), "ready") {
			time.Sleep(10 * time.Millisecond)
		}
		syscall.Kill(os.Getpid(), syscall.SIGUSR2)
		<-done
		syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	}()
	status, err := c.Run()
	if err != nil || status != 128+int(syscall.SIGKILL) {
		t.Errorf("status %d, %v; want %d", status, err, 128+int(syscall.SIGKILL))
	}
	if got := read(out.Name()); got != "ready\npassed\n" {
		t.Errorf("the command printed %q", got)
	}
}

func TestSignalNamed(t *testing.T) {
	for name, want := range map[string]os.Signal{"USR2": syscall.SIGUSR2, "SIGTERM": syscall.SIGTERM, "sighup": syscall.SIGHUP, "FOO": nil} {
		if got := SignalNamed(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
