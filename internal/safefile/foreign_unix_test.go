//go:build unix

package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// What another user made is not written, in a folder of theirs as in one that all can write
// to: they would own what is in a file, and read what goes through a pipe.
func TestForeignOutputs(t *testing.T) {
	for name, c := range map[string]struct {
		mode  fs.FileMode
		given bool
	}{"our folder": {0o755, false}, "one of all": {0o777, false}, "one like /tmp": {0o777 | fs.ModeSticky, false}, "their folder": {0o755, true}, "theirs, of all": {0o777, true}} {
		dir := t.TempDir()
		file, fifo := write(t, filepath.Join(dir, "file"), "before"), pipe(t, filepath.Join(dir, "pipe"))
		give(t, file, fifo)
		if c.given {
			give(t, dir)
		}
		must(t, os.Chmod(dir, c.mode))
		reader, err := os.OpenFile(fifo, os.O_RDWR|syscall.O_NONBLOCK, 0)
		must(t, err)
		defer reader.Close()
		for kind, writer := range writers {
			want := kind != "append" || c.mode != 0o755 || !c.given // a job's file of a CI system
			if err := writer(file, "after"); errors.Is(err, ErrForeign) != want || err != nil && !want {
				t.Errorf("%s, %s: %v; want it refused: %t", name, kind, err, want)
			}
			if err := writer(fifo, "after"); err == nil {
				t.Errorf("%s, %s: the pipe was written", name, kind)
			}
		}
		for path, good := range map[string]bool{file: c.mode == 0o755 && c.given, fifo: false} {
			if err := Check(path); !errors.Is(err, ErrForeign) {
				t.Errorf("%s: %v", path, err)
			}
			if err := CheckAppend(path); errors.Is(err, ErrForeign) == good {
				t.Errorf("adding to %s: %v", path, err)
			}
		}
		if text, _ := os.ReadFile(file); !strings.HasPrefix(string(text), "before") {
			t.Errorf("%s: %q", name, text)
		}
		must(t, reader.SetReadDeadline(time.Now()))
		if n, err := reader.Read(make([]byte, 9)); n > 0 {
			t.Errorf("%s: the pipe has %d bytes, %v", name, n, err)
		}
	}
}

// A pipe that nobody reads is not waited for without end.
func TestPipeWithoutReader(t *testing.T) {
	live.Sequential(t)
	before := maxPipeWait
	maxPipeWait = 10 * time.Millisecond
	t.Cleanup(func() { maxPipeWait = before })
	fifo := pipe(t, filepath.Join(t.TempDir(), "pipe"))
	t.Cleanup(func() { // ends calls that systems without a poll leave
		if f, err := os.OpenFile(fifo, os.O_RDWR, 0); err == nil {
			f.Close()
		}
	})
	for name, writer := range map[string]func(path, text string) error{"create": writeCreated, "append": writeAppended} {
		if err := writer(fifo, "text"); err == nil || !strings.Contains(err.Error(), "start its reader first") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A link of another user is not followed anywhere on a path.
func TestForeignParents(t *testing.T) {
	real, dir := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(real, "in"), 0o700))
	own, planted := link(t, real, filepath.Join(dir, "own")), link(t, real, filepath.Join(dir, "planted"))
	through := link(t, "planted/in", filepath.Join(dir, "through"))
	give(t, planted)
	for folder, refused := range map[string]bool{
		own: false, own + "/in": false, own + "/in/..": false, planted: true, planted + "/in": true, through: true,
	} {
		writers["new"] = func(path, text string) error {
			f, err := New(path)
			if err != nil {
				return err
			}
			return f.Close()
		}
		writers["make"] = func(path, text string) error {
			d, err := MakeFolder(path)
			if err != nil {
				return err
			}
			return errors.Join(d.Write("text", nil), d.Close())
		}
		for name, writer := range writers {
			path := folder + "/" + name
			if err := writer(path, "text"); errors.Is(err, ErrForeign) != refused || err != nil && !refused {
				t.Errorf("%s to %s: %v; want it refused: %t", name, path, err, refused)
			}
			os.RemoveAll(path)
		}
		delete(writers, "new")
		delete(writers, "make")
	}
	for _, left := range []string{real, filepath.Join(real, "in")} {
		list, err := os.ReadDir(left)
		must(t, err)
		for _, e := range list {
			if e.Name() != "in" {
				t.Errorf("%s has %s", left, e.Name())
			}
		}
	}
}

// Another user exchanges a folder and links to it, without end: nothing is written where
// their links lead.
func TestExchangedParent(t *testing.T) {
	target, dir := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "here"), 0o755), os.Mkdir(filepath.Join(dir, "here", "in"), 0o755), os.Mkdir(filepath.Join(target, "in"), 0o755))
	planted := link(t, target, filepath.Join(dir, "planted"))
	give(t, planted)
	end := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		here, away := filepath.Join(dir, "here"), filepath.Join(dir, "away")
		for {
			select {
			case <-end:
				return
			default:
			}
			os.Rename(here, away)
			os.Rename(planted, here)
			os.Rename(here, planted)
			os.Rename(away, here)
		}
	}()
	written := 0
	for i := range 3000 {
		if writeCreated(filepath.Join(dir, "here", "in", strconv.Itoa(i)), "text") == nil {
			written++
		}
	}
	close(end)
	<-ended
	if list, err := os.ReadDir(filepath.Join(target, "in")); err != nil || len(list) > 0 {
		t.Errorf("%d of %d files were redirected, %v", len(list), written, err)
	}
}

func TestPrivateGroups(t *testing.T) {
	users := [][]string{{"me", "x", "1000", "1000"}, {"alias", "x", "1000", "1000"}, {"other", "x", "1001", "1001"}, {""}}
	for name, c := range map[string]struct {
		users, groups [][]string
		want          bool
	}{
		"one user's":            {users, [][]string{{"me", "x", "1000", ""}, {"lab", "x", "7", "me,other"}}, true},
		"with its user":         {users, [][]string{{"me", "x", "1000", "me,alias"}}, true},
		"in no file":            {nil, nil, true},
		"with a member":         {users, [][]string{{"me", "x", "1000", "me,other"}}, false},
		"with an unknown one":   {users, [][]string{{"me", "x", "1000", "stranger"}}, false},
		"a user's first group":  {append(users, []string{"third", "x", "1002", "1000"}), [][]string{{"me", "x", "1000", ""}}, false},
		"of two names, one bad": {users, [][]string{{"me", "x", "1000", ""}, {"too", "x", "1000", "other"}}, false},
	} {
		if got := private("1000", c.users, c.groups); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestFolderOfOthers(t *testing.T) {
	const same = -1
	for name, c := range map[string]struct {
		mode        fs.FileMode
		user, group int
		want        string
	}{
		"new":                    {0, same, same, ""},
		"ours":                   {0o755, same, same, ""},
		"ours, of a group":       {0o775, same, stranger, "chmod go-w"},
		"ours, of our own group": {0o775, stranger + 1, stranger + 1, ""},
		"ours, of all":           {0o777, same, same, "chmod go-w"},
		"as /tmp":                {0o777 | fs.ModeSticky, same, same, "(mode 0777): give a new folder in it"},
		"theirs":                 {0o755, stranger, stranger, "belongs to another user"},
	} {
		path := filepath.Join(t.TempDir(), "folder", "in")
		if c.mode != 0 {
			must(t, os.MkdirAll(path, 0o700), os.Chmod(path, c.mode))
		}
		if c.user != same || c.group != same {
			if err := os.Chown(path, c.user, c.group); errors.Is(err, fs.ErrPermission) {
				live.Missing(t, "giving files away", err)
			}
		}
		t.Setenv("SUDO_UID", strconv.Itoa(stranger+1))
		d, err := MakeFolder(path)
		if errors.Is(err, ErrForeign) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
		if err != nil {
			continue
		}
		if info, _ := os.Stat(path); c.mode == 0 && info.Mode() != folderMode|fs.ModeDir {
			t.Errorf("%s: %v", name, info.Mode())
		}
		d.Close()
	}
}

// A file that others may change is not read from a folder.
func TestFolderRead(t *testing.T) {
	dir := t.TempDir()
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	write(t, filepath.Join(dir, "own"), "text")
	pipe(t, filepath.Join(dir, "pipe"))
	link(t, "/etc/hostname", filepath.Join(dir, "outside"))
	must(t, os.Chmod(write(t, filepath.Join(dir, "open"), "text"), 0o666))
	for name, want := range map[string]string{
		"own": "", "none": "no such file", "pipe": "not a regular file", "outside": "escapes", "open": "belongs to another user",
	} {
		text, err := folder.Read(name, 4)
		if want == "" && (err != nil || string(text) != "text") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v; want %q", name, text, err, want)
		}
	}
	if _, err := folder.Read("own", 3); err == nil {
		t.Error("a file is read beyond the bound")
	}
	if err := os.Chown(filepath.Join(dir, "own"), stranger, -1); err == nil { // as root
		if _, err := folder.Read("own", 4); !errors.Is(err, ErrForeign) {
			t.Errorf("a file of another user: %v", err)
		}
	}
}
