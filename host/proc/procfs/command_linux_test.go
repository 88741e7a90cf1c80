package procfs

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCommandWithoutSecrets reads the command line of a process that was started with a key.
func TestCommandWithoutSecrets(t *testing.T) {
	c := exec.Command("/bin/sh", "-c", "echo; read line", "x", "--api-key", "quietSecret", "--port", "80")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); c.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil { // it runs: a program that is being started has no command line yet
		t.Fatal(err)
	}
	const want = "/bin/sh -c echo; read line x --api-key *** --port 80"
	if got := Process(c.Process.Pid).Command(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Process(c.Process.Pid).Args(); strings.Join(got, " ") != want || len(got) != 8 {
		t.Errorf("got %q", got)
	}
}
