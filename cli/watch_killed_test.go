package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"strandline/host/sampling/sample"
	"strandline/host/store/series"
	"strandline/internal/test/live"
)

// TestWatchKilled kills a watch at several moments: all samples that it printed are in its
// recording, with which the next watch goes on.
func TestWatchKilled(t *testing.T) {
	live.Linux(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.strandline")
	printed := 0
	for _, after := range []int{1, 2, 3, 30, 650} { // samples; a frame of the file has 600
		printed += watchUntilKilled(t, path, after)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		recorded := 0
		partial, err := series.Read(bytes.NewReader(content), func(*sample.Sample) error { recorded++; return nil })
		if recorded < printed || partial != nil || err != nil {
			t.Errorf("killed after %d samples: %d of the %d printed so far are in the recording: %v, %v", after, recorded, printed, partial, err)
		}
	}
}

// watchUntilKilled kills a watch as soon as it has printed so many samples, and returns
// how many it printed.
func watchUntilKilled(t *testing.T, path string, samples int) (printed int) {
	t.Helper()
	live.Waits(t)
	c := exec.Command("strandline", "watch", "--pid", fmt.Sprint(os.Getpid()), "--json", "--interval", "10ms", "--out", path)
	stderr := &bytes.Buffer{}
	c.Stderr = stderr
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil || !bytes.Contains(line, []byte(`"processes"`)) { // its end may be torn
			break
		}
		if printed++; printed == samples {
			c.Process.Kill()
		}
	}
	if printed < samples {
		t.Fatalf("it ended after %d samples: %s", printed, stderr)
	}
	return printed
}
