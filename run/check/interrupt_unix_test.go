//go:build unix

package check

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"strandline/internal/test/live"
	"strandline/judge/gate"
)

// TestInterrupted interrupts a command that ignores signals, and whose child does, twice:
// both are gone then.
func TestInterrupted(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	work := t.TempDir()
	out, err := os.Create(filepath.Join(work, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	interrupted := 0
	go func() {
		for {
			if text, _ := os.ReadFile(out.Name()); strings.HasSuffix(string(text), "\n") {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	r, err := Do(t.Context(), Options{
		Command: []string{"sh", "-c", `trap "" INT TERM; sleep 600 & echo $!; while :; do sleep 600; done`},
		Env:     os.Environ(), Dir: filepath.Join(work, "recording"), Steps: "auto", Stdout: out,
		Interrupted: func() {
			interrupted++
			syscall.Kill(os.Getpid(), syscall.SIGTERM)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if interrupted != 1 || !r.Interrupted || !r.Killed || r.Status != 128+int(syscall.SIGKILL) {
		t.Errorf("interrupted %d times, %t, killed %t, status %d", interrupted, r.Interrupted, r.Killed, r.Status)
	}
	text, _ := os.ReadFile(out.Name())
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for { // until it is gone, or somebody's zombie
		status, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")
		if err != nil || strings.Contains(string(status), ") Z ") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	Judge(r, Limits{gate.Host: {}}, nil)
}
