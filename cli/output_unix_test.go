//go:build unix

package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"strandline/internal/test/live"
)

// chown gives a file to another user, or skips where that is not permitted.
func chown(t *testing.T, path string, uid, gid int) {
	t.Helper()
	err := os.Lchown(path, uid, gid)
	if errors.Is(err, fs.ErrPermission) {
		live.Missing(t, "giving files away", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func replace(path string) error {
	g := &globals{env: &Env{}}
	_, err := g.create(context.Background(), path, func(w io.Writer) error {
		_, err := io.WriteString(w, "after")
		return err
	})
	return err
}

// A file that is replaced keeps its mode, whatever the mask is.
func TestReplacedKeepsMode(t *testing.T) {
	live.Sequential(t)
	file := filepath.Join(t.TempDir(), "out")
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o666, 0o755} {
		if err := errors.Join(os.WriteFile(file, []byte("before"), 0o600), os.Chmod(file, mode), replace(file)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode() != mode || info.Size() != int64(len("after")) {
			t.Errorf("%v, %v; want the mode %v", info, err, mode)
		}
	}
}

func TestReplacedKeepsOwner(t *testing.T) {
	live.Sequential(t)
	file := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	chown(t, file, 12345, 23456)
	if err := replace(file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 12345 || s.Gid != 23456 || info.Mode() != 0o600 {
		t.Errorf("it belongs to %d and %d, with the mode %v", s.Uid, s.Gid, info.Mode())
	}
}

// What another user has put into a directory such as /tmp is not followed and not
// replaced; elsewhere, and what the directory's owner or oneself put there, is.
func TestForeignOutput(t *testing.T) {
	live.Sequential(t)
	dir := t.TempDir()
	target := filepath.Join(t.TempDir(), "target")
	link, file, own := filepath.Join(dir, "link"), filepath.Join(dir, "file"), filepath.Join(dir, "own")
	second := filepath.Join(t.TempDir(), "second")
	err := errors.Join(os.WriteFile(target, nil, 0o600), os.WriteFile(file, nil, 0o600), os.Symlink(target, link), os.Symlink(target, own), os.Symlink(link, second))
	if err != nil {
		t.Fatal(err)
	}
	chown(t, link, 12345, 12345)
	chown(t, file, 12345, 12345)
	for _, path := range []string{link, file, own, second} {
		if err := replace(path); err != nil {
			t.Errorf("in a directory of one's own: %v", err)
		}
	}
	if err := os.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for path, refused := range map[string]bool{link: true, file: true, second: true, own: false, filepath.Join(dir, "new"): false} {
		if err := os.WriteFile(target, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := replace(path)
		if got := err != nil && strings.Contains(err.Error(), "belongs to another user"); got != refused || err != nil && !got {
			t.Errorf("%s: %v, want it refused: %t", filepath.Base(path), err, refused)
		}
		if text, _ := os.ReadFile(target); refused && string(text) != "before" {
			t.Errorf("%s: what it leads to is overwritten", filepath.Base(path))
		}
	}
}
