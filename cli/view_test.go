package cli

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"strandline/internal/test/live"
)

// served is a `strandline view` that runs behind a script.
type served struct {
	command *exec.Cmd
	address string // up to the path
	secret  string
}

// ask sends a request with a header.
func (s *served) ask(path, header, value string) (*http.Response, error) {
	r, err := http.NewRequest(http.MethodGet, s.address+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set(header, value)
	return http.DefaultClient.Do(r)
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
	var token string
	s.address, token, _ = strings.Cut(strings.TrimSpace(url), "/?t=")
	token, _, _ = strings.Cut(token, "#")
	answer, err := s.ask("/api/enter", "Strandline-Token", token)
	ts.Check(err)
	defer answer.Body.Close()
	secret, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if s.secret = string(secret); answer.StatusCode != http.StatusOK {
		ts.Fatalf("%s is refused: %s", url, secret)
	}
}

// get PATH STATUS TEXT asks for a path, and checks the status and a text in the
// answer. It asks again as long as files are being read.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: get PATH STATUS TEXT")
	}
	s := ts.Value(served{}).(*served)
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	for {
		answer, err := s.ask(args[0], "Strandline-Session", s.secret)
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
// the terminal, and checks the exit status.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: interrupt STATUS [hangup]")
	}
	s := ts.Value(served{}).(*served)
	end := os.Interrupt
	if len(args) > 1 && !signal.Ignored(syscall.SIGHUP) { // as under nohup, which the command inherits
		end = syscall.SIGHUP
	}
	ts.Check(s.command.Process.Signal(end))
	stuck := time.AfterFunc(time.Minute, func() { s.command.Process.Signal(syscall.SIGQUIT) }) // it prints where it waits
	s.command.Wait()
	stuck.Stop()
	if got := strconv.Itoa(s.command.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit status is %s, want %s", got, args[0])
	}
}

// The address of the page is in a file that only its user can read, not in the
// command that opens the browser.
func TestBrowse(t *testing.T) {
	live.Waits(t)
	live.Linux(t) // elsewhere another command opens the browser
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	script := "#!/bin/sh\nstat -c %a \"$1\" > " + seen + ".tmp; echo \"$1\" >> " + seen + ".tmp; cat \"$1\" >> " + seen + ".tmp; mv " + seen + ".tmp " + seen + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", dir)
	done := browse("http://127.0.0.1:1/?t=secret#g=\"a\"")
	var text []byte
	for len(text) == 0 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
		text, _ = os.ReadFile(seen)
	}
	mode, rest, _ := strings.Cut(string(text), "\n")
	path, page, _ := strings.Cut(rest, "\n")
	if mode != "600" || strings.Contains(path, "secret") || !strings.Contains(page, `url=http://127.0.0.1:1/?t=secret#g=&#34;a&#34;"`) {
		t.Errorf("mode %s of %s: %s", mode, path, page)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v", info, err)
	}
	done()
	if _, err := os.Stat(path); err == nil {
		t.Error("it is left")
	}
}

// TestViewRedacts looks for names of the program in all that a saved page holds.
func TestViewRedacts(t *testing.T) {
	live.Sequential(t)
	const folder = "../examples/image-leak"
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
	live.Sequential(t)
	whole, err := os.ReadFile("../torch/snapshot/testdata/w21_writers.json.train.snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("../examples/image-leak/step-4.pickle")
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
		_, stderr, code := run("view", file, "../examples/image-leak/step-2.pickle", "--html", out, "--redact", "both")
		page, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(code, stderr, err)
		}
		content := unpacked(t, page)
		if strings.Contains(content, "acme") || strings.HasPrefix(name, "cut") && !strings.Contains(content, "reading ended at") {
			t.Errorf("%s: the page quotes the file, or does not say that it is damaged: %s", name, stderr)
		}
	}
}

// Source code is read below the current folder, and nowhere else.
func TestCodeHere(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "secret.py", "secret")
	here := filepath.Join(dir, "here")
	if err := os.Mkdir(here, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, here, "train.py", "step()")
	if err := os.Symlink(filepath.Join(dir, "secret.py"), filepath.Join(here, "link.py")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	for path, want := range map[string]string{
		"train.py": "step()", filepath.Join(here, "train.py"): "step()",
		"../secret.py": "", filepath.Join(dir, "secret.py"): "", "link.py": "", "/etc/passwd": "", "": "", ".": "", "none.py": "",
	} {
		if text, err := codeHere(path); string(text) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", path, text, err)
		}
	}
}

// unpacked returns what the parts of a saved page hold.
func unpacked(t *testing.T, page []byte) string {
	t.Helper()
	var out strings.Builder
	_, parts := unpackedParts(t, page)
	for _, part := range parts {
		out.Write(part)
	}
	return out.String()
}

// unpackedParts returns the parts of a saved page, and where the answers are in them: part,
// place in it, length.
func unpackedParts(t *testing.T, page []byte) (index map[string][3]int, parts map[int][]byte) {
	t.Helper()
	parts = map[int][]byte{}
	for _, m := range regexp.MustCompile(`id="saved-(\w+)">([^<]*)<`).FindAllSubmatch(page, -1) {
		plain, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(m[2]))))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(string(m[1])); err == nil {
			parts[n] = plain
		} else if err := json.Unmarshal(plain, &index); err != nil {
			t.Fatal(err)
		}
	}
	return index, parts
}
