package record

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"strandline/internal/test/live"
)

// python runs code with the module, in a folder, and returns what it prints.
func (m modules) python(t *testing.T, folder, code string) string {
	t.Helper()
	c := exec.Command(pythons(t)[0], "-c", code)
	c.Dir = folder
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+string(m))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// modules are folders of Python modules.
type modules string

func newModules(t *testing.T) modules {
	t.Helper()
	folder := t.TempDir()
	if err := WriteModule(folder); err != nil {
		t.Fatal(err)
	}
	standin, err := filepath.Abs("testdata/standin")
	if err != nil {
		t.Fatal(err)
	}
	return modules(folder + string(os.PathListSeparator) + standin)
}

// TestPlanted records into folders in which something stands in the way: nothing is
// written elsewhere.
func TestPlanted(t *testing.T) {
	live.Linux(t)
	module := newModules(t)
	const begin = `
import os
os.environ["SUDO_UID"] = "4242" # as if that user had called sudo
try:
    import strandline, torch
    strandline.start("recording")
    torch.cuda.allocate(1)
    print(strandline.snapshot() is not None)
except OSError as e:
    print("refused:", e)
`
	for _, c := range []struct {
		name, prepare string // in a folder in which there are those of the recording and of a victim
		root          bool
		want          string
	}{
		{"nothing", "", false, "True\n"},
		{"a folder of another user", "os.chown('recording', 65534, -1)", true, "refused: the folder "},
		{"a folder that all can write to", "os.chmod('recording', 0o777)", false, "refused: other users can write to the folder "},
		{"a folder of a group", "os.chown('recording', -1, 4242)\nos.chmod('recording', 0o775)", true, "refused: other users can write to the folder "},
		{"a folder of a user's own group", "os.chown('recording', 4242, 4242)\nos.chmod('recording', 0o775)", true, "True\n"},
		{"a link instead of the journals", "os.symlink('../victim', 'recording/.strandline')", false, "refused: "},
		{"journals of another user", "os.mkdir('recording/.strandline')\nos.chown('recording/.strandline', 65534, -1)", true, "refused: the folder "},
		{"a link instead of notes", "os.mkdir('recording/.strandline')\nos.symlink('../../victim/file', 'recording/.strandline/notes.jsonl')", false, "True\n"},
		{"a pipe instead of notes", "os.mkdir('recording/.strandline')\nos.mkfifo('recording/.strandline/notes.jsonl')", false, "True\n"},
		{"a link instead of the lock", "os.mkdir('recording/.strandline')\nos.symlink('../../victim/new', 'recording/.strandline/lock')", false, "True\n"},
		{"a link instead of the manifest", "os.symlink('../victim/new', 'recording/strandline.json')", false, "refused: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root {
				asRoot(t)
			}
			folder := t.TempDir()
			module.python(t, folder, "import os\nos.mkdir('recording')\nos.mkdir('victim')\nopen('victim/file', 'w').write('mine')\n"+c.prepare)
			if got := module.python(t, folder, begin); !strings.HasPrefix(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			left, err := os.ReadDir(filepath.Join(folder, "victim"))
			if err != nil || len(left) != 1 || read(filepath.Join(folder, "victim", "file")) != "mine" {
				t.Errorf("the victim has %v, %v, and %q", left, err, read(filepath.Join(folder, "victim", "file")))
			}
		})
	}
}

// TestPlantedMoment writes a snapshot where links have the names that it would get.
func TestPlantedMoment(t *testing.T) {
	live.Linux(t)
	folder := t.TempDir()
	got := newModules(t).python(t, folder, `
import datetime, os
from strandline import _folder, _store
os.makedirs("recording/.strandline")
os.mkdir("victim")
when = 1.7e9
names = [datetime.datetime.fromtimestamp(when + n / 1000).strftime("%Y%m%d-%H%M%S.") + "%03d" % n for n in range(3)]
os.symlink("../victim", "recording/" + names[0])
os.mkdir("recording/" + names[1])
os.symlink("../../victim/new", "recording/" + names[1] + "/x.pickle")
os.mkdir("recording/" + names[2])
os.symlink("../../victim/new", "recording/" + names[2] + "/x.pickle.tmp")
try:
    print(_store.Store(_folder.of("recording", ""), "x", 2, 1 << 30).write({}, when, False))
except FileExistsError:
    print("exists")
os.unlink("recording/" + names[2] + "/x.pickle.tmp")
path, size = _store.Store(_folder.of("recording", ""), "x", 2, 1 << 30).write({}, when, False)
print(path == names[2] + "/x.pickle", size > 0, os.listdir("victim"))
`)
	if got != "exists\nTrue True []\n" {
		t.Error(got)
	}
}

// TestModes records with several masks of the program: what it writes is the user's alone,
// and readable.
func TestModes(t *testing.T) {
	live.Linux(t)
	for _, mask := range []string{"0", "0o777"} {
		t.Run(mask, func(t *testing.T) {
			t.Parallel()
			r := program{code: "import os\nos.umask(" + mask + ")\n" + train, options: Options{EverySteps: 1}}.run(t)
			r.silent(t, 0, "trained\n")
			if len(r.one(t).Dumps) < 2 {
				t.Errorf("snapshots for %v", reasons(r.one(t)))
			}
			filepath.WalkDir(r.dir, func(name string, d fs.DirEntry, err error) error {
				if err != nil {
					t.Fatal(err)
				}
				info, err := d.Info()
				if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err != nil || info.Mode().Perm() != want {
					t.Errorf("%s has mode %v, %v; want %v", name, info.Mode(), err, want)
				}
				return nil
			})
		})
	}
}

// TestAnotherFolder puts another folder of the user's in the place of the recording, and
// has the program close all descriptors: nothing is written there.
func TestAnotherFolder(t *testing.T) {
	live.Linux(t)
	r := program{code: idle + `
os.makedirs("other/.strandline")
os.rename(os.environ["RECORDING"], os.environ["RECORDING"] + ".moved")
os.symlink(os.path.abspath("other"), os.environ["RECORDING"])
os.closerange(3, 4096)
import strandline
print(strandline.snapshot())
print(os.listdir("other"), os.listdir("other/.strandline"))
os.unlink(os.environ["RECORDING"])
os.rename(os.environ["RECORDING"] + ".moved", os.environ["RECORDING"])
`, inWork: true}.run(t)
	r.silent(t, 0, "None\n['.strandline'] []\n")
}

// TestEndedRecording begins a recording from code in the folder of one that has ended.
func TestEndedRecording(t *testing.T) {
	folder := t.TempDir()
	s, err := Begin(Options{Dir: filepath.Join(folder, "recording")}, Manifest{Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.End(0); err != nil {
		t.Fatal(err)
	}
	got := newModules(t).python(t, folder, `
import strandline
try:
    strandline.start("recording")
except FileExistsError as e:
    print(e)
`)
	if !strings.Contains(got, "holds a recording that has ended") {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(folder, "recording", journals)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestOneRecorder begins recordings in one folder at once: one of them gets it.
func TestOneRecorder(t *testing.T) {
	t.Parallel()
	for range 15 {
		dir := filepath.Join(t.TempDir(), "recording")
		sessions, failed := make([]*Session, 4), make([]error, 4)
		var wait sync.WaitGroup
		for i := range sessions {
			wait.Go(func() { sessions[i], failed[i] = Begin(Options{Dir: dir}, Manifest{Command: []string{"true"}}) })
		}
		wait.Wait()
		begun := 0
		for i, s := range sessions {
			switch {
			case failed[i] == nil:
				begun++
				if m, err := s.End(0); err != nil || m.Ended == nil {
					t.Errorf("%+v, %v", m, err)
				}
			case !errors.Is(failed[i], ErrExists):
				t.Error(failed[i])
			}
		}
		if begun != 1 {
			t.Fatalf("%d recorders got the folder", begun)
		}
		if m, err := ReadManifest(dir); err != nil || m.Ended == nil {
			t.Fatalf("%+v, %v", m, err)
		}
	}
}

// TestKilledRecorder begins in folders that a recorder left which was killed.
func TestKilledRecorder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recording")
	s, err := Begin(Options{Dir: dir}, Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	s.folder.Close()
	journal := filepath.Join(dir, journals, "pid1-1.jsonl")
	if err := os.WriteFile(journal, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ManifestName, filepath.Join(journals, "session")} {
		if name != "" {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Begin(Options{Dir: dir}, Manifest{}); !errors.Is(err, ErrExists) {
			t.Errorf("without %q: %v", name, err)
		}
		if _, err := os.Stat(journal); err != nil {
			t.Errorf("without %q: %v", name, err)
		}
	}
}

// TestNamesAreNoPatterns records into folders whose names are patterns of others, in which
// there are files of other programs.
func TestNamesAreNoPatterns(t *testing.T) {
	for _, name := range []string{"x[1]", "x*", "x?", "*", `x\1`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := program{name: name, options: Options{EverySteps: 1, Levels: "auto"}, modules: map[string]string{
				"x1/.strandline/pid1-1.jsonl":                   `{"event":"recording","time":1,"pid":1}`,
				"x1/.strandline/levels/1-1.jsonl":               `{"pid":1}`,
				"x1/20260101-000000.000/t_pid1.pickle.tmp":      "",
				name + "/20260101-000000.000/t_pid1.pickle.tmp": "",
				name + "/models/t.pickle.tmp":                   "",
			}, code: train}.run(t)
			r.silent(t, 0, "trained\n")
			if p := r.one(t); len(p.Dumps) < 2 || len(r.levels) != 1 || len(r.levels[0]) != 3 {
				t.Errorf("snapshots for %v, levels %v", reasons(p), r.levels)
			}
			for _, left := range []string{"x1/.strandline/pid1-1.jsonl", "x1/20260101-000000.000/t_pid1.pickle.tmp", name + "/20260101-000000.000/t_pid1.pickle.tmp", name + "/models/t.pickle.tmp"} {
				if _, err := os.Stat(filepath.Join(filepath.Dir(r.dir), left)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
