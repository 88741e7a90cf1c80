package live

import (
	"os"
	"runtime"
	"testing"
)

// OwnFolder makes a folder that only this user can write to, like those above it: the
// folder for temporary files is everybody's.
func OwnFolder(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		Missing(t, "folders of users by mode", runtime.GOOS)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(cache, "strandline-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
