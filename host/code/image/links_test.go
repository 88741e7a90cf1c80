package image

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// mapper maps the code of files as a library is, and states that it has.
const mapper = `
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline, used)) int named_one(int x) { return x * 3; }
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) mmap(0, 1 << 16, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[i], O_RDONLY), 0);
  puts("ready"); fflush(stdout); pause();
}
`

// TestHardLinks maps one file under many names, whose tables are read once.
func TestHardLinks(t *testing.T) {
	exe := live.Build(t, mapper, nil)
	var names []string
	for i := range 24 {
		name := filepath.Join(filepath.Dir(exe), fmt.Sprint("link", i))
		if err := os.Link(exe, name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	pid, _ := live.Start(t, exe, names...)
	files := NewFiles()
	defer files.Close()
	im, err := Open(procfs.Process(pid), files)
	live.Need(t, "reading the memory of another process", err)
	defer im.Close()
	tables, paths := map[any]bool{}, map[string]bool{}
	for _, m := range im.Map.Mappings {
		if !m.Exec || filepath.Dir(m.Path) != filepath.Dir(exe) {
			continue
		}
		o := im.Object(m)
		if o == nil {
			t.Fatalf("%s is not read", m.Path)
		}
		tables[o.File], paths[o.Path] = true, true
	}
	if len(tables) != 1 || len(paths) != len(names)+1 {
		t.Errorf("%d tables of %d paths, want 1 of %d", len(tables), len(paths), len(names)+1)
	}
}
