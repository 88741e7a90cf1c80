package cli

import (
	"bufio"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// served is a `strandline view` that runs behind a script.
type served struct {
	command *exec.Cmd
	client  *http.Client
	address string // up to the path
}

// serve ARG… starts `strandline view --no-open ARG…` and opens the address that
// it prints.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve ARG…")
	}
	s := ts.Value(served{}).(*served)
	s.command = exec.Command("strandline", append([]string{"view", "--no-open"}, args...)...)
	s.command.Dir, s.command.Stderr = ts.MkAbs("."), os.Stderr
	out, err := s.command.StdoutPipe()
	ts.Check(err)
	ts.Check(s.command.Start())
	ts.Defer(func() { s.command.Process.Kill() })
	url, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	jar, _ := cookiejar.New(nil)
	s.client = &http.Client{Jar: jar}
	s.address, _, _ = strings.Cut(strings.TrimSpace(url), "/?t=")
	answer, err := s.client.Get(strings.TrimSpace(url))
	ts.Check(err)
	answer.Body.Close()
	if answer.Request.URL.String() != s.address+"/" {
		ts.Fatalf("%s leads to %s", url, answer.Request.URL)
	}
}

// get PATH STATUS TEXT asks for a path, and wants a status and a text in the
// answer. It asks again as long as files are being read.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: get PATH STATUS TEXT")
	}
	s := ts.Value(served{}).(*served)
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	for {
		answer, err := s.client.Get(s.address + args[0])
		ts.Check(err)
		body, err := io.ReadAll(answer.Body)
		ts.Check(err)
		if answer.Body.Close(); answer.StatusCode == http.StatusConflict && want != http.StatusConflict {
			continue
		}
		if answer.StatusCode != want || !strings.Contains(string(body), args[2]) {
			ts.Fatalf("%s: status %d, %.2000s", args[0], answer.StatusCode, body)
		}
		return
	}
}

// interrupt STATUS ends the server as a user does, and wants an exit status.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: interrupt STATUS")
	}
	s := ts.Value(served{}).(*served)
	ts.Check(s.command.Process.Signal(os.Interrupt))
	s.command.Wait()
	if got := strconv.Itoa(s.command.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit status is %s, want %s", got, args[0])
	}
}
