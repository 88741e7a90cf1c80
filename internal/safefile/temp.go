package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Temp is a folder for temporary files, which only this user can enter.
type Temp struct {
	Path string
	held *os.File // the folder, locked as long as the process lives
}

// MakeTemp makes a temporary folder whose name begins with kind. Those that killed
// processes of this user left are removed: nobody holds the locks of them.
func MakeTemp(kind string) (*Temp, error) {
	sweep(kind)
	for range 100 {
		t, err := makeTemp(kind)
		if err == nil || !errors.Is(err, errSwept) {
			return t, err
		}
	}
	return nil, errSwept
}

// errSwept is the error for a folder that another process removed before it was held.
var errSwept = errors.New("it was removed at once")

// errHeld is the error for a file that another process has locked.
var errHeld = errors.New("another process holds it")

func makeTemp(kind string) (*Temp, error) {
	path, err := os.MkdirTemp("", kind+"-")
	if err != nil {
		return nil, fmt.Errorf("no temporary folder can be made in %s, which TMPDIR names if it is set: %w", os.TempDir(), errors.Unwrap(err))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errSwept
	}
	info, err := os.Lstat(path)
	if own, stat := f.Stat(); lock(f) == errHeld || err != nil || stat != nil || !os.SameFile(info, own) {
		f.Close()
		return nil, errSwept
	}
	return &Temp{path, f}, nil
}

// Remove removes the folder with all that is in it.
func (t *Temp) Remove() error { return errors.Join(os.RemoveAll(t.Path), t.held.Close()) }

// sweep removes the temporary folders of a kind that no process holds.
func sweep(kind string) {
	dir := os.TempDir()
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), kind+"-") {
			remove(filepath.Join(dir, e.Name()))
		}
	}
}

// remove removes a temporary folder of this user unless a process holds it. Nobody else
// can put something in its place: it is theirs alone to rename, where everyone may write.
func remove(path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeDir|folderMode || !mine(info) {
		return
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return
	}
	defer root.Close()
	f, err := root.Open(".")
	if err != nil {
		return
	}
	defer f.Close()
	if own, err := f.Stat(); err != nil || !os.SameFile(info, own) || lock(f) != nil {
		return
	}
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		root.RemoveAll(name)
	}
	os.Remove(path)
}
