package record

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// pythons are the interpreters of this machine that run, one of each version, or
// only the first where the tests are to be short.
func pythons(t *testing.T) []string {
	found := interpreters()
	if len(found) == 0 {
		live.Missing(t, "python3", "none runs")
	}
	if testing.Short() {
		return found[:1]
	}
	return found
}

var interpreters = sync.OnceValue(func() (out []string) {
	names := []string{"python3"}
	for minor := 9; minor <= 14; minor++ {
		names = append(names, fmt.Sprintf("python3.%d", minor))
	}
	found, _ := filepath.Glob(filepath.Join(os.Getenv("HOME"), ".pyenv/versions/3.*/bin/python3"))
	seen := map[string]bool{}
	for _, name := range append(names, found...) {
		version, err := exec.Command(name, "-c", "import sys; print(*sys.version_info[:2]) if sys.version_info >= (3, 8) else 1 / 0").Output()
		if err == nil && !seen[string(version)] {
			seen[string(version)] = true
			out = append(out, name)
		}
	}
	return out
})

// A program is one that is recorded in a test.
type program struct {
	code    string   // of Python
	command []string // before the file of the code; nil for the first interpreter
	args    []string // after it
	env     []string
	options Options
	// watched has it looked at often; each time a byte is added to the file looks beside it.
	watched bool
	name    string            // of the folder of the recording; "" for recording
	inWork  bool              // run in the folder of the program
	modules map[string]string // files beside the program, by name
}

// result is the outcome.
type result struct {
	*Manifest
	dir            string
	levels         [][]StepLevel
	status         int
	stdout, stderr string
}

func (p program) run(t *testing.T) result {
	t.Helper()
	live.Waits(t)
	standin, err := filepath.Abs("testdata/standin")
	if err != nil {
		t.Fatal(err)
	}
	if p.command == nil {
		p.command = []string{pythons(t)[0]}
	}
	work := t.TempDir()
	p.options.Dir = filepath.Join(work, cmp.Or(p.name, "recording"))
	if p.options.EverySeconds == 0 && p.options.EverySteps == 0 {
		p.options.EverySteps = 1 << 30 // no snapshot by the clock, which a slow machine would take more of
	}
	file := filepath.Join(work, "train.py")
	files := map[string]string{file: p.code}
	for name, text := range p.modules {
		files[filepath.Join(work, name)] = text
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	command := slices.Concat(p.command, []string{file}, p.args)
	s, err := Begin(p.options, Manifest{Command: command})
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+standin+string(os.PathListSeparator)+work, "RECORDING="+p.options.Dir)
	env, err = s.Environ(append(env, p.env...))
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(work, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	messages, err := os.Create(filepath.Join(work, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Close()
	c := Command{Args: command, Env: env, Stdout: out, Stderr: messages, Look: func(pid int) { s.Look(pid) }}
	if p.watched {
		looks, err := os.Create(filepath.Join(work, "looks"))
		if err != nil {
			t.Fatal(err)
		}
		defer looks.Close()
		c.Every = 20 * time.Millisecond
		c.Look = func(pid int) {
			s.Look(pid)
			looks.WriteString(".")
		}
	}
	r := result{dir: p.options.Dir}
	if p.inWork {
		t.Chdir(work)
	}
	if r.status, err = c.Run(); err != nil {
		t.Fatal(err)
	}
	r.levels = s.Levels()
	if r.Manifest, err = s.End(r.status); err != nil {
		t.Fatal(err)
	}
	r.stdout, r.stderr = read(out.Name()), read(messages.Name())
	return r
}

// read returns the text of a file, empty if there is none.
func read(name string) string {
	text, _ := os.ReadFile(name)
	return string(text)
}

// silent fails unless the program ran as it would unrecorded.
func (r result) silent(t *testing.T, status int, stdout string) {
	t.Helper()
	if r.status != status || r.stdout != stdout || r.stderr != "" {
		t.Errorf("status %d, stdout %q, stderr %q; want %d, %q and nothing", r.status, r.stdout, r.stderr, status, stdout)
	}
}

// one is the only process that was recorded.
func (r result) one(t *testing.T) Process {
	t.Helper()
	if len(r.Processes) != 1 {
		t.Fatalf("%d processes were recorded, want 1; notes %v", len(r.Processes), r.Notes)
	}
	return r.Processes[0]
}

// reasons are those of the snapshots of a process.
func reasons(p Process) (out []string) {
	for _, d := range p.Dumps {
		out = append(out, d.Reason)
	}
	return out
}

func noted(m *Manifest, text string) bool {
	return slices.ContainsFunc(m.Notes, func(n Note) bool { return strings.Contains(n.Why, text) })
}

const train = `
import torch, pickle, os, glob
model = torch.cuda.allocate(5000)
optimizer = torch.optim.SGD()
for step in range(3):
    torch.cuda.free(torch.cuda.allocate(1000))
    optimizer.step()
print("trained")
`
