package live

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Paused is a program with pausable memory, on a driver for tests: see held.py in
// pausable/testdata.
type Paused struct {
	PID int
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	end sync.Once
}

// Pausable starts one, given the root of the repository and further variables. It skips
// the test where there is no compiler, Python or library.
func Pausable(t testing.TB, root string, environ ...string) *Paused {
	t.Helper()
	Waits(t)
	Linux(t)
	gcc, python := Tool(t, "gcc"), Tool(t, "python3")
	from := filepath.Join(root, "pausable")
	library, err := filepath.Abs(filepath.Join(from, "object", "library_"+runtime.GOARCH+".so"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(library); err != nil {
		Missing(t, "the library of pausable memory", err)
	}
	dir := t.TempDir()
	if out, err := exec.Command(gcc, "-std=gnu11", "-O1", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", filepath.Join(from, "testdata/fake.c"),
		"-o", filepath.Join(dir, "libcuda.so.1"), "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(python, filepath.Join(from, "testdata/held.py"))
	cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+dir, "STRANDLINE_MEM_LIBRARY="+library, "PYTHONDONTWRITEBYTECODE=1"), environ...)
	cmd.Stderr = os.Stderr
	p := &Paused{t: t, cmd: cmd}
	if p.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.End)
	p.out = bufio.NewReader(out)
	if p.PID, err = strconv.Atoi(p.line()); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Paused) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal("the program with pausable memory: ", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// Tell has the program do something, and returns its answer when it is done.
func (p *Paused) Tell(what string) string {
	p.t.Helper()
	if _, err := io.WriteString(p.in, what+"\n"); err != nil {
		p.t.Fatal(err)
	}
	return p.line()
}

// End ends the program.
func (p *Paused) End() {
	p.end.Do(func() {
		p.in.Close()
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
}
