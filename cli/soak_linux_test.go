package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/test/soakserver"
)

// This program is a server, if a test starts it as one.
func init() { soakserver.Main() }

// quickly makes a soak short.
func quickly(url string, more ...string) []string {
	return append([]string{"soak", "--url", url, "--settle", "50ms", "--requests", "300", "--input", "8-24", "--output", "4"}, more...)
}

// annotated matches the annotation of a leak: its kind is that of the cause, where a trace
// names it.
var annotated = regexp.MustCompile(`::error title=strandline%3A (leak|[a-z]+-[a-z]+)::host memory of pid`)

// TestSoak soaks a server that leaks, one that does not, and one that ends.
func TestSoak(t *testing.T) {
	url, _ := soakserver.Start(t, soakserver.Options{Mood: soakserver.Leaking, Bytes: 64 << 10})
	samples, junit, summary := filepath.Join(t.TempDir(), "samples"), filepath.Join(t.TempDir(), "soak.xml"), filepath.Join(t.TempDir(), "soak.md")
	stdout, stderr, code := run(quickly(url, "--json", "--metric", "host", "-o", samples, "--junit", junit, "--summary", summary, "--format", "github")...)
	var d api.Soak
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != exitProblem || d.Verdict != finding.Leaking || d.Growth == nil || len(d.Waves) < 6 {
		t.Fatalf("status %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if !strings.HasPrefix(stdout, "{\n  \"schema\": \"strandline.soak/1\"") || !strings.Contains(stderr, "strandline: wave 2: host ") {
		t.Errorf("%s%s", stdout, stderr)
	}
	for file, want := range map[string]string{
		junit:   `<testsuite name="strandline soak" tests="1" failures="1" errors="0" skipped="0"`,
		summary: "### strandline soak: LEAK\n",
	} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v: %s", file, err, text)
		}
	}
	if !annotated.MatchString(stderr) {
		t.Errorf("no annotation in %s", stderr)
	}
	var doc any
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatal(err)
	}
	named := documented(t, "../docs/json.md")
	for _, field := range fields(doc, nil) {
		if !named[field] {
			t.Errorf("docs/json.md does not name the field %s", field)
		}
	}
	if stdout, stderr, code := run("diagnose", samples); code != exitOK && code != exitProblem {
		t.Errorf("the samples: status %d\n%s%s", code, stdout, stderr)
	}

	stdout, stderr, code = run(quickly(url, "-v", "--max-growth", "1MiB/request", "--waves", "5")...)
	if code == exitProblem || !strings.Contains(stdout, "warm-up") {
		t.Errorf("growth that is allowed: status %d\n%s%s", code, stdout, stderr)
	}
	stdout, stderr, code = run(quickly(url, "--waves", "2")...)
	if code != exitCannotJudge || !strings.Contains(stderr, "a verdict needs 5") {
		t.Errorf("2 waves: status %d\n%s%s", code, stdout, stderr)
	}

	url, _ = soakserver.Start(t, soakserver.Options{})
	stdout, stderr, code = run(quickly(url, "-v", "--metric", "host")...)
	if code == exitProblem || !strings.Contains(stdout, "before the load") {
		t.Errorf("a clean server: status %d\n%s%s", code, stdout, stderr)
	}
	url, _ = soakserver.Start(t, soakserver.Options{Ends: 400})
	stdout, stderr, code = run(quickly(url, "--restart-wait", "100ms")...)
	if code != exitCommand || !strings.Contains(stderr, "ended in wave 2") || !strings.HasPrefix(stdout, "FAILED  the server (pid ") {
		t.Errorf("a server that ends: status %d\n%s%s", code, stdout, stderr)
	}
}

// TestSoakProcesses shows what each process of a server holds.
func TestSoakProcesses(t *testing.T) {
	url, pid := soakserver.Start(t, soakserver.Options{Helper: 1000})
	stdout, stderr, code := run(quickly(url, "-v", "--waves", "1", "--metric", "host")...)
	if code != exitCannotJudge || !strings.Contains(stdout, "process ") || !strings.Contains(stdout, fmt.Sprintf("\n  pid%d ", pid)) {
		t.Errorf("status %d: %s%s", code, stdout, stderr)
	}
}

// TestSoakInterrupted writes what was asked for, with what happened.
func TestSoakInterrupted(t *testing.T) {
	url, _ := soakserver.Start(t, soakserver.Options{})
	folder := t.TempDir()
	junit, summary := filepath.Join(folder, "soak.xml"), filepath.Join(folder, "soak.md")
	ctx, stop := context.WithCancel(t.Context())
	var stdout bytes.Buffer
	stderr := &until{text: "wave 1: host", then: stop}
	code := Main(&Env{args: quickly(url, "--junit", junit, "--summary", summary), stdout: &stdout, stderr: stderr, getenv: func(string) string { return "" }, context: ctx})
	if code != exitInterrupted || !strings.HasPrefix(stdout.String(), "INTERRUPTED  interrupted after wave 1\n") {
		t.Errorf("status %d: %s%s", code, &stdout, &stderr.Buffer)
	}
	for file, want := range map[string]string{
		junit:   `<error message="interrupted after wave 1" type="interrupted">`,
		summary: "INTERRUPTED: interrupted after wave 1 |",
	} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v: %s", file, err, text)
		}
	}
}

// until calls a function once a text has been written to it.
type until struct {
	bytes.Buffer
	text string
	then func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if strings.Contains(u.String(), u.text) {
		u.then()
	}
	return n, err
}

// TestSoakURL prints no password.
func TestSoakURL(t *testing.T) {
	const secret = "s3cret"
	url, _ := soakserver.Start(t, soakserver.Options{})
	url = strings.Replace(url, "://", "://user:"+secret+"@", 1)
	junit, summary := filepath.Join(t.TempDir(), "soak.xml"), filepath.Join(t.TempDir(), "soak.md")
	for _, url := range []string{url, strings.Replace(url, "http:", "ftp:", 1), url + "%zz", url + "/nothing", url + "?x=1"} {
		stdout, stderr, code := run(quickly(url, "--json", "--waves", "1", "--requests", "10", "--junit", junit, "--summary", summary)...)
		text := stdout + stderr
		for _, file := range []string{junit, summary} {
			if data, err := os.ReadFile(file); err != nil {
				t.Error(err)
			} else {
				text += string(data)
			}
		}
		if code != exitUsage && code != exitCannotJudge || strings.Contains(text, secret) {
			t.Errorf("%s: status %d: %s", url, code, text)
		}
	}
}

// TestSoakOutput finds out at the start that a file cannot be written.
func TestSoakOutput(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, flag := range []string{"--junit", "--summary"} {
		_, stderr, code := run("soak", "--url", "http://127.0.0.1:1/v1", flag, filepath.Join(none, "file"))
		if code != exitUsage || !strings.Contains(stderr, "there is no folder "+none) {
			t.Errorf("%s: status %d: %s", flag, code, stderr)
		}
	}
}

// A soak that cannot start is an error to the systems that read JUnit: without the file
// they would show no test at all.
func TestSoakWithoutServer(t *testing.T) {
	nothing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + nothing.Addr().String() + "/v1"
	nothing.Close()
	junit := filepath.Join(t.TempDir(), "soak.xml")
	_, stderr, code := run(quickly(url, "--junit", junit)...)
	if code != exitUsage || !strings.Contains(stderr, "is the server running?") {
		t.Errorf("status %d: %s", code, stderr)
	}
	if text, err := os.ReadFile(junit); err != nil || !strings.Contains(string(text), `tests="1" failures="0" errors="1"`) {
		t.Errorf("%v: %s", err, text)
	}
}
