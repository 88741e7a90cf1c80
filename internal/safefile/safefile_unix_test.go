//go:build unix

package safefile

import (
	"context"
	"errors"
	"io"
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

const stranger = 12345

// give gives a file or link to another user, or skips where that is not permitted.
func give(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		err := os.Lchown(path, stranger, stranger)
		if errors.Is(err, fs.ErrPermission) {
			live.Missing(t, "giving files away", err)
		}
		must(t, err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func pipe(t *testing.T, path string) string {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
	return path
}

func link(t *testing.T, to, path string) string {
	t.Helper()
	must(t, os.Symlink(to, path))
	return path
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "file"), "text")
	loop := link(t, "loop", filepath.Join(dir, "loop"))
	for path, want := range map[string]string{
		pipe(t, filepath.Join(dir, "pipe")):            "not a regular file",
		link(t, "pipe", filepath.Join(dir, "to-pipe")): "not a regular file",
		"/dev/zero":                "not a regular file",
		dir:                        "not a regular file",
		filepath.Join(dir, "none"): "no such file",
		loop:                       "too many",
		write(t, filepath.Join(dir, "large"), "longer"): "has 6 bytes, more than the 4",
	} {
		if f, err := Open(path, 4); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v; want an error with %q", path, f, err, want)
		}
	}
	for _, path := range []string{file, link(t, "file", filepath.Join(dir, "own")), link(t, "own", filepath.Join(dir, "second"))} {
		if text, err := ReadFile(path, 4); err != nil || string(text) != "text" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}

// A file that grows after it was opened is not read beyond the bound.
func TestReadAllIsBounded(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "file"), "text")
	f, err := Open(path, 4)
	must(t, err)
	defer f.Close()
	write(t, path, "longer")
	if text, err := ReadAll(f, 4); err == nil || !strings.Contains(err.Error(), "more than 4 bytes") {
		t.Errorf("%q, %v", text, err)
	}
}

// A link of another user leads to files of theirs, and not to ours.
func TestOpenFollowsOwnersLinks(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := write(t, filepath.Join(dir, "ours"), "text"), write(t, filepath.Join(dir, "theirs"), "text")
	toOurs, toTheirs := link(t, ours, filepath.Join(dir, "to-ours")), link(t, theirs, filepath.Join(dir, "to-theirs"))
	through := link(t, "to-ours", filepath.Join(dir, "through"))
	give(t, theirs, toOurs, toTheirs)
	for path, refused := range map[string]bool{ours: false, theirs: false, toTheirs: false, toOurs: true, through: true} {
		text, err := ReadFile(path, 4)
		if refused != errors.Is(err, ErrForeign) || !refused && string(text) != "text" {
			t.Errorf("%s: %q, %v; want it refused: %t", filepath.Base(path), text, err, refused)
		}
	}
}

func TestOpenNamedIsInterrupted(t *testing.T) {
	for what, open := range map[string]func(context.Context, string) error{
		"reading": func(ctx context.Context, path string) error { _, err := OpenNamed(ctx, path); return err },
		"writing": func(ctx context.Context, path string) error { _, err := Create(ctx, path); return err },
		"adding":  func(ctx context.Context, path string) error { _, err := Append(ctx, path); return err },
	} {
		fifo := pipe(t, filepath.Join(t.TempDir(), "pipe"))
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := open(ctx, fifo); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
		stop()
		// The call of the kernel goes on until the pipe has another end.
		other, err := os.OpenFile(fifo, os.O_RDWR, 0)
		must(t, err)
		t.Cleanup(func() { other.Close() })
	}
}

func writeCreated(path, text string) error {
	o, err := Create(context.Background(), path)
	if err != nil {
		return err
	}
	defer o.Close()
	if _, err := io.WriteString(o, text); err != nil {
		return err
	}
	return o.Commit()
}

func writeNamed(path, text string) error {
	o, err := CreateNamed(path)
	if err != nil {
		return err
	}
	defer o.Close()
	if err := os.WriteFile(o.Name(), []byte(text), 0); err != nil {
		return err
	}
	return o.Commit()
}

func writeAppended(path, text string) error {
	f, err := Append(context.Background(), path)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}

func writeEdited(path, text string) error {
	f, err := Edit(path)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}

var writers = map[string]func(path, text string) error{"create": writeCreated, "named": writeNamed, "append": writeAppended, "edit": writeEdited}

func TestNewFilesArePrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	for name, writer := range writers {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		must(t, writer(path, "text"))
		info, err := os.Lstat(path)
		must(t, err)
		if text, _ := os.ReadFile(path); info.Mode() != fileMode || string(text) != "text" {
			t.Errorf("%s: %v, %q", name, info.Mode(), text)
		}
		if list, _ := os.ReadDir(dir); len(list) != 1 {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// A file that is replaced keeps its mode and its owner, and so do the links to it.
func TestReplacedKeepsMode(t *testing.T) {
	live.Sequential(t)
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o666, 0o755} {
		dir := t.TempDir()
		path := write(t, filepath.Join(dir, "out"), "before")
		must(t, os.Chmod(path, mode), writeCreated(link(t, "out", filepath.Join(dir, "link")), "after"))
		info, err := os.Lstat(path)
		must(t, err)
		if text, _ := os.ReadFile(path); info.Mode() != mode || string(text) != "after" {
			t.Errorf("%v, %q; want %v", info.Mode(), text, mode)
		}
	}
}

// Root replaces a file of the user who called sudo by one of theirs.
func TestReplacedKeepsOwner(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "out"), "before")
	give(t, path)
	t.Setenv("SUDO_UID", strconv.Itoa(stranger))
	must(t, writeCreated(path, "after"))
	info, err := os.Stat(path)
	must(t, err)
	if s := info.Sys().(*syscall.Stat_t); s.Uid != stranger || s.Gid != stranger || info.Mode() != fileMode {
		t.Errorf("it belongs to %d and %d, with the mode %v", s.Uid, s.Gid, info.Mode())
	}
}

// Links that another user planted are not followed, wherever they are, nor are files of
// theirs touched where everyone may write.
func TestForeignIsRefused(t *testing.T) {
	live.Sequential(t)
	for name, writer := range writers {
		dir, shared := t.TempDir(), t.TempDir()
		target := write(t, filepath.Join(t.TempDir(), "target"), "before")
		own, planted := link(t, target, filepath.Join(dir, "own")), link(t, target, filepath.Join(dir, "planted"))
		through := link(t, "planted", filepath.Join(dir, "through"))
		dangling := link(t, filepath.Join(t.TempDir(), "new"), filepath.Join(dir, "dangling"))
		theirs := write(t, filepath.Join(shared, "theirs"), "before")
		give(t, planted, dangling, theirs)
		must(t, os.Chmod(shared, 0o777|fs.ModeSticky))
		for path, refused := range map[string]bool{own: false, planted: true, through: true, dangling: true, theirs: true, filepath.Join(shared, "new"): false} {
			write(t, target, "before")
			err := writer(path, "after!")
			if errors.Is(err, ErrForeign) != refused || err != nil && !refused {
				t.Errorf("%s %s: %v; want it refused: %t", name, filepath.Base(path), err, refused)
			}
			for _, kept := range []string{target, theirs} {
				if text, _ := os.ReadFile(kept); refused && string(text) != "before" {
					t.Errorf("%s %s: wrote %q to %s", name, filepath.Base(path), text, kept)
				}
			}
		}
	}
}

// The user who calls sudo is trusted by root.
func TestSudo(t *testing.T) {
	target := write(t, filepath.Join(t.TempDir(), "target"), "")
	path := link(t, target, filepath.Join(t.TempDir(), "link"))
	give(t, path)
	t.Setenv("SUDO_UID", "12345")
	must(t, writeCreated(path, "text"))
}

// A file that has a second name in a folder of another user may be anybody's.
func TestSecondName(t *testing.T) {
	dir := t.TempDir()
	target := write(t, filepath.Join(dir, "target"), "before")
	path := filepath.Join(dir, "name")
	must(t, os.Link(target, path), writeAppended(path, ""))
	give(t, dir)
	if err := writeAppended(path, "after"); err == nil || !strings.Contains(err.Error(), "second name") {
		t.Error(err)
	}
	must(t, writeCreated(path, "after"))
	if text, _ := os.ReadFile(target); string(text) != "before" {
		t.Errorf("%q", text)
	}
}

func TestSpecialOutputs(t *testing.T) {
	must(t, writeCreated("/dev/null", "text"), writeAppended("/dev/null", "text"))
	fifo := pipe(t, filepath.Join(t.TempDir(), "pipe"))
	for name, writer := range map[string]func(path, text string) error{"create": writeCreated, "append": writeAppended} {
		read := make(chan string)
		go func() {
			text, _ := os.ReadFile(fifo)
			read <- string(text)
		}()
		must(t, writer(fifo, "text"))
		if got := <-read; got != "text" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, writer := range map[string]func(path, text string) error{"named": writeNamed, "edit": writeEdited} {
		if err := writer(fifo, "text"); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	for name, writer := range writers {
		for _, path := range []string{dir, dir + "/", filepath.Join(dir, "out") + "/", dir + "/."} {
			if err := writer(path, "text"); err == nil {
				t.Errorf("%s wrote to %s", name, path)
			}
		}
	}
}

// A descriptor is written where it stands.
func TestDescriptor(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must(t, err)
	defer f.Close()
	_, err = f.WriteString("before ")
	must(t, err)
	place := filepath.Join("/dev/fd", strconv.Itoa(int(f.Fd())))
	if _, err := os.Stat(place); err != nil {
		live.Missing(t, "/dev/fd", err)
	}
	must(t, writeCreated(place, "during "))
	_, err = f.WriteString("after")
	must(t, err)
	if text, _ := os.ReadFile(f.Name()); string(text) != "before during after" {
		t.Errorf("%q", text)
	}
}

// What is closed without being whole leaves nothing.
func TestDiscarded(t *testing.T) {
	dir := t.TempDir()
	for name, open := range map[string]func(string) (*Output, error){"create": func(p string) (*Output, error) { return Create(t.Context(), p) }, "named": CreateNamed} {
		o, err := open(filepath.Join(dir, "out"))
		must(t, err)
		_, err = io.WriteString(o, "text")
		must(t, err, o.Close(), o.Close())
		if err := o.Commit(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		if list, _ := os.ReadDir(dir); len(list) > 0 {
			t.Errorf("%s left %v", name, list)
		}
	}
}

// The parts of files that killed processes left are removed, and no others.
func TestPartsAreSwept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	held, err := CreateNamed(path)
	must(t, err)
	left := write(t, path+".0123456789abcdef.tmp", "")
	theirs := write(t, path+".0123456789abcdee.tmp", "")
	kept := []string{held.Name(), theirs, write(t, path+".tmp", ""), write(t, path+".0123456789abcde.tmp", ""), write(t, filepath.Join(dir, "in.0123456789abcdef.tmp"), "")}
	give(t, theirs)
	must(t, writeNamed(path, "text"))
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Error("what was left is there:", err)
	}
	for _, path := range kept {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	must(t, held.Close())
}

// A file that is killed leaves nothing where files can be without a name.
func TestUnnamed(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	if f, _, err := anonymous(root, dir, fileMode); err != nil {
		live.Missing(t, "files without a name", err)
	} else {
		f.Close()
	}
	o, err := Create(t.Context(), filepath.Join(dir, "out"))
	must(t, err)
	defer o.Close()
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Error(list)
	}
}

// A file can be written on in its place.
func TestKeep(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "out"), "before")
	o, err := Create(t.Context(), path)
	must(t, err)
	_, err = io.WriteString(o, "one ")
	must(t, err)
	f, err := o.Keep()
	must(t, err)
	_, err = io.WriteString(f, "two")
	must(t, err, f.Close())
	if text, _ := os.ReadFile(path); string(text) != "one two" {
		t.Errorf("%q", text)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file, planted := write(t, filepath.Join(dir, "file"), "before"), link(t, "file", filepath.Join(dir, "planted"))
	give(t, planted)
	for path, good := range map[string]bool{
		file: true, filepath.Join(dir, "new"): true, pipe(t, filepath.Join(dir, "pipe")): true, "/dev/null": true, "/dev/fd/1": true,
		planted: false, dir: false, filepath.Join(dir, "none", "new"): false, filepath.Join(file, "new"): false,
	} {
		if err := Check(path); (err == nil) != good {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, _ := os.ReadFile(file); string(text) != "before" {
		t.Errorf("%q", text)
	}
	if list, _ := os.ReadDir(dir); len(list) != 3 {
		t.Error(list)
	}
}

func TestNew(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	for _, path := range []string{write(t, filepath.Join(dir, "file"), ""), link(t, target, filepath.Join(dir, "link"))} {
		if _, err := New(path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	f, err := New(target)
	must(t, err, f.Close())
}

// Nothing in a folder leads out of it.
func TestFolderIsClosed(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	target := write(t, filepath.Join(outside, "target"), "before")
	link(t, target, filepath.Join(dir, "link"))
	link(t, outside, filepath.Join(dir, "folder"))
	d, err := MakeFolder(dir)
	must(t, err)
	defer d.Close()
	if _, err := d.Create("link"); !errors.Is(err, fs.ErrExist) {
		t.Error("create:", err)
	}
	if err := d.Claim("link", []byte("after")); !errors.Is(err, fs.ErrExist) {
		t.Error("claim:", err)
	}
	if _, err := d.Append("link"); !errors.Is(err, ErrNotRegular) {
		t.Error("append:", err)
	}
	for _, name := range []string{"folder/new", "../new"} {
		if _, err := d.Create(name); err == nil {
			t.Error("created", name)
		}
		if err := d.Replace(name, nil); err == nil {
			t.Error("replaced", name)
		}
		if _, err := d.Append(name); err == nil {
			t.Error("appended to", name)
		}
	}
	if in, err := d.Folder("folder"); err == nil {
		t.Error("it opened", in.Path())
	}
	must(t, d.Replace("link", []byte("after")))
	info, err := os.Lstat(filepath.Join(dir, "link"))
	must(t, err)
	if text, _ := os.ReadFile(target); string(text) != "before" || info.Mode() != fileMode {
		t.Errorf("%q, %v", text, info.Mode())
	}
	if list, _ := os.ReadDir(outside); len(list) != 1 {
		t.Error(list)
	}
}

// What all are to read is not written through links either.
func TestSharedFolder(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "folder")
	target := write(t, filepath.Join(t.TempDir(), "target"), "before")
	d, err := MakeSharedFolder(dir)
	must(t, err)
	defer d.Close()
	link(t, target, filepath.Join(dir, "file"))
	in, err := d.Folder("in")
	must(t, err, in.Link("file", "alias"), in.Write("file", nil), in.Close(), d.Replace("file", []byte("after")))
	for path, want := range map[string]fs.FileMode{dir: 0o755 | fs.ModeDir, filepath.Join(dir, "in"): 0o755 | fs.ModeDir, filepath.Join(dir, "in", "alias"): 0o644, filepath.Join(dir, "file"): 0o644} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if text, _ := os.ReadFile(target); string(text) != "before" {
		t.Errorf("%q", text)
	}
	give(t, dir)
	theirs, err := MakeSharedFolder(dir)
	must(t, err, theirs.Close())
}

func TestFolderAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder")
	d, err := MakeFolder(path)
	must(t, err)
	if same, err := d.Reopen(); same != d || err != nil {
		t.Error(same, err)
	}
	must(t, os.Remove(path))
	d, err = d.Reopen()
	must(t, err, d.Write("name", nil))
	if _, err := os.Lstat(filepath.Join(path, "name")); err != nil {
		t.Error(err)
	}
	must(t, os.Rename(path, path+" away"), os.Mkdir(path, 0o700))
	if _, err := d.Reopen(); err == nil {
		t.Error("it was replaced, which nobody noticed")
	}
	must(t, d.Close())
}

// Of many that claim a name one has it, and all see it whole.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	results := make(chan error)
	const many = 20
	for range many {
		go func() {
			d, err := MakeFolder(filepath.Join(dir, "folder"))
			if err == nil {
				err = d.Claim("name", []byte("text"))
				d.Close()
			}
			if text, _ := os.ReadFile(filepath.Join(dir, "folder", "name")); string(text) != "text" {
				err = errors.Join(err, errors.New("it is not whole"))
			}
			results <- err
		}()
	}
	won := 0
	for range many {
		switch err := <-results; {
		case err == nil:
			won++
		case !errors.Is(err, fs.ErrExist):
			t.Error(err)
		}
	}
	if list, _ := os.ReadDir(filepath.Join(dir, "folder")); won != 1 || len(list) != 1 {
		t.Errorf("%d claimed it, %v", won, list)
	}
}

// What a killed process left is removed, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	held, err := MakeTemp("kind")
	must(t, err)
	left, err := MakeTemp("kind")
	must(t, err, left.held.Close(), os.MkdirAll(filepath.Join(left.Path, "in"), 0o700)) // as the end of a process closes it
	outside := write(t, filepath.Join(t.TempDir(), "outside"), "")
	link(t, filepath.Dir(outside), filepath.Join(left.Path, "link"))
	link(t, filepath.Dir(outside), filepath.Join(dir, "kind-link"))
	theirs, open := filepath.Join(dir, "kind-theirs"), filepath.Join(dir, "kind-open")
	must(t, os.Mkdir(theirs, 0o700), os.Mkdir(open, 0o755), os.Mkdir(filepath.Join(dir, "kindred"), 0o700))
	give(t, theirs)
	another, err := MakeTemp("kind")
	must(t, err)
	if _, err := os.Lstat(left.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("what was left is there:", err)
	}
	for _, path := range []string{held.Path, another.Path, theirs, open, outside, filepath.Join(dir, "kind-link"), filepath.Join(dir, "kindred")} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	must(t, held.Remove(), another.Remove())
}
