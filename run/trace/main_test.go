package trace

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helper is the argument by which this binary becomes a command that ptrace traces.
const helper = "become"

// TestMain fails if a test leaves a goroutine behind.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == helper {
		fmt.Fprintln(os.Stderr, Become(os.Args[2:]))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
