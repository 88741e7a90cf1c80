package input

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSame notices that a file of a folder was written anew, or that one took the place of another.
func TestSame(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	look := func() *Files {
		fs, err := OpenPaths([]string{dir}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		fs.Close()
		return fs
	}
	for _, name := range []string{"a.pickle", "b.pickle", "run.log"} {
		write(name)
	}
	first := look()
	later := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name string
		do   func() error
		same bool
	}{
		{"nothing", func() error { return nil }, true},
		{"a line of a log", func() error { return os.Chtimes(filepath.Join(dir, "run.log"), later, later) }, true},
		{"a snapshot", func() error { return os.Chtimes(filepath.Join(dir, "b.pickle"), later, later) }, false},
		{"another name", func() error { return os.Rename(filepath.Join(dir, "b.pickle"), filepath.Join(dir, "c.pickle")) }, false},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		if now := look(); now.Same(first) != c.same {
			t.Errorf("%s: same %t", c.name, !c.same)
		}
	}
}
