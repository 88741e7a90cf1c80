package record

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

// mapped maps a file that looks like PyTorch's library for the device, by which the
// recording finds the process.
const mapped = `
import mmap
with open("libc10_cuda.so", "w+b") as f:
    f.write(bytes(4096))
    f.flush()
    library = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
`

// looked has the process looked at: the function returns after that.
const looked = `
import os, time
os.chdir(os.path.dirname(os.path.abspath(__file__)))
looks = os.open("looks", os.O_RDONLY)
def looked():
    n = os.fstat(looks).st_size
    while os.fstat(looks).st_size < n + 8:  # each third look sees processes
        time.sleep(0.01)
`

const limits = `
import resource
def limit(kind, n):
    resource.setrlimit(kind, (n, resource.getrlimit(kind)[1]))
`

// TestLostRights records programs that give up their rights. They run as they would
// unrecorded, and the recording has the reason why snapshots are missing.
func TestLostRights(t *testing.T) {
	live.Linux(t)
	for _, c := range []struct {
		name, code string
		root       bool
		snapshots  []string
		note       string // "" for none
	}{
		{"another user", "torch.cuda.init()\nstep()\nos.setuid(65534)\nstep()\n", true, []string{"step"}, "it runs as user 65534, who may not write to the folder of the recording"},
		{"another user before the device", "os.setuid(65534)\nstep()\n", true, nil, "recording could not begin: it runs as user 65534, who may not write to the folder of the recording"},
		{"another user in silence", "torch.cuda.init()\nstep()\nlooks = os.dup2(looks, 900)\nos.closerange(3, 900)\nos.closerange(901, 4096)\nos.setuid(65534)\nlooked()\n", true, []string{"step"}, "it runs as user 65534, who may not write to the folder of the recording"},
		{"another root", "torch.cuda.init()\nstep()\nos.chroot('.')\nos.chdir('/')\nstep()\n", true, []string{"step", "step", "exit"}, ""},
		{"small files", "torch.cuda.init()\nstep()\nlimit(resource.RLIMIT_FSIZE, 2000)\nmore()\nstep()\n", false, []string{"step"}, "RLIMIT_FSIZE lets it write at most 2000 bytes to a file"},
		{"no files", "torch.cuda.init()\nstep()\nlimit(resource.RLIMIT_FSIZE, 0)\nstep()\nlooked()\n", false, []string{"step"}, "RLIMIT_FSIZE lets it write at most 0 bytes to a file: what it could not write is missing"},
		{"no files from the start", "limit(resource.RLIMIT_FSIZE, 0)\nstep()\nlooked()\n", false, nil, "RLIMIT_FSIZE lets it write at most 0 bytes to a file"},
		{"few descriptors", "torch.cuda.init()\nstep()\nlimit(resource.RLIMIT_NOFILE, 3)\nstep()\n", false, []string{"step"}, "RLIMIT_NOFILE lets it open at most 3 files, and no more are left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root {
				asRoot(t)
			}
			t.Parallel()
			r := program{watched: true, options: Options{EverySteps: 1}, code: looked + mapped + limits + `
import torch
import strandline._recorder as recorder
def more():
    for i in range(100): torch.cuda.allocate(1)
optimizer = torch.optim.SGD()
def step():
    torch.cuda.allocate(1)
    optimizer.step()
    r = recorder.current()
    while r is not None and r.queue:
        time.sleep(0.01)
print("ran", flush=True)
` + c.code}.run(t)
			r.silent(t, 0, "ran\n")
			var got []string
			for i := range r.Processes {
				got = append(got, reasons(r.Processes[i])...)
			}
			if !slices.Equal(got, c.snapshots) {
				t.Errorf("snapshots for %v, want %v; notes %v", got, c.snapshots, r.Notes)
			}
			if c.note == "" && len(r.Notes) > 0 || !noted(r.Manifest, c.note) && c.note != "" {
				t.Errorf("notes %v, want %q", r.Notes, c.note)
			}
			for _, n := range r.Notes {
				if strings.Contains(n.Why, "disk was full") || strings.Contains(n.Why, "ended while it wrote") {
					t.Errorf("false note %q", n.Why)
				}
			}
		})
	}
}

// TestLostRightsOfSteps has programs without PyTorch count steps once they have given up
// their rights.
func TestLostRightsOfSteps(t *testing.T) {
	live.Linux(t)
	for _, c := range []struct {
		name, code string
		root       bool
		steps      int
		note       string // "" for none
	}{
		{"another user from the start", "os.setuid(65534)\n", true, 0, "it runs as user 65534, who may not write to the folder of the recording"},
		{"another user later", "strandline.step()\nos.setuid(65534)\n", true, 3, ""},
		{"another root", "strandline.step()\nos.chroot('.')\n", true, 3, ""},
		{"no files", "print('ran', flush=True)\nstrandline.step()\nlimit(resource.RLIMIT_FSIZE, 0)\n", false, 1, "RLIMIT_FSIZE lets it write at most 0 bytes to a file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root {
				asRoot(t)
			}
			t.Parallel()
			end := "print('ran')\n"
			if strings.Contains(c.code, "print") {
				end = ""
			}
			r := program{watched: true, options: Options{Levels: "auto", NoSnapshots: true},
				code: looked + limits + "import strandline\n" + c.code + "strandline.step()\nstrandline.step()\nlooked()\n" + end}.run(t)
			r.silent(t, 0, "ran\n")
			steps := 0
			for _, levels := range r.levels {
				steps += len(levels)
			}
			if steps != c.steps {
				t.Errorf("%d steps, want %d", steps, c.steps)
			}
			if c.note == "" && len(r.Notes) > 0 || !noted(r.Manifest, c.note) && c.note != "" {
				t.Errorf("notes %v, want %q", r.Notes, c.note)
			}
		})
	}
}

// TestOtherUser records a command of root that runs its program as another user: it runs
// as it would unrecorded, and the recording has the reason.
func TestOtherUser(t *testing.T) {
	live.Linux(t)
	asRoot(t)
	setpriv := live.Tool(t, "setpriv")
	python := "/usr/bin/python3" // which any user can run
	if _, err := os.Stat(python); err != nil {
		live.Missing(t, python, err)
	}
	open, err := os.MkdirTemp("", "strandline-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(open) })
	chmod(t, open, 0o755)
	if err := os.WriteFile(filepath.Join(open, "libc10_cuda.so"), make([]byte, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	const code = `
import mmap, os, sys, time
library = mmap.mmap(os.open("libc10_cuda.so", os.O_RDONLY), 0, prot=mmap.PROT_READ)
looks = os.fdopen(3)
n = os.fstat(3).st_size
while os.fstat(3).st_size < n + 8: time.sleep(0.01)
print("ran", os.getuid(), "strandline" in sys.modules)
`
	r := program{watched: true, code: `
import os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
looks = os.open(os.path.join(here, "looks"), os.O_RDONLY)
os.dup2(looks, 3)
subprocess.run(sys.argv[1:], cwd=os.environ["OPEN"], pass_fds=[3], check=True)
`, env: []string{"OPEN=" + open}, args: []string{setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", python, "-c", code}}.run(t)
	r.silent(t, 0, "ran 65534 False\n")
	if !noted(r.Manifest, "it runs as user 65534, who may not read the recorder in ") {
		t.Errorf("notes %v", r.Notes)
	}
}
