package record

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

// asRoot skips a test that acts as several users where this user cannot.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		live.Missing(t, "root", fs.ErrPermission)
	}
}

// TestModuleFolder places the module where only this user can write, and nowhere else.
func TestModuleFolder(t *testing.T) {
	own, open := live.OwnFolder(t), ""
	if os.Geteuid() == 0 && runtime.GOOS == "linux" { // nothing above it is closed to others
		var err error
		if open, err = os.MkdirTemp("/run", "strandline-test-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(open) })
		chmod(t, open, 0o755)
	}
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, cache string) // a new folder in one of ours
		want    string                           // of the error; "" for none
	}{
		{"a new folder", func(t *testing.T, cache string) {}, ""},
		{"a folder that others read", func(t *testing.T, cache string) { chmod(t, cache, 0o755) }, ""},
		{"a folder of all users", func(t *testing.T, cache string) { chmod(t, cache, 0o777) }, "other users can write to CACHE"},
		{"a folder of a group", func(t *testing.T, cache string) { ofGroup(t, cache); chmod(t, cache, 0o770) }, "other users can write to CACHE"},
		{"a sticky folder", func(t *testing.T, cache string) { chmod(t, cache, 0o777|fs.ModeSticky) }, "other users can write to CACHE"},
		{"a folder of a group in a closed one", func(t *testing.T, cache string) {
			makeFolder(t, filepath.Join(cache, "strandline"))
			chmod(t, filepath.Join(cache, "strandline"), 0o775)
		}, ""},
		{"a link to a folder of all users", func(t *testing.T, cache string) {
			to := t.TempDir()
			chmod(t, to, 0o777)
			if err := os.Symlink(to, filepath.Join(cache, "strandline")); err != nil {
				t.Fatal(err)
			}
		}, "other users can write to"},
		{"a file in the way", func(t *testing.T, cache string) {
			if err := os.WriteFile(filepath.Join(cache, "strandline"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a directory"},
		{"a link among the modules", func(t *testing.T, cache string) {
			folder := filepath.Join(cache, "strandline", "module-"+moduleHash())
			makeFolder(t, folder)
			if err := os.Symlink("/nowhere", filepath.Join(folder, "strandline")); err != nil {
				t.Fatal(err)
			}
		}, "is not strandline's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := own
			if strings.HasPrefix(c.want, "other users can write to CACHE") {
				asRoot(t)
				parent = open
			}
			cache, err := os.MkdirTemp(parent, "cache-")
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("XDG_CACHE_HOME", cache)
			c.prepare(t, cache)
			folder, err := placeModule(filepath.Join(t.TempDir(), "recording"))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(c.want, "CACHE", cache)) || !strings.Contains(err.Error(), "set XDG_CACHE_HOME") {
					t.Fatalf("%s, %v; want an error with %q", folder, err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(cache, "strandline", "module-"+moduleHash()); folder != want {
				t.Errorf("folder %s, want %s", folder, want)
			}
			if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if info, err := os.Stat(filepath.Join(folder, "sitecustomize.py")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}

// ofGroup gives a folder to a group that is not the user's own.
func ofGroup(t *testing.T, name string) {
	t.Helper()
	asRoot(t)
	if err := os.Chown(name, -1, 4242); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, name string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

func makeFolder(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(name, 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestModuleInRecording places the module in the recording where the user has no cache.
func TestModuleInRecording(t *testing.T) {
	recording := live.OwnFolder(t)
	t.Setenv("XDG_CACHE_HOME", "/dev/null/cache")
	folder, err := placeModule(recording)
	if err != nil || folder != filepath.Join(recording, "module") {
		t.Errorf("folder %s, %v", folder, err)
	}
	odd := filepath.Join(recording, "a:b")
	if folder, err := placeModule(odd); err == nil || !strings.Contains(err.Error(), "PYTHONPATH cannot name") {
		t.Errorf("folder %s, %v; want that PYTHONPATH cannot name it", folder, err)
	}
}

// TestNoModule leaves nothing of a recording that has no place for the module, so that its
// folder can be given again.
func TestNoModule(t *testing.T) {
	dir := filepath.Join(live.OwnFolder(t), "a:b")
	t.Setenv("XDG_CACHE_HOME", "/dev/null/cache")
	if _, err := Begin(Options{Dir: dir}, Manifest{}); err == nil || !strings.Contains(err.Error(), "PYTHONPATH cannot name") {
		t.Errorf("%v; want that PYTHONPATH cannot name it", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestModuleOfAnother places no module in a folder that belongs to another user.
func TestModuleOfAnother(t *testing.T) {
	asRoot(t)
	cache := live.OwnFolder(t)
	t.Setenv("XDG_CACHE_HOME", cache)
	folder, err := placeModule("")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"strandline/_hook.py", "strandline", ".", ".."} {
		name = filepath.Join(folder, name)
		if err := os.Chown(name, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if got, err := placeModule(""); err == nil {
			t.Errorf("with %s of another user: %s", name, got)
		}
		if err := os.Chown(name, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestModuleIsMended restores files that are missing or changed, and leaves the others.
func TestModuleIsMended(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", live.OwnFolder(t))
	folder, err := placeModule("")
	if err != nil {
		t.Fatal(err)
	}
	hook, changed, gone := filepath.Join(folder, "strandline/_hook.py"), filepath.Join(folder, "sitecustomize.py"), filepath.Join(folder, "strandline/_store.py")
	before, err := os.Stat(hook)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(changed, []byte("raise SystemExit(9)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	again, err := placeModule("")
	if err != nil || again != folder {
		t.Fatalf("%s, %v; want %s", again, err, folder)
	}
	eachFile(".", func(name string, data []byte) error {
		if got := read(filepath.Join(folder, name)); got != string(data) {
			t.Errorf("%s is not as it was", name)
		}
		return nil
	})
	if after, err := os.Stat(hook); err != nil || !os.SameFile(before, after) {
		t.Error("a file that was right was replaced")
	}
}

// TestModuleStays ends a recording whose processes run on: what their environment names is
// there still, and nobody else can make it.
func TestModuleStays(t *testing.T) {
	cache := live.OwnFolder(t)
	t.Setenv("XDG_CACHE_HOME", cache)
	s, err := Begin(Options{Dir: filepath.Join(t.TempDir(), "recording")}, Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	env, err := s.Environ(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.End(0); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "PYTHONPATH=") })
	folder := strings.TrimPrefix(env[i], "PYTHONPATH=")
	if !strings.HasPrefix(folder, cache) {
		t.Errorf("PYTHONPATH is %s, want a folder in %s", folder, cache)
	}
	if _, err := os.Stat(filepath.Join(folder, "sitecustomize.py")); err != nil {
		t.Error(err)
	}
}

// TestHookRefuses starts interpreters with a module that others can change: it is not
// imported, and the program runs.
func TestHookRefuses(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", live.OwnFolder(t))
	folder, err := placeModule("")
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(folder, "strandline")
	type change struct {
		name string
		mode fs.FileMode
		uid  int
	}
	changes := []change{{folder, 0o700, -1}, {folder, 0o770, -1}, {inner, 0o702, -1}}
	if os.Geteuid() == 0 {
		changes = append(changes, change{folder, 0o700, 65534}, change{inner, 0o700, 65534})
	}
	for i, c := range changes {
		chmod(t, c.name, c.mode)
		if err := os.Chown(c.name, c.uid, -1); err != nil {
			t.Fatal(err)
		}
		run := exec.Command(pythons(t)[0], "-c", `import sys; print("strandline._hook" in sys.modules)`)
		run.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+folder, variable+"={}")
		out, err := run.CombinedOutput()
		if want := map[bool]string{true: "True\n", false: "False\n"}[i == 0]; err != nil || string(out) != want {
			t.Errorf("%s of mode %v and user %d: %q, %v; want %q", c.name, c.mode, c.uid, out, err, want)
		}
		chmod(t, c.name, 0o700)
		if err := os.Chown(c.name, os.Geteuid(), -1); err != nil {
			t.Fatal(err)
		}
	}
}
