//go:build unix

package live

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Alone runs a test in a process of its own, in which it may change the limits. It returns
// true there, and false in this process, once that has ended.
func Alone(t *testing.T) bool {
	t.Helper()
	const alone = "STRANDLINE_TEST_ALONE"
	if os.Getenv(alone) == t.Name() {
		return true
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), alone+"="+t.Name())
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// Exhaust takes all descriptors that this process may have, which must be [Alone], until
// release is called.
func Exhaust(t *testing.T) (release func()) {
	t.Helper()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}); err != nil {
		t.Fatal(err)
	}
	var taken []int
	for {
		fd, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
		if errors.Is(err, syscall.EMFILE) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, fd)
	}
	return func() {
		for _, fd := range taken {
			syscall.Close(fd)
		}
	}
}
