package cli

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

// TestSquatters asks about a process whose names another one has taken, and about one that
// answers as neither a recorder nor a library does.
func TestSquatters(t *testing.T) {
	sleep := exec.Command(live.Tool(t, "sleep"), "1000")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sleep.Process.Kill()
		sleep.Wait()
	})
	self, other := strconv.Itoa(os.Getpid()), strconv.Itoa(sleep.Process.Pid)
	serve := func(pid, prefix, answer string) {
		live.Answer(t, prefix+pid, func(c net.Conn) {
			for {
				if _, err := io.WriteString(c, answer); err != nil {
					return
				}
			}
		})
	}
	serve(other, "strandline/", `{"path":"--output=x","folder":"/"}`+"\n")
	serve(other, "strandline-mem/", "tag x 1 1 active none 0 1\nend\n")
	serve(self, "strandline/", `{"path":"--output=x","role":"\u001b[31m","folder":"/\u001b[2J"}`+"\n")
	serve(self, "strandline-mem/", "tag \x1b[31m 9223372036854775807 1 active none 0 1\n")
	taken := "process " + self + ", of user " + strconv.Itoa(os.Geteuid()) + ", has taken the name of its socket"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"snapshot", "--pid", other}, taken},
		{[]string{"mem", "status", "--pid", other}, taken},
		{[]string{"mem", "pause", "--pid", other}, taken},
		{[]string{"mem", "resume", "--pid", other}, taken},
		{[]string{"mem", "plan", "--pid", other}, taken},
		{[]string{"snapshot", "--pid", self}, "is no path of a file in its recording"},
		{[]string{"mem", "status", "--pid", self}, "is no line of a library"},
		{[]string{"mem", "pause", "--pid", self}, "is no line of a library"},
	} {
		stdout, stderr, code := run(c.args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "\x1b") {
			t.Errorf("%q: exit status %d, want %d: %q%q, want %q", c.args, code, exitUsage, stdout, stderr, c.want)
		}
	}
	stdout, stderr, code := run("record", "--status")
	if lines := strings.Split(strings.TrimSpace(stdout), "\n"); code != exitOK || !strings.Contains(stdout, self) || strings.Contains(stdout+stderr, "\x1b") {
		t.Errorf("exit status %d: %q%q", code, lines, stderr)
	}
	if strings.Contains(stdout, fmt.Sprintf("\n%s ", other)) {
		t.Errorf("a process that is not recorded is listed: %s", stdout)
	}
}
