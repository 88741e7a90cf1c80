//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"strandline/host/store/series"
	"strandline/internal/safefile"
	"strandline/internal/test/live"
	"strandline/record"
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

func mustAll(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Pipes and devices in a folder that is named, in the place of files that strandline looks
// for by itself, are not waited for.
func TestImplicitFilesAreRegular(t *testing.T) {
	snapshot, err := os.ReadFile("../examples/image-leak/step-4.pickle")
	mustAll(t, err)
	for _, kind := range []string{"pipe", "device", "link"} {
		dir := t.TempDir()
		inner := filepath.Join(dir, "20260101-000000.000")
		mustAll(t, os.MkdirAll(filepath.Join(dir, ".strandline"), 0o700), os.Mkdir(inner, 0o700))
		var files []string
		for _, name := range []string{"a.pickle", "b.pickle"} {
			file := filepath.Join(inner, name)
			files = append(files, file)
			mustAll(t, os.WriteFile(file, snapshot, 0o600))
		}
		for _, path := range []string{filepath.Join(dir, record.ManifestName), filepath.Join(dir, ".strandline", "pid1-0.jsonl"), filepath.Join(inner, record.ManifestName), filepath.Join(inner, "c.pickle")} {
			switch kind {
			case "pipe":
				err = syscall.Mkfifo(path, 0o600)
			case "device":
				err = os.Symlink("/dev/zero", path)
			case "link":
				err = os.Symlink("c.pickle", path)
			}
			mustAll(t, err)
		}
		for _, args := range [][]string{{"diagnose", dir}, append([]string{"diagnose"}, files...), append([]string{"compare"}, files...)} {
			if stdout, stderr, code := run(args...); code == exitUsage || stdout == "" {
				t.Errorf("%s: %v: exit status %d, %s", kind, args, code, stderr)
			}
		}
		if _, stderr, code := run("record", "--status", dir); code != exitUsage || !strings.Contains(stderr, record.ManifestName) {
			t.Errorf("%s: exit status %d, %s", kind, code, stderr)
		}
	}
}

// A recording is not written into a folder of another user, who could put links into it,
// and the command is not run.
func TestFolderOfAnother(t *testing.T) {
	for _, args := range [][]string{{"record", "-o"}, {"check", "-o"}} {
		dir, outside := t.TempDir(), t.TempDir()
		target, ran := filepath.Join(outside, "target"), filepath.Join(outside, "ran")
		mustAll(t, os.WriteFile(target, []byte("before"), 0o600), os.Mkdir(filepath.Join(dir, ".strandline"), 0o777))
		for _, name := range []string{"strandline.json.tmp", ".strandline/attempt"} {
			path := filepath.Join(dir, name)
			mustAll(t, os.Symlink(target, path))
			chown(t, path, 12345, 12345)
		}
		chown(t, filepath.Join(dir, ".strandline"), 12345, 12345)
		chown(t, dir, 12345, 12345)
		_, stderr, code := run(append(slices.Clone(args), dir, "--", "touch", ran)...)
		if code != exitUsage || !strings.Contains(stderr, "belongs to another user (12345)") || !strings.Contains(stderr, "give a new folder") {
			t.Errorf("%v: exit status %d, %s", args, code, stderr)
		}
		if _, err := os.Lstat(ran); err == nil {
			t.Errorf("%v: the command ran", args)
		}
		if text, _ := os.ReadFile(target); string(text) != "before" {
			t.Errorf("%v: wrote %q through a link", args, text)
		}
	}
}

// A recording is not written where others can put links and exchange files.
func TestFolderOfAll(t *testing.T) {
	for _, args := range [][]string{{"record", "-o"}, {"check", "-o"}, {"check", "--case", "a=true", "-o"}} {
		dir, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
		mustAll(t, os.Chmod(dir, 0o777))
		args := append(slices.Clone(args), dir)
		if !slices.Contains(args, "--case") {
			args = append(args, "--", "touch", ran)
		}
		_, stderr, code := run(args...)
		if code != exitUsage || !strings.Contains(stderr, "chmod go-w") {
			t.Errorf("%v: exit status %d, %s", args, code, stderr)
		}
		if _, err := os.Lstat(ran); err == nil {
			t.Errorf("%v: the command ran", args)
		}
	}
}

// A report is not written into a file or a pipe that another user made for it.
func TestForeignFiles(t *testing.T) {
	step := "../examples/image-leak/step-4.pickle"
	for _, kind := range []string{"file", "pipe"} {
		dir := t.TempDir()
		path, ran := filepath.Join(dir, kind), filepath.Join(t.TempDir(), "ran")
		if kind == "pipe" {
			mustAll(t, syscall.Mkfifo(path, 0o666))
		} else {
			mustAll(t, os.WriteFile(path, nil, 0o666))
		}
		chown(t, path, 12345, 12345)
		chown(t, dir, 12345, 12345)
		for _, args := range [][]string{
			{"check", "--summary", path, "--", "touch", ran}, {"check", "--junit", path, "--", "touch", ran}, {"check", "--baseline", path, "--update-baseline", "--", "touch", ran},
			{"view", step, "--html", path}, {"export", step, "--to", "folded", "-o", path},
		} {
			if kind == "file" && args[1] == "--summary" {
				continue // it may add to the file of a CI system
			}
			if _, stderr, code := run(args...); code != exitUsage || !strings.Contains(stderr, "belongs to another user") {
				t.Errorf("%v: exit status %d, %s", args, code, stderr)
			}
		}
		if info, err := os.Stat(path); err != nil || info.Size() != 0 {
			t.Errorf("%v, %v", info, err)
		}
		if _, err := os.Lstat(ran); err == nil {
			t.Error("the command ran")
		}
	}
}

// In a folder of our own links that others could plant are not followed, and what is
// written is ours alone to read.
func TestPlantedLinks(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir, target := filepath.Join(t.TempDir(), "recording"), filepath.Join(t.TempDir(), "target")
	mustAll(t, os.WriteFile(target, []byte("before"), 0o600), os.MkdirAll(filepath.Join(dir, ".strandline"), 0o700))
	for _, name := range []string{"strandline.json.tmp", ".strandline/attempt"} {
		path := filepath.Join(dir, name)
		mustAll(t, os.Symlink(target, path))
		chown(t, path, 12345, 12345)
	}
	if _, stderr, code := run("record", "-q", "-o", dir, "--", "true"); code != 0 {
		t.Errorf("exit status %d, %s", code, stderr)
	}
	if text, _ := os.ReadFile(target); string(text) != "before" {
		t.Errorf("wrote %q through a link", text)
	}
	info, err := os.Lstat(filepath.Join(dir, record.ManifestName))
	mustAll(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("the manifest has the mode %v", info.Mode())
	}
}

// Files that a user names are not written through links of another user.
func TestForeignLinks(t *testing.T) {
	dir, target := t.TempDir(), filepath.Join(t.TempDir(), "target")
	link, ran := filepath.Join(dir, "link"), filepath.Join(dir, "ran")
	mustAll(t, os.WriteFile(target, []byte("before"), 0o600), os.Symlink(target, link))
	chown(t, link, 12345, 12345)
	step := "../examples/image-leak/step-4.pickle"
	for _, args := range [][]string{
		{"check", "--summary", link, "--", "touch", ran}, {"check", "--junit", link, "--", "touch", ran},
		{"view", step, "--html", link}, {"export", step, "--to", "folded", "-o", link}, {"export", step, "--to", "sqlite", "-o", link},
	} {
		if _, stderr, code := run(args...); code != exitUsage || !strings.Contains(stderr, "link that belongs to another user") {
			t.Errorf("%v: exit status %d, %s", args, code, stderr)
		}
	}
	if w, err := series.Open(link, 1<<20); !errors.Is(err, safefile.ErrForeign) {
		t.Error(w, err)
	}
	if text, _ := os.ReadFile(target); string(text) != "before" {
		t.Errorf("wrote %q through a link", text)
	}
	if _, err := os.Lstat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the command ran")
	}
}

// The first interrupt ends a command that waits for the other end of a pipe, also one that
// otherwise reports what it has.
func TestInterruptAtPipe(t *testing.T) {
	for _, args := range [][]string{
		{"check", "--baseline", "PIPE", "--", "true"}, {"check", "--junit", "PIPE", "--metric", "host", "--", "true"},
		{"diagnose", "PIPE"}, {"view", "../examples/image-leak/step-4.pickle", "--html", "PIPE"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel() // each waits
			fifo := filepath.Join(t.TempDir(), "pipe")
			mustAll(t, syscall.Mkfifo(fifo, 0o600))
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "PIPE", fifo)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop := time.AfterFunc(2*time.Second, cancel) // by then it waits, or has yet to
			defer stop.Stop()
			var out, messages bytes.Buffer
			code := Main(&Env{args: args, stdout: &out, stderr: &messages, context: ctx, getenv: func(string) string { return "" }})
			if code == exitOK || !strings.Contains(messages.String(), "interrupted") && !strings.Contains(messages.String(), "canceled") {
				t.Errorf("%v: exit status %d, %s", args, code, &messages)
			}
		})
	}
}
