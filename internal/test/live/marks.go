package live

import (
	"strings"
	"testing"
)

// Marks say in a test how it may be run: test.sh knows no names of tests.

// retry begins the line by which a failed test asks for a second attempt. test.sh
// looks for it, with the name of the test behind it.
const retry = "waits for other processes: "

// Waits marks a test that waits for other processes: the machine can keep them from
// doing their part in time. test.sh runs it a second time if it fails.
func Waits(t testing.TB) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(retry + name)
		}
	})
}

// Traces marks a test that watches processes for seconds. What a busy machine keeps from
// happening cannot be seen: test.sh runs packages with such tests one after another.
// -short leaves them out, but for the race detector, which short tests are for, too.
func Traces(t testing.TB) {
	t.Helper()
	Waits(t)
	if testing.Short() && !Raced {
		t.Skip("-short leaves out tests that trace processes")
	}
}

// Concurrent marks a test of goroutines that another package starts: test.sh runs its
// package under the race detector, as it does those that start some themselves.
func Concurrent(testing.TB) {}

// Sequential marks a test in which nothing runs at once, in a package whose other tests
// have goroutines: the race detector leaves it out.
func Sequential(t testing.TB) {
	t.Helper()
	Unraced(t, "nothing runs at once")
}

// Unraced marks a test that the race detector leaves out, and why.
func Unraced(t testing.TB, why string) {
	t.Helper()
	if Raced {
		t.Skip("the race detector leaves it out: " + why)
	}
}
