//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// pipeOf is a named pipe into which a file is written once.
func pipeOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			f.Write(data)
			f.Close()
		}
	}()
	return path
}

// TestPipes reads what can be read only once, and looks at it more than once.
func TestPipes(t *testing.T) {
	live.Sequential(t)
	const step, trace = "../examples/image-leak/step-4.pickle", "../examples/munmap-leak/server.trace"
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		file, args string
		code       int
		want       string
	}{
		{step, "diagnose PIPE", exitProblem, "w02_image_leak.py:39 normalise"},
		{step, "export PIPE --to folded -o " + out, exitOK, "wrote "},
		{step, "view PIPE --html " + out, exitOK, "wrote "},
		{trace, "diagnose PIPE", exitProblem, " grew by "},
		{trace, "export PIPE --to folded -o " + out, exitOK, "wrote "},
		{"../logs/testdata/limit.txt", "diagnose PIPE", exitProblem, "limit"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "PIPE", pipeOf(t, c.file)))
		if stdout, stderr, code := run(args...); code != c.code || !strings.Contains(stdout, c.want) {
			t.Errorf("%s of %s: exit status %d: %s%s", args[0], c.file, code, stdout, stderr)
		}
	}
}

// TestNoWaiting reads folders of models that contain pipes without a
// writer, and files without an end.
func TestNoWaiting(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "config.json", smallConfig)
	for _, name := range []string{"model.safetensors", "model.safetensors.index.json", "hf_quant_config.json"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan string, 1)
	go func() {
		_, stderr, _ := run("plan", "--model", dir, "--gpu", "T4")
		done <- stderr
	}()
	select {
	case stderr := <-done:
		if !strings.Contains(stderr, "not a regular file") {
			t.Errorf("%s", stderr)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
	for _, args := range [][]string{
		{"plan", "--against", "/dev/zero"},
		{"plan", "--against", "../../plan/testdata/observed.csv", "--models", "/dev/zero"},
		{"plan", "--model", "/dev/zero", "--gpu", "T4"},
		{"plan", "rl", "--phases", "/dev/zero"},
	} {
		if _, stderr, code := run(args...); code != exitUsage || stderr == "" {
			t.Errorf("%v: exit status %d: %s", args, code, stderr)
		}
	}
}
