package cpython_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/host/code/cpython"
	"strandline/host/code/image"
	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

const keeps = `
import sys, collections
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/site-packages"]
import strandline.look
import cache, library
seen = {i: [str(i)] for i in range(1000)}
class Meter:
    def __init__(self): self.values, self.count = list(range(300)), 0
def make():
    held = set(range(700))
    def inner(): return held
    return inner
reader = make()
def main():
    meter, queue = Meter(), collections.deque(range(200))
    table = {"a": {"rows": list(range(500))}}
    strandline.look.call(library.wait, queue)
main()
`

const library = `
import sys
TABLE = {i: i for i in range(600)}
def wait(queue):
    print("ready", flush=True)
    sys.stdin.read()
`

// TestKept reads the containers of a running program, of each Python that there is.
func TestKept(t *testing.T) {
	found, _ := filepath.Glob(filepath.Join(os.Getenv("HOME"), ".pyenv/versions/3.*/bin/python3"))
	tried := 0
	for _, python := range append(found, "python3") {
		var minor int
		text, err := exec.Command(python, "-c", "import sys; print(sys.version_info[1])").Output()
		if _, scan := fmt.Sscan(string(text), &minor); err != nil || scan != nil || minor < cpython.OldestMinor || minor >= cpython.NewestMinor {
			continue
		}
		tried++
		t.Run(fmt.Sprint("3.", minor), func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"site-packages", "strandline"} {
				if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range map[string]string{"strandline/look.py": "def call(f, x):\n    every = list(range(900))\n    f(x)\n", "cache.py": "ROWS = list(range(400))\n", "site-packages/library.py": library, "keeps.py": keeps} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.Command(python, filepath.Join(dir, "keeps.py"), dir)
			in, _ := c.StdinPipe()
			out, _ := c.StdoutPipe()
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer c.Wait()
			defer in.Close()
			bufio.NewReader(out).ReadString('\n')
			files := image.NewFiles()
			defer files.Close()
			im, err := image.Open(procfs.Process(c.Process.Pid), files)
			if err != nil {
				live.Missing(t, "process memory", err.Error())
			}
			defer im.Close()
			r, err := cpython.Find(im)
			if err != nil {
				live.Missing(t, "python", err.Error())
			}
			got := r.Kept(im)
			want := []cpython.Kept{{Path: "seen", Kind: "dict", Count: 1000}, {Path: "cache.ROWS", Kind: "list", Count: 400}, {Path: "reader.__closure__", Kind: "set", Count: 700}, {Path: "TABLE", Kind: "dict", Count: 600, Library: true}}
			if minor >= 11 {
				want = append(want, cpython.Kept{Path: "meter.values in main()", Kind: "list", Count: 300}, cpython.Kept{Path: "queue in main()", Kind: "deque", Count: 200}, cpython.Kept{Path: "table[...][...] in main()", Kind: "list", Count: 500})
			}
			if slices.ContainsFunc(got, func(k cpython.Kept) bool { return strings.HasPrefix(k.Path, "every") }) {
				t.Errorf("a list of strandline's own in %+v", got)
			}
			for _, k := range want {
				if !slices.Contains(got, k) {
					t.Errorf("no %+v in %+v", k, got)
				}
			}
		})
	}
	if tried == 0 {
		live.Missing(t, "python3", "none runs")
	}
}
