package image

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

const hidden = `
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline, used)) static int hidden_one(int x) { return x * 3; }
int main(int argc, char **argv) { printf("%p\n", (void *)hidden_one); fflush(stdout); pause(); }
`

// TestNames finds names that were stripped into files beside the program.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		name string
		make [][]string // run in the folder of the program
		want string
	}{
		{"not stripped", [][]string{{"cp", "main", "run"}}, "hidden_one"},
		{"stripped", [][]string{{"strip", "-o", "run", "main"}}, ""},
		{"in the file that it names", [][]string{
			{"objcopy", "--only-keep-debug", "main", "names"}, {"strip", "-o", "run", "main"}, {"objcopy", "--add-gnu-debuglink=names", "run"},
		}, "hidden_one"},
		{"in a folder for it by checksum", [][]string{
			{"objcopy", "--remove-section=.note.gnu.build-id", "main"},
			{"objcopy", "--only-keep-debug", "main", "names"}, {"strip", "-o", "run", "main"}, {"objcopy", "--add-gnu-debuglink=names", "run"},
			{"mkdir", ".debug"}, {"mv", "names", ".debug"},
		}, "hidden_one"},
		{"in a file of that name that is another's", [][]string{
			{"objcopy", "--remove-section=.note.gnu.build-id", "main"},
			{"objcopy", "--only-keep-debug", "main", "names"}, {"strip", "-o", "run", "main"}, {"objcopy", "--add-gnu-debuglink=names", "run"},
			{"objcopy", "--remove-section=.comment", "names"},
		}, ""},
		{"inside and compressed", [][]string{
			{"objcopy", "--only-keep-debug", "main", "names"}, {"xz", "names"}, {"strip", "main"},
			{"objcopy", "--add-section", ".gnu_debugdata=names.xz", "main", "run"},
		}, "hidden_one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Dir(live.Build(t, hidden, nil))
			for _, args := range c.make {
				live.Tool(t, args[0])
				tool := exec.Command(args[0], args[1:]...)
				tool.Dir = dir
				if out, err := tool.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
			}
			pid, line := live.Start(t, filepath.Join(dir, "run"))
			files := NewFiles()
			defer files.Close()
			im, err := Open(procfs.Process(pid), files)
			live.Need(t, "reading the memory of another process", err)
			defer im.Close()
			place, ok := im.Locate(address(t, line) + 1)
			if !ok || place.Object == nil {
				t.Fatalf("nothing is found at %s", line)
			}
			if got := place.Object.Function(place.Linked); got != c.want {
				t.Errorf("got the name %q, want %q", got, c.want)
			}
		})
	}
}

func address(t *testing.T, text string) uint64 {
	t.Helper()
	addr, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}
