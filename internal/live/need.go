package live

import (
	"errors"
	"io/fs"
	"testing"
)

// Need skips a test where what it needs is not available on this machine or to
// this user, and fails it for any other error.
func Need(t testing.TB, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
		t.Skipf("unsupported: %s: %v", what, err)
	default:
		t.Fatalf("%s: %v", what, err)
	}
}
