package live

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What tests need beside programs. test.sh puts each of them into STRANDLINE_REQUIRE
// where the machine has it for certain.
var needs = []string{"BPF", "ptrace", "reading the memory of another process"}

// Need skips a test where what it needs is not available on this machine or to
// this user, and fails it for any other error. What STRANDLINE_REQUIRE names, a list
// with commas, is known to be available: the test fails where it is missing.
func Need(t testing.TB, what string, err error) {
	t.Helper()
	if !slices.Contains(needs, what) {
		t.Fatalf("%q is not on the list of what tests need", what)
	}
	need(t, what, err)
}

func need(t testing.TB, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, exec.ErrNotFound):
		t.Fatalf("%s: %v", what, err)
	case required(what):
		t.Fatalf("%s is required here: %v", what, err)
	default:
		t.Skipf("unsupported: %s: %v", what, err)
	}
}

// Tool is the path of a program that a test runs; where it is not installed, the
// test is skipped as by [Need].
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	need(t, name, err)
	return path
}

func required(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("STRANDLINE_REQUIRE"), ","), what)
}
