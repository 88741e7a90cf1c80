package live

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// What tests need beside programs. test.sh puts each of them into STRANDLINE_REQUIRE
// where the machine has it for certain.
var needs = []string{"Linux", "BPF", "ptrace", "reading the memory of another process"}

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
	default:
		Missing(t, what, err)
	}
}

// Missing skips a test for what it needs and the machine does not have, or does not
// allow: why is the reason. It fails the test where STRANDLINE_REQUIRE names that. All
// tests are skipped by this function, but for those that a mark leaves out.
func Missing(t testing.TB, what string, why any) {
	t.Helper()
	if required(what) {
		t.Fatalf("%s is required here: %v", what, why)
	}
	t.Skipf("unsupported: %s: %v", what, why)
}

// Linux skips a test of what only Linux has.
func Linux(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		Missing(t, "Linux", runtime.GOOS)
	}
}

// Given is the value of an environment variable, such as the name of a folder of data
// that is not part of the repository; the test is skipped where it is not set.
func Given(t testing.TB, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		Missing(t, variable, "it is not set")
	}
	return value
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
