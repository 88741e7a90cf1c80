package cli

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"strandline/face/web/engine"
)

// served is a `strandline view` that runs behind a script.
type served struct {
	command *exec.Cmd
	client  *http.Client
	address string // up to the path
}

// serve ARG… starts `strandline view --no-open ARG…`, or what begins with plan and
// ends with --page, and opens the address that it prints.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve ARG…")
	}
	s := ts.Value(served{}).(*served)
	if args[0] != "plan" {
		args = append([]string{"view"}, args...)
	}
	s.command = exec.Command("strandline", append(args, "--no-open")...)
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
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if answer.StatusCode != want || !strings.Contains(string(body), args[2]) {
			ts.Fatalf("%s: status %d, %.2000s", args[0], answer.StatusCode, body)
		}
		return
	}
}

// interrupt STATUS [hangup] ends the server as a user does, by Ctrl-C or by closing
// the terminal, and wants an exit status.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: interrupt STATUS [hangup]")
	}
	s := ts.Value(served{}).(*served)
	signal := os.Interrupt
	if len(args) > 1 {
		signal = syscall.SIGHUP
	}
	ts.Check(s.command.Process.Signal(signal))
	s.command.Wait()
	if got := strconv.Itoa(s.command.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit status is %s, want %s", got, args[0])
	}
}

// TestViewRedacts looks for names of the program in all that a saved page holds.
func TestViewRedacts(t *testing.T) {
	const folder = "../../examples/image-leak"
	for _, c := range []struct {
		args []string
		has  bool
	}{
		{nil, true},
		{[]string{"--redact", "both"}, false},
	} {
		file := filepath.Join(t.TempDir(), "out.html")
		_, stderr, code := run(append([]string{"view", folder, "--html", file}, c.args...)...)
		if code != exitOK {
			t.Fatal(code, stderr)
		}
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := unpacked(t, page)
		if !strings.Contains(text, "step-4.pickle") {
			t.Error("the page lacks its files")
		}
		for _, name := range []string{"w02_image_leak", "rigmodels", "image-leak", "normalise"} {
			if strings.Contains(text, name) != c.has {
				t.Errorf("%v: the page names %s: %t", c.args, name, !c.has)
			}
		}
	}
}

// TestViewRedactsDamaged looks for bytes of a damaged file, which the error quotes.
func TestViewRedactsDamaged(t *testing.T) {
	whole, err := os.ReadFile("../../torch/snapshot/testdata/w21_writers.json.train.snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("../../examples/image-leak/step-4.pickle")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"cut.json":    append(slices.Clip(whole[:len(whole)/2]), "\x01acme_secret"...),
		"cut.pickle":  append(slices.Clip(list[:20000]), "cacme_secret\nacme_secret\n"...),
		"none.pickle": []byte("\x80\x04cacme_secret\nacme_secret\n."),
		"none.json":   []byte(`{"acme_secret": [acme_secret]}`),
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out := file + ".html"
		_, stderr, code := run("view", file, "../../examples/image-leak/step-2.pickle", "--html", out, "--redact", "both")
		page, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(code, stderr, err)
		}
		told := unpacked(t, page)
		if strings.Contains(told, "acme") || strings.HasPrefix(name, "cut") && !strings.Contains(told, "reading ended at") {
			t.Errorf("%s: the page quotes the file, or does not say that it is damaged: %s", name, stderr)
		}
	}
}

// unpacked is what the parts of a saved page hold.
func unpacked(t *testing.T, page []byte) string {
	t.Helper()
	var out strings.Builder
	for _, m := range regexp.MustCompile(`id="saved-\w+">([^<]*)<`).FindAllSubmatch(page, -1) {
		packed := base64.NewDecoder(base64.StdEncoding, bytes.NewReader(m[1]))
		if _, err := io.Copy(&out, flate.NewReader(packed)); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestRecordingPageTellsWhatDiagnoseTells holds the page of a recording against
// the document of diagnose, and against the judgement that the recording holds.
func TestRecordingPageTellsWhatDiagnoseTells(t *testing.T) {
	const file = "../../examples/munmap-leak/server.trace"
	stdout, stderr, code := run("diagnose", file, "--json")
	if code != exitProblem {
		t.Fatal(code, stderr)
	}
	type told struct {
		Verdict  string           `json:"verdict"`
		Findings []map[string]any `json:"findings"`
	}
	var diagnosed, page told
	if err := json.Unmarshal([]byte(stdout), &diagnosed); err != nil {
		t.Fatal(err)
	}
	read, err := (&globals{env: &Env{}}).readRecording(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	a := engine.NewRecording(file, read).Ask(context.Background(), "recording", nil)
	if err := json.Unmarshal(a.Body, &page); err != nil {
		t.Fatal(err)
	}
	for _, f := range page.Findings {
		delete(f, "origins")
		delete(f, "stacks")
	}
	if !reflect.DeepEqual(page, diagnosed) || len(page.Findings) != 1 {
		t.Errorf("the page tells %v\ndiagnose tells %v", page, diagnosed)
	}
}
