package live

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Settle waits until a thread sleeps in one call of the kernel.
func Settle(t testing.TB, pid, tid int) {
	t.Helper()
	for before, deadline := "", time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		now, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
		if err != nil {
			Missing(t, "the state of another process", err)
		}
		if string(now) == before && !strings.HasPrefix(before, "running") {
			return
		}
		before = string(now)
	}
	t.Fatalf("thread %d does not come to rest", tid)
}
