//go:build unix

package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOddFolder judges a snapshot in a folder with links that lead back, a pipe, a socket,
// devices, names that are not UTF-8 or control a terminal, and files that are nothing.
func TestOddFolder(t *testing.T) {
	dir := t.TempDir()
	snapshot, err := os.ReadFile("../torch/snapshot/testdata/w10_nothing.default.state.pickle")
	if err != nil {
		t.Fatal(err)
	}
	const junk = 500
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.pickle", snapshot)
	for i := range junk {
		write(fmt.Sprintf("junk%d.pickle", i), []byte("x"))
	}
	odd := 0
	if os.WriteFile(filepath.Join(dir, "\xff\xfe\x1b[31mred\n\r.pickle"), []byte("x"), 0o600) == nil { // some file systems take no such name
		odd = 1
	}
	write("\x1b]0;title\x07.log", []byte("nothing"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.pickle"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := net.Listen("unix", filepath.Join(dir, "s")); err == nil {
		defer l.Close()
	}
	for name, to := range map[string]string{"self.pickle": "self.pickle", "up": "..", "dot": ".", "zero.pickle": "/dev/zero", "nowhere.pickle": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"diagnose", dir}, {"compare", dir}, {"view", "--html", filepath.Join(t.TempDir(), "page.html"), dir}} {
		stdout, stderr, code := run(args...)
		if code == 2 && args[0] == "diagnose" {
			t.Errorf("%s: exit status %d: %s", args[0], code, stderr)
		}
		if strings.ContainsAny(stdout+stderr, "\x1b\x07\r") {
			t.Errorf("%s: names control the terminal: %q", args[0], stdout+stderr)
		}
		if lines := strings.Count(stderr, "\n"); lines > 2*maxAlike {
			t.Errorf("%s: %d lines on what is passed over", args[0], lines)
		}
	}
	if _, stderr, _ := run("diagnose", dir); !strings.Contains(stderr, fmt.Sprintf("%d more files: skipped", junk+odd-maxAlike)) {
		t.Errorf("what is passed over is not counted:\n%s", stderr)
	}
}
